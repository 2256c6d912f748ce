"""What documents claim about torch.compile, judged by recorded results."""

from .rules import Claim, Judged, Verdict, judge, read

__all__ = ["Claim", "Judged", "Verdict", "judge", "read"]

"""What does bfloat16 gain, alone and with the compiler?"""

from torchcompile_suite import matrix

from ._base import _Cells


class Precision(_Cells, question=matrix.PRECISION):
    """A forward pass in a bfloat16 autocast region, eager or compiled."""

    def track_latency(self, session, *point):
        """Seconds a call, in the steady state."""
        return self._latency(session, *point)

    track_latency.unit = "seconds"

    def track_time_ratio(self, session, *point):
        """Time in bfloat16 in the mode over time in float32 in eager. Below 1: a gain."""
        return self._time_ratio(session, *point)

    track_time_ratio.unit = "bfloat16 mode/float32 eager"

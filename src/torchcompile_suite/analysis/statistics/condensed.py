"""A launch without its samples: what remains in the summary of a measurement."""

from __future__ import annotations

from msgspec import Struct

from ...cell import Launch


class Figures(Struct, frozen=True):
    """What the samples of a launch gave; the functions of the same names say what it means.

    ``single_call_s``: eager's and the mode's; None on a CPU.
    """

    ratio: float
    latency_s: float
    eager_latency_s: float
    compile_cost_s: float
    calls_until_steady: int
    seconds_until_steady: float
    first_call_s: float
    warm_up_mixed_ratio: float
    single_call_s: tuple[float, float] | None = None


class CondensedLaunch(Launch, frozen=True, forbid_unknown_fields=True):
    """A launch without ``pairs_s``, ``latency_s`` and ``warm_up_s``, but with their figures.

    ``figures`` is None where nothing was timed.
    """

    figures: Figures | None = None

    @property
    def timed(self) -> bool:
        """Whether pairs were timed."""
        return self.figures is not None

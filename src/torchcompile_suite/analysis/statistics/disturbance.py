"""Which launches other work on the machine slowed, and by how much."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from ...cell import Launch

# A launch is repeated if others took more than these shares of the processors' time while it timed
# its pairs.
MOST_STEAL = 0.05
MOST_OTHERS = 0.10
# Limit for the time of the calibration loop, relative to the quietest one. In quiet hours the loop
# varies by some per cent; on a core that a neighbour shares it takes 40 % longer.
MOST_SLOWDOWN = 1.2


def counted(launches: Iterable[Launch]) -> list[Launch]:
    """The launches whose pairs count: all except those that were disturbed and repeated."""
    return [launch for launch in launches if not launch.disturbed]


def disturbed(launch: Launch, quiet_s: float | None = None) -> str:
    """Why the launch should be repeated, or the empty string.

    ``quiet_s`` is the time of the calibration loop on the quiet machine, None if unknown. The
    reason is only ever what other processes took, never the launch's own times: to repeat a launch
    because its result looks odd would make intervals too narrow.
    """
    interference = launch.interference
    if interference is not None and interference.steal_share > MOST_STEAL:
        return (
            f"disturbed: other guests of the host took {interference.steal_share:.0%} of the "
            "processors"
        )
    if interference is not None and interference.others_share > MOST_OTHERS:
        return f"disturbed: other processes took {interference.others_share:.0%} of the processors"
    factor = slowdown([launch], quiet_s)
    if factor > MOST_SLOWDOWN:
        return f"disturbed: {neighbour(factor)}"
    return ""


def neighbour(factor: float) -> str:
    """The sentence that a neighbour slowed the processors by this factor."""
    return f"a neighbour made the processors {factor:.2f} times as slow"


def calibration_time(launches: Iterable[Launch]) -> float | None:
    """Median seconds of the calibration loop in the launches that count; None if unknown."""
    known = [launch.calibration_s for launch in counted(launches) if launch.calibration_s]
    return median(known) if known else None


def slowdown(launches: Iterable[Launch], quiet_s: float | None) -> float:
    """How many times as slow as in quiet hours the processors were; 1 if unknown."""
    return times_as_slow(calibration_time(launches), quiet_s)


def times_as_slow(taken_s: float | None, quiet_s: float | None) -> float:
    """One time of the calibration loop over another one; 1 if either is unknown."""
    return taken_s / quiet_s if taken_s and quiet_s else 1.0


def quietest(launches: Iterable[Launch], *known: float | None) -> float | None:
    """The shortest time of the calibration loop, in seconds, over the launches and ``known``."""
    times_s = [*(launch.calibration_s for launch in launches), *known]
    return min((time_s for time_s in times_s if time_s), default=None)

"""Does the memory of a process grow with its calls: by how much a call, and how surely?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from itertools import combinations
from statistics import median
from typing import NamedTuple

from ..measurement import Growth, Launch
from ..request import Side
from . import statistics
from .statistics import Interval

# The share of the calls that does not count. Caches fill and the heap finds its size in them.
WARM_UP_SHARE = 0.3
# Bytes a call: 64 MB in a million calls.
NOTICEABLE_BYTES = 64.0


class Grows(str, Enum):
    """What an interval of growth says."""

    YES = "grows"
    NO = "does not grow"
    UNKNOWN = "cannot tell"


class Growing(NamedTuple):
    """The memory of one side of a measurement.

    - ``calls``: those of each launch, the median.
    - ``allocated``: bytes a call by which the allocator has handed out more, over launches; None
      where it is not known.
    - ``judged``: bytes a call of what decides: the resident set on a CPU, and on an accelerator
      what torch's allocator has handed out there, because the host's memory says nothing about it.
    - ``first_bytes``, ``last_bytes``: of what is judged, at the first and the last sample, medians.
    - ``samples``: one launch, for what does not differ between launches.
    """

    calls: int
    allocated: Interval | None
    judged: Interval
    first_bytes: float
    last_bytes: float
    samples: Growth

    @property
    def grows(self) -> Grows:
        """The verdict, of what is judged."""
        return verdict(self.judged)


def slope(calls: Sequence[float], values: Sequence[float]) -> float:
    """The growth of the values a call, after the warm-up; NaN with fewer than two samples there.

    It is the median over all pairs of samples (Theil 1950, Sen 1968). One step of the heap near
    the middle is in half of these pairs, but in no pair of one of the halves. So it is the median
    of three: the slope of all samples, and those of both halves.
    """
    start = WARM_UP_SHARE * calls[-1] if calls else 0.0
    counted = [pair for pair in zip(calls, values, strict=True) if pair[0] >= start]
    half = len(counted) // 2
    parts = [counted, counted[:half], counted[half:]]
    slopes = [_slope(part) for part in parts]
    return slopes[0] if any(map(math.isnan, slopes)) else median(slopes)


def _slope(samples: Sequence[tuple[float, float]]) -> float:
    slopes = [
        (later - earlier) / (more - fewer)
        for (fewer, earlier), (more, later) in combinations(samples, 2)
        if more > fewer
    ]
    return median(slopes) if slopes else math.nan


def resident_slope(growth: Growth) -> float:
    """Bytes a call by which the resident set grew in one launch."""
    return slope(growth.calls, growth.resident_bytes)


def allocated_slope(growth: Growth) -> float | None:
    """Bytes a call by which the allocator handed out more; None where it is not known."""
    if not growth.allocated_bytes:
        return None
    return slope(growth.calls, growth.allocated_bytes)


def of_side(launch: Launch, side: Side) -> Growth | None:
    """The samples of one side of a launch; None without any. Results may come from anybody."""
    growth = launch.eager_growth if side == "eager" else launch.growth
    if growth is None or not growth.calls:
        return None
    known = len(growth.resident_bytes) == len(growth.calls)
    told = len(growth.allocated_bytes) in (0, len(growth.calls))
    return growth if known and told else None


def growing(launches: Sequence[Launch], side: Side, device: str) -> Growing | None:
    """The memory of one side, from the undisturbed launches; None where none was sampled.

    ``device``: that of the cell.
    """
    sampled = [
        growth
        for launch in statistics.undisturbed(launches)
        if (growth := of_side(launch, side)) is not None
    ]
    if not sampled:
        return None
    slopes = [value for one in sampled if (value := allocated_slope(one)) is not None]
    allocated = statistics.mean_interval(slopes) if len(slopes) == len(sampled) else None
    if device == "cpu":
        judged = statistics.mean_interval([resident_slope(one) for one in sampled])
        samples = [one.resident_bytes for one in sampled]
    else:
        judged = allocated or statistics.mean_interval([])
        samples = [one.allocated_bytes or [0] for one in sampled]
    return Growing(
        round(median(one.calls[-1] for one in sampled)),
        allocated,
        judged,
        median(values[0] for values in samples),
        median(values[-1] for values in samples),
        sampled[0],
    )


def verdict(growth: Interval) -> Grows:
    """Whether the memory grows: surely more, or surely less, than anybody notices."""
    if growth.known and growth.low > NOTICEABLE_BYTES:
        return Grows.YES
    if growth.known and growth.high < NOTICEABLE_BYTES:
        return Grows.NO
    return Grows.UNKNOWN

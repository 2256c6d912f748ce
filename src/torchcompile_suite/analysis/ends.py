"""Both ends of the heap: a cell with a settled heap, and as a script gets it.

The default heap is the slow end: malloc gives large blocks back to the kernel and takes them again
at the next call. How often it does so depends on all that the process allocated before.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import NamedTuple

import msgspec

from ..cell import DEFAULT_HEAP, Cell
from ..host import heap
from ..measurement import Measurement
from . import statistics
from .statistics import Interval

# Times that differ by less are equal in practice.
SMALLEST = 0.05
# A call of a settled heap makes no page fault. The interpreter itself makes one now and then.
MOST_FAULTS = 8.0
REMEDY = " ".join(f"{name}={value}" for name, value in heap.VARIABLES.items())


def unsettled(eager_faults: float, mode_faults: float) -> str:
    """Why a heap was not settled although malloc was told to; empty if it was. The arguments are
    page faults of a call.
    """
    if max(eager_faults, mode_faults) <= MOST_FAULTS:
        return ""
    return (
        f"{eager_faults:,.0f} page faults a call in eager and {mode_faults:,.0f} in the mode, "
        "although malloc keeps its memory: the times would be those of the kernel"
    )


class End(NamedTuple):
    """One end: seconds a call and the ratio, with 95 % intervals; page faults a call; seconds
    of the calibration loop, None if not known.
    """

    eager_s: Interval
    mode_s: Interval
    ratio: Interval
    eager_faults: float
    mode_faults: float
    calibration_s: float | None


class Ends(NamedTuple):
    """A cell at both ends. ``cell`` is the one with the settled heap."""

    cell: Cell
    settled: End
    default: End

    @property
    def eager_share(self) -> float | None:
        """Malloc's share of eager's time with the default heap, 0 to 1; None: cannot tell."""
        return self._share(self.settled.eager_s, self.default.eager_s, self.default.eager_faults)

    @property
    def mode_share(self) -> float | None:
        """Malloc's share of the mode's time with the default heap, 0 to 1; None: cannot tell."""
        return self._share(self.settled.mode_s, self.default.mode_s, self.default.mode_faults)

    def _share(self, settled: Interval, default: Interval, faults: float) -> float | None:
        """0 without page faults: a longer time has then another cause, such as a neighbour. Also 0
        if it is surely small. None if the two intervals overlap: they are of two measurements.
        """
        if faults <= MOST_FAULTS:
            return 0.0
        settled = settled.scaled(self._slower)
        rest = statistics.quotient(settled, default)
        if 1 - rest.low < SMALLEST:
            return 0.0
        large = 1 - rest.value >= SMALLEST and settled.high < default.low
        return 1 - rest.value if large else None

    @property
    def _slower(self) -> float:
        """How many times as slow the machine was when the default heap was measured.

        Eager shows it, unless the heap costs eager time; else the calibration loop.
        """
        if max(self.settled.eager_faults, self.default.eager_faults) <= MOST_FAULTS:
            return self.default.eager_s.value / self.settled.eager_s.value
        return statistics.times_as_slow(self.default.calibration_s, self.settled.calibration_s)


def both_ends(measurements: Iterable[Measurement]) -> list[Ends]:
    """The cells that were measured at both ends, in the order of the measurements."""
    measured = {each.cell: each for each in measurements if each.outcome.ok}
    ends = []
    for cell, measurement in measured.items():
        other = measured.get(msgspec.structs.replace(cell, allocator=DEFAULT_HEAP))
        if cell.allocator == "system" and other is not None:
            settled, default = _end(measurement), _end(other)
            if settled is not None and default is not None:
                ends.append(Ends(cell, settled, default))
    return ends


def _end(measurement: Measurement) -> End | None:
    """None for a measurement of an older method, whose heap is not known."""
    launches = statistics.counted(measurement.launches)
    wanted = "default" if measurement.cell.allocator == DEFAULT_HEAP else "settled"
    eager = [launch.eager_paging.faults for launch in launches if launch.eager_paging]
    mode = [launch.paging.faults for launch in launches if launch.paging]
    counted = len(eager) == len(mode) == len(launches)
    if not counted or {launch.heap for launch in launches} != {wanted}:
        return None
    return End(
        statistics.measured_eager(launches),
        statistics.measured_latency(launches),
        statistics.measured_ratio(launches, measurement.sequential),
        median(eager),
        median(mode),
        statistics.calibration_time(launches),
    )


def sentences(ends: Ends, compiled: str) -> list[str]:
    """What a user has to know about the heap. ``compiled`` names the compiled side."""
    settled, default = ends.settled, ends.default
    alone = (
        f"Alone, with the C library's defaults, {compiled} takes {default.ratio} of eager's time"
    )
    shares = [
        f"{share:.0%} of {name}'s time"
        for name, share in (("eager", ends.eager_share), (compiled, ends.mode_share))
        if share
    ]
    if not shares:
        if None in (ends.eager_share, ends.mode_share):
            return [
                f"{alone}: what the state of the heap costs cannot be told from these launches."
            ]
        if max(default.eager_faults, default.mode_faults) > MOST_FAULTS:
            return [f"{alone}: what the state of the heap costs here is below {SMALLEST:.0%}."]
        return [f"{alone}: the state of the heap costs neither side any time here."]
    return [
        f"{alone}: {default.eager_faults:,.0f} page faults a call in eager, "
        f"{default.mode_faults:,.0f} compiled.",
        f"With {REMEDY} it takes {settled.ratio}, without page faults. Malloc's share is "
        f"{' and '.join(shares)}.",
    ]

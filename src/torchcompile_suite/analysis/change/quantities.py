"""What is compared between two releases, and how the machine drifts within one of them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from ...cell import Cell
from ...measurement import Launch, Measurement
from ...modes import EAGER
from .. import statistics

# A change smaller than this (relative) is of no practical interest, however certain it is.
SMALLEST = 0.01

# The series, and the round in it (`Launch.series`).
Round = tuple[str, int]
LaunchValues = Callable[[Sequence[Launch]], list[float]]
_Kept = TypeVar("_Kept")


def _of_pairs(value: Callable[[Launch], float]) -> LaunchValues:
    return lambda launches: [value(launch) for launch in statistics.counted(launches)]


def _costs(kind: str) -> LaunchValues:
    # A launch that compiled nothing has the cost 0, which has no logarithm.
    return lambda launches: [cost for cost in statistics.compile_costs(launches, kind) if cost > 0]


def _memory(launches: Sequence[Launch]) -> list[float]:
    kept = statistics.undisturbed(launches)
    return [float(peak) for launch in kept if (peak := launch.peak_memory_bytes)]


class Quantity(NamedTuple):
    """A figure that is compared between releases.

    - ``values``: the figure of each launch that has it.
    - ``concerns``: whether a cell has the figure.
    - ``drifts``: the machine's drift is in it, so it is compared round by round or not at all. In a
      ratio the drift cancels, and memory has none.
    - ``of_start``: the figure depends on what the process had imported when it was forked, so it is
      compared only where that was the same.
    - ``spreads_as``: another quantity, whose spread is the source of the variance for a quantity
      with one sample a measurement. It must spread at least as much.
    - ``smallest``: a smaller change (relative) does not count.
    """

    values: LaunchValues
    concerns: Callable[[Cell], bool]
    drifts: bool = False
    of_start: bool = False
    spreads_as: str = ""
    smallest: float = SMALLEST


def _every(_: Cell) -> bool:
    return True


def _compared(cell: Cell) -> bool:
    # The ratio of eager to eager is 1 by definition.
    return cell.mode != EAGER or cell.baseline != EAGER


def _compiles(cell: Cell) -> bool:
    # Eager in another precision is compared, and compiles nothing: its first calls are slow.
    return cell.mode != EAGER


QUANTITIES = {
    "time ratio": Quantity(_of_pairs(statistics.ratio_of), _compared),
    "eager": Quantity(_of_pairs(statistics.eager_latency_of), _every, drifts=True),
    "compiled": Quantity(_of_pairs(statistics.latency_of), _compared, drifts=True),
    # Measured again, cold starts of one cell differ by 7 %, and warm ones by 10 % (results/).
    # A measurement has one cold start, always in the first round.
    "cold compile": Quantity(
        _costs("cold"),
        _compiles,
        drifts=True,
        of_start=True,
        spreads_as="warm compile",
        smallest=statistics.COMPILE_MARGIN,
    ),
    "warm compile": Quantity(_costs("warm"), _compiles, drifts=True, of_start=True),
    # A resident set grows in steps. Depending on the layout of the heap, one launch in three of a
    # transformer has 27 MB (4 %) more than the others. Three launches a side cannot tell such a
    # step from a change.
    "memory": Quantity(_memory, _every, of_start=True, smallest=0.05),
}


def values(name: str, launches: Sequence[Launch]) -> list[float]:
    """The figure of that name (a key of `QUANTITIES`), one value for each launch that has it."""
    return QUANTITIES[name].values(launches)


def by_round(name: str, launches: Sequence[Launch]) -> dict[Round, float]:
    """The figure of that name in each round of a series that has it."""
    elsewhere = set(map(id, statistics.elsewhere(launches)))
    return {
        (launch.series, launch.round): value
        for launch in launches
        if launch.round and id(launch) not in elsewhere
        for value in values(name, [launch])
    }


class Logs(NamedTuple):
    """The logs of at least one value: their mean, their variance (NaN of one), their number."""

    mean: float
    variance: float
    number: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Logs | None:
        """The logs of these values; None without any."""
        if not values:
            return None
        variance = statistics.log_variance(values) if len(values) > 1 else math.nan
        return cls(statistics.log_mean(values), variance, len(values))


class Side:
    """A release with its measurements on one machine, one measurement for each cell.

    Keeps what is computed from it alone, because a release is compared with many others.
    """

    def __init__(self, release: str, measurements: Iterable[Measurement]) -> None:
        """Of two measurements of a cell, the later one counts."""
        self.release = release
        self.cells = {measurement.cell: measurement for measurement in measurements}
        self._kept: dict[Hashable, Any] = {}

    def kept(self, key: Hashable, make: Callable[[], _Kept]) -> _Kept:
        """What ``make`` returns, which depends on this release and the key only."""
        if key not in self._kept:
            self._kept[key] = make()
        found: _Kept = self._kept[key]
        return found

    def values(self, cell: Cell, name: str) -> list[float]:
        """The figure of that name (see `values`); empty for a cell that failed."""
        return self.kept(("values", cell, name), lambda: values(name, self.timed(cell)))

    def logs(self, cell: Cell, name: str) -> Logs | None:
        """The logs of `values`; None if there are none."""
        return self.kept(("logs", cell, name), lambda: Logs.of(self.values(cell, name)))

    def rounds(self, cell: Cell, name: str) -> dict[Round, float]:
        """The figure of that name by round (see `by_round`); empty for a cell that failed."""
        return self.kept(("rounds", cell, name), lambda: by_round(name, self.timed(cell)))

    def starts(self, cell: Cell) -> frozenset[tuple[str, ...]]:
        """What the processes of the cell had imported when they were forked."""
        return self._of(cell, "starts", lambda launches: frozenset(one.began for one in launches))

    def methods(self, cell: Cell) -> frozenset[int]:
        """The methods by which the cell was timed."""
        return self._of(cell, "methods", lambda launches: frozenset(one.method for one in launches))

    def packages(self, cell: Cell) -> Mapping[str, str]:
        """The versions of packages beside PyTorch."""
        environments = [one.environment for one in self.cells[cell].launches if one.environment]
        return environments[-1].packages if environments else {}

    def settings(self, cell: Cell) -> dict[str, str]:
        """The threads and the environment variables of the cell's processes; empty if not known.

        Without variables that torch and Triton set themselves.
        """
        environment = self.cells[cell].environment
        if environment is None:
            return {}
        own = ("CUDA_MODULE_LOADING", "TRITON_PTXAS_PATH")
        variables = {name: text for name, text in environment.variables.items() if name not in own}
        return {"threads": str(environment.threads), **variables}

    def loop(self, cell: Cell) -> tuple[str, int] | None:
        """What the calibration loop of the cell was (`Environment.loop`); None if not known."""
        environment = self.cells[cell].environment
        return environment.loop if environment else None

    def calibration_s(self, cell: Cell) -> float | None:
        """Median seconds of the calibration loop during the cell; None if unknown."""
        return self._of(cell, "calibration", statistics.calibration_time)

    def handoff_ns(self, cell: Cell) -> float | None:
        """Median nanoseconds of a hand-off between two processors; None if unknown."""
        return self._of(cell, "hand-off", statistics.handoff)

    def _of(self, cell: Cell, key: str, make: Callable[[Sequence[Launch]], _Kept]) -> _Kept:
        """What ``make`` makes of all launches of the cell."""
        return self.kept((key, cell), lambda: make(self.cells[cell].launches))

    def timed(self, cell: Cell) -> Sequence[Launch]:
        """The launches of a cell; none of one that failed."""
        measurement = self.cells[cell]
        return measurement.launches if measurement.outcome.ok else []


def drift_between(sides: Sequence[Side]) -> float:
    """The drift between measurements of the same work, the same call in eager, within each release.

    It is what the means of these measurements differ by, beyond what their launches explain, as the
    half-width of a 95 % interval of the log of a time; NaN where no work was measured twice. It
    says nothing about two releases: what slows all measurements of one of them alike is not in it.
    """
    parts = [side.kept("drift", partial(_within, side)) for side in sides]
    variance, degrees = statistics.pooled(parts)
    quantile = statistics.t_quantile((1 + statistics.CONFIDENCE) / 2, int(degrees))
    return quantile * math.sqrt(max(variance, 0.0))  # in this order NaN stays


def _within(side: Side) -> tuple[float, float]:
    """The variance of the drift within one release, whose estimate may be below 0, and its degrees
    of freedom.
    """
    groups: dict[Cell, list[list[float]]] = defaultdict(list)
    for cell in side.cells:
        times_s = side.values(cell, "eager")
        if len(times_s) > 1:
            groups[msgspec.structs.replace(cell, mode=EAGER)].append(times_s)
    squares, degrees = 0.0, 0
    for group in groups.values():
        if len(group) < 2:
            continue
        means = [statistics.power(statistics.log_mean(times_s)) for times_s in group]
        explained = math.fsum(
            statistics.log_variance(times_s) / len(times_s) for times_s in group
        ) / len(group)
        squares += (len(group) - 1) * (statistics.log_variance(means) - explained)
        degrees += len(group) - 1
    return (squares / degrees, degrees) if degrees else (math.nan, 0)

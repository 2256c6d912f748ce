"""Whole processes: how a service starts, and whether the memory of one grows with its calls.

Of starts: each way of a model, and which of them is the fastest. Of memory: by how much it grows a
call, and how surely.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import combinations
from statistics import median
from typing import NamedTuple

import msgspec

from ..cell import Cell
from ..measurement import Growth, Launch, Started
from ..request import Side
from ..results.records import Record
from . import statistics
from .payoff import Payoff, fastest, payoff
from .statistics import Interval
from .summary import Row, row

PHASES = (
    *("interpreter", "imports", "model", "weights and inputs"),
    *("artefacts", "compiler", "first call"),
)
"""The phases of a process until its first result, in their order. A process has some of them."""
# The share of the calls that does not count. Caches fill and the heap finds its size in them.
WARM_UP_SHARE = 0.3
# Bytes a call: 64 MB in a million calls.
NOTICEABLE_BYTES = 64.0


class Way(NamedTuple):
    """One way to start: its figures, and what the compiled processes did.

    ``row``: its times are those to the first result. ``phases_s``: seconds of the phases of
    `PHASES`, medians over launches. Empty, None or "" for a way that has no numbers.
    """

    row: Row
    phases_s: dict[str, float]
    artefact_bytes: int | None
    loader: str


class Model(NamedTuple):
    """A model with all its ways.

    ``cell``: without a start. ``eager_phases_s``: see `Way`, over the launches of all ways.
    """

    cell: Cell
    eager_phases_s: dict[str, float]
    ways: list[Way]

    @property
    def fastest(self) -> list[Way]:
        """The compiled way that starts fastest, then those that cannot be told from it."""
        return fastest((way.row.ratio, way) for way in self.ways if way.row.ratio is not None)

    @property
    def eager_s(self) -> Interval | None:
        """Seconds to the first result in eager, beside the fastest way; None without any."""
        return self.fastest[0].row.eager_s if self.fastest else None

    @property
    def payoff(self) -> Payoff:
        """The fastest compiled way compared with eager."""
        return payoff(self.fastest[0].row.ratio) if self.fastest else Payoff.UNKNOWN


def models(records: Iterable[Record]) -> list[Model]:
    """The models whose starts were measured, or tried, in the order of the records."""
    by_model: dict[Cell, list[Record]] = {}
    for record in records:
        cell = record.measurement.cell
        if cell.start:
            plain = msgspec.structs.replace(cell, start="")
            by_model.setdefault(plain, []).append(record)
    return [_model(cell, of_model) for cell, of_model in by_model.items()]


def _model(cell: Cell, records: Sequence[Record]) -> Model:
    eager = [
        launch.eager_start
        for record in records
        if record.measurement.outcome.ok
        for launch in statistics.counted(record.measurement.launches)
    ]
    return Model(cell, _phases(eager), [_way(record) for record in records])


def _way(record: Record) -> Way:
    measurement = record.measurement
    started = []
    if measurement.outcome.ok:
        started = [launch.start for launch in statistics.counted(measurement.launches)]
    known = next((one for one in started if one is not None), None)
    return Way(
        row(record),
        _phases(started),
        known.artefact_bytes if known else None,
        known.loader if known else "",
    )


def _phases(started: Sequence[Started | None]) -> dict[str, float]:
    known = [one.phases_s for one in started if one is not None]
    return {
        name: median(phases[name] for phases in known if name in phases)
        for name in PHASES
        if any(name in phases for phases in known)
    }


class Grows(str, Enum):
    """What an interval of growth says."""

    YES = "grows"
    NO = "does not grow"
    UNKNOWN = "cannot tell"


class Growing(NamedTuple):
    """The memory of one side of a measurement.

    - ``calls``: those of each launch, the median.
    - ``resident``: bytes a call by which the resident set grows, over launches. ``allocated``: by
      which the allocator has handed out more; None where it is not known.
    - ``judged``: the one of the two that decides: the resident set on a CPU, and on an accelerator
      what torch's allocator has handed out there, because the host's memory says nothing about it.
    - ``first_bytes``, ``last_bytes``: of what is judged, at the first and the last sample, medians.
    - ``samples``: one launch, for what does not differ between launches.
    """

    calls: int
    resident: Interval
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
    resident = statistics.mean_interval([resident_slope(one) for one in sampled])
    allocated = statistics.mean_interval(slopes) if len(slopes) == len(sampled) else None
    if device == "cpu":
        judged, samples = resident, [one.resident_bytes for one in sampled]
    else:
        judged = allocated or statistics.mean_interval([])
        samples = [one.allocated_bytes or [0] for one in sampled]
    return Growing(
        round(median(one.calls[-1] for one in sampled)),
        resident,
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

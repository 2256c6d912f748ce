"""One figure over the releases: of one cell, and as geometric mean over a fixed set of cells.

Releases are measured at different times, and the whole machine may be slower at one of them. This
drift (`change.drift_between`) changes times and not ratios. It is the same for all cells of a
release. Every interval of a time in this module includes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ..cell import Cell
from . import change, statistics
from .statistics import Interval
from .summary import Row

# Each has a history of its own, so that a faster eager is not read as a slower compiled model.
SERIES: dict[str, Callable[[Row], Interval | None]] = {
    "eager": lambda row: row.eager_s,
    "compiled": lambda row: row.latency_s,
    "ratio": lambda row: row.ratio,
}


class Point(NamedTuple):
    """One series at one release, with its 95 % interval."""

    release: str
    series: str
    value: Interval


class Cohort(NamedTuple):
    """``cells`` have numbers in every release. ``of`` is the number of cells with any numbers."""

    cells: frozenset[Cell]
    of: int


def drift(releases: Sequence[change.Side]) -> float:
    """How much the time of the same work differs between runs.

    The half-width of a 95 % interval of the log of a time. NaN if no eager time was measured twice.
    """
    return 1.96 * math.sqrt(change.drift_between(releases).variance)


def cell_points(rows: Iterable[Row], drift: float) -> list[Point]:
    """All series of one cell; a release without numbers has no point.

    ``drift`` is that of the function of this name.
    """
    return [
        Point(row.release, name, _with_drift(name, value, drift))
        for row in rows
        for name, of in SERIES.items()
        if (value := of(row)) is not None
    ]


def _with_drift(series: str, value: Interval, drift: float) -> Interval:
    return value if series == "ratio" else statistics.widened(value, drift)


def cohort(rows: Iterable[Row], releases: Sequence[str]) -> Cohort:
    """The cells measured in each of the releases: only they can be averaged over time."""
    measured: dict[Cell, set[str]] = {}
    for row in rows:
        if row.outcome.ok:
            measured.setdefault(row.cell, set()).add(row.release)
    complete = frozenset(cell for cell, within in measured.items() if within >= set(releases))
    return Cohort(complete, len(measured))


def mean_points(
    rows: Iterable[Row], releases: Sequence[str], cells: frozenset[Cell], drift: float
) -> list[Point]:
    """The geometric mean of each series over the cells, at each release.

    Times are relative to the first release, so that all models have the same weight and both
    series start at 1. The intervals are those of the measurement, because the set of cells is
    fixed.
    """
    at = {(row.release, row.cell): row for row in rows if row.cell in cells}
    points = [
        Point(release, name, mean(name, [of(at[release, cell]) for cell in cells], drift))
        for name, of in SERIES.items()
        for release in releases
    ]
    first = {point.series: point.value.value for point in points if point.release == releases[0]}
    first["ratio"] = 1.0
    return [point._replace(value=point.value.per(first[point.series])) for point in points]


def mean(series: str, values: Iterable[Interval | None], drift: float) -> Interval:
    """The geometric mean of the values of a series that are known; of times with the drift."""
    known = statistics.geometric_mean([value for value in values if value])
    return _with_drift(series, known, drift)

"""One quantity over the releases: of one cell, and as geometric mean over a fixed cohort.

Releases are measured at different times, and the whole machine may be slower at one of them. Its
mood (`change.mood_between`) moves times and not ratios, concerns all cells of a release alike, and
is part of every interval of a time given here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ..cell import Cell
from . import change, statistics
from .statistics import Interval
from .summary import Row

# What has a history of its own: a faster eager must not pass for a slower compiled.
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
    """The cells that every one of the releases has numbers for, of all that any of them has."""

    cells: frozenset[Cell]
    of: int


def mood(releases: Sequence[change.Side]) -> float:
    """How far a time may be off because of when it was measured: the half-width of a 95 % interval
    of its log. NaN where no eager time was measured twice, which tells.
    """
    variance, _ = change.mood_between(releases)
    return 1.96 * math.sqrt(variance)


def cell_points(rows: Iterable[Row], mood: float) -> list[Point]:
    """All series of one cell; a release without numbers has no point."""
    return [
        Point(row.release, name, _at_any_time(name, value, mood))
        for row in rows
        for name, of in SERIES.items()
        if (value := of(row)) is not None
    ]


def _at_any_time(series: str, value: Interval, mood: float) -> Interval:
    return value if series == "ratio" else statistics.widened(value, mood)


def cohort(rows: Iterable[Row], releases: Sequence[str]) -> Cohort:
    """The cells measured in each of the releases: only they can be averaged over time."""
    found: dict[Cell, set[str]] = {}
    for row in rows:
        if row.outcome.ok:
            found.setdefault(row.cell, set()).add(row.release)
    complete = frozenset(cell for cell, within in found.items() if within >= set(releases))
    return Cohort(complete, len(found))


def mean_points(
    rows: Iterable[Row], releases: Sequence[str], cells: frozenset[Cell], mood: float
) -> list[Point]:
    """Each series' geometric mean over the cells, at each release.

    The times are relative to the first release, so that no slow model outweighs the others and
    both start at 1. The intervals are those of the measurement: the cohort itself is fixed.
    """
    at = {(row.release, row.cell): row for row in rows if row.cell in cells}
    points = []
    for name, of in SERIES.items():
        means: dict[str, Interval] = {}
        for release in releases:
            values = [of(at[release, cell]) for cell in cells]
            mean = statistics.geometric_mean([each for each in values if each])
            means[release] = _at_any_time(name, mean, mood)
        first = means[releases[0]].value
        scale = 1.0 if name == "ratio" else first
        points += [
            Point(release, name, Interval(*(part / scale for part in means[release])))
            for release in releases
        ]
    return points

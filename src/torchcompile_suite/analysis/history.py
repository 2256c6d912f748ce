"""One figure over the releases: of one cell, and as geometric mean over a fixed set of cells.

Cells are measured at different times, and the whole machine may be slower at one of them. This
drift (`change.drift_between`) changes times and not ratios. Every interval of a time in this module
includes it. It does not show that all of a release was measured on a slower machine: releases that
were measured in turns have that in common, and only `change` tells two others apart, by ratios.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ..cell import Cell
from . import statistics
from .statistics import Interval
from .summary import Row

# Each has a history of its own, so that a faster eager is not read as a slower compiled model.
SERIES: dict[str, Callable[[Row], Interval | None]] = {
    "eager": lambda row: row.eager_s,
    "compiled": lambda row: row.latency_s,
    "ratio": lambda row: row.ratio,
}


class Cohort(NamedTuple):
    """``cells`` have numbers in every release. ``of`` is the number of cells with any numbers."""

    cells: frozenset[Cell]
    of: int


def drifting(row: Row, drift: float) -> dict[str, Interval]:
    """The value of each series that the row has. ``drift``: `change.drift_between`."""
    return {
        name: _with_drift(name, value, drift)
        for name, of in SERIES.items()
        if (value := of(row)) is not None
    }


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


def means(
    rows: Iterable[Row],
    releases: Sequence[str],
    cells: frozenset[Cell],
    drifts: Mapping[str, float],
) -> dict[tuple[str, str], Interval]:
    """The geometric mean of each series over the cells, at each release: by release and series.

    ``cells``: those of a `cohort`, at least one. Each is of one machine, and may be of another one
    than the others. Each value is a ratio within its machine: mode over eager, or a time over the
    same cell's time at the first release, so that all models have the same weight and both series
    start at 1. The intervals are those of the measurement, because the set of cells is fixed.
    Raises ValueError for a cell of two machines.

    ``drifts``: that of each machine (`change.drift_between`). Machines drift apart from each other,
    so the drift of a mean is less than theirs.
    """
    at: dict[Cell, dict[str, Row]] = defaultdict(dict)
    machine_of: dict[Cell, str] = {}
    for row in rows:
        if row.cell in cells:
            at[row.cell][row.release] = row
            if machine_of.setdefault(row.cell, row.machine) != row.machine:
                raise ValueError("a cell comes from two machines; assemble the records first")
    share = Counter(machine_of.values())
    drift = math.hypot(*(count * drifts[machine] for machine, count in share.items())) / len(at)
    means = {}
    for release in releases:
        for name in SERIES:
            values = [_within(of, release, releases[0], name) for of in at.values()]
            mean = statistics.geometric_mean([value for value in values if value])
            # A time over another one has the drift of both.
            of_both = 0.0 if release == releases[0] else math.sqrt(2) * drift
            means[release, name] = _with_drift(name, mean, of_both)
    return means


def _within(rows: Mapping[str, Row], release: str, first: str, name: str) -> Interval | None:
    """The cell's value at the release: a ratio, or a time over that of the first release."""
    value, base = (SERIES[name](rows[one]) for one in (release, first))
    if value is None or base is None or name == "ratio":
        return None if base is None else value
    # The first release has no error beside itself.
    return Interval(1.0, 1.0, 1.0) if release == first else statistics.quotient(value, base)

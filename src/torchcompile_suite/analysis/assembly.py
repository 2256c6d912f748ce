"""The assembled history: each cell from the machine that has it most completely.

In a fleet the series of different cells come from different machines of one class. A cell is always
shown from one machine, because times of two machines are never compared. A mean over cells of
several machines is one of ratios that were measured within a machine each.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..cell import Cell
from ..measurement import Measurement
from ..results.records import Record
from .history import SERIES, Point, mean
from .statistics import Interval
from .summary import Row


class Assembled(NamedTuple):
    """The records of the chosen machines, and the machine of each cell."""

    records: list[Record]
    machine_of: dict[Cell, str]

    @property
    def machines(self) -> list[str]:
        """The machines that take part, sorted."""
        return sorted(set(self.machine_of.values()))


def assemble(records: Iterable[Record], releases: Sequence[str] = ()) -> Assembled:
    """The records of each cell from the machine that has it most completely.

    ``records``: of machines of one class, the newest of each machine, release and cell.
    ``releases``: what a complete cell has; none: any releases.

    The order of the criteria: numbers by the newest method in one series, numbers by the newest
    method, numbers, outcomes without a number, the newest start, the name of the machine.
    """
    of_cell: dict[Cell, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        of_cell[record.measurement.cell][record.machine].append(record)
    chosen = {cell: _best(candidates, set(releases)) for cell, candidates in of_cell.items()}
    kept = [one for cell, name in chosen.items() for one in of_cell[cell][name]]
    return Assembled(kept, chosen)


def _best(candidates: Mapping[str, Sequence[Record]], releases: set[str]) -> str:
    """The machine that has the most; of equal ones the first by name."""
    ranks = {name: _rank(records, releases) for name, records in candidates.items()}
    best = max(ranks.values())
    return min(name for name, rank in ranks.items() if rank == best)


def _rank(records: Sequence[Record], releases: set[str]) -> tuple[int, int, int, int, str]:
    """The criteria of `assemble`, without the name."""
    asked = [one for one in records if not releases or one.release in releases]
    measured = [one.measurement for one in asked if one.measurement.outcome.ok]
    newest = [one for one in measured if one.timed_anew]
    series = Counter(name for one in newest for name in _series(one))
    return (
        max(series.values(), default=0),
        len(newest),
        len(measured),
        len(asked),
        max((one.measurement.started_at for one in asked), default=""),
    )


def _series(measurement: Measurement) -> set[str]:
    return {launch.series for launch in measurement.launches if launch.series}


def mean_points(
    rows: Iterable[Row], releases: Sequence[str], drifts: Mapping[str, float]
) -> list[Point]:
    """The geometric mean of each series (`history.SERIES`) over cells of several machines.

    At each release, over the cells that have a number at every release. Each value is a ratio
    within its machine: mode over eager, or a time over the same cell's time at the first release.
    Empty where no cell has all releases. Raises ValueError for a cell of two machines.

    ``drifts``: that of each machine (`history.drift`). Machines drift apart from each other, so the
    drift of a mean is less than theirs.
    """
    at: dict[tuple[str, Cell], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        if row.outcome.ok and row.release in releases:
            at[row.machine, row.cell][row.release] = row
    whole = {key: of for key, of in at.items() if len(of) == len(set(releases))}
    if len({cell for _, cell in whole}) < len(whole):
        raise ValueError("a cell comes from two machines; assemble the records first")
    if not whole:
        return []
    share = Counter(machine for machine, _ in whole)
    drift = math.hypot(*(count * drifts[machine] for machine, count in share.items())) / len(whole)
    points = []
    for name in SERIES:
        for release in releases:
            values = [_within(of, release, releases[0], name) for of in whole.values()]
            points.append(Point(release, name, mean(name, values, drift)))
    return points


def _within(rows: Mapping[str, Row], release: str, first: str, name: str) -> Interval | None:
    """The cell's value at the release: a ratio, or a time over that of the first release."""
    value, base = (SERIES[name](rows[one]) for one in (release, first))
    if value is None or base is None:
        return None
    return value if name == "ratio" else value.per(base.value)

"""The assembled history: each cell from the machine that has it most completely.

In a fleet the series of different cells come from different machines of one class. A cell is always
shown from one machine, because times of two machines are never compared. A mean over cells of
several machines is one of ratios that were measured within a machine each.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..cell import Cell
from ..measurement import Measurement
from ..results.records import Record


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

"""How long a series takes, from the durations of earlier measurements."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

from ..cell import METHOD, Cell
from ..results.records import Record


class Estimate(NamedTuple):
    """Seconds of a series. ``recorded``: the number of releases with a duration of their own."""

    seconds: float
    recorded: int


class Durations:
    """The recorded durations, in seconds for one release of a series.

    A duration counts if it was measured by the present method. Of a cell and a release the median
    counts; a release without one takes the median of the cell's other releases, and a cell without
    any takes ``otherwise_s``.
    """

    def __init__(
        self, records: Iterable[Record], otherwise_s: float, machines: Container[str] = ()
    ) -> None:
        """``otherwise_s``: seconds for a release of unknown cells.

        ``records``: of any machines. Where a cell has records of ``machines``, only these count.
        """
        found: dict[Cell, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        preferred: dict[Cell, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for record in records:
            measurement = record.measurement
            if any(launch.method == METHOD for launch in measurement.launches):
                for kept in (found, preferred) if record.machine in machines else (found,):
                    kept[measurement.cell][record.release].append(measurement.duration_s)
        self._of_cell = {
            cell: {release: statistics.median(many) for release, many in of_release.items()}
            for cell, of_release in (found | preferred).items()
        }
        self.otherwise_s = otherwise_s

    def of(self, cell: Cell, releases: Sequence[str]) -> Estimate:
        """The duration of the series of these releases."""
        known = self._of_cell.get(cell, {})
        usual = statistics.median(known.values()) if known else self.otherwise_s
        seconds = sum(known.get(release, usual) for release in releases)
        return Estimate(seconds, sum(release in known for release in releases))

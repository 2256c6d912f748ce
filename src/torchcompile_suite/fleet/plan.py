"""What there is to measure: which series, in which order, for how long, and what is done already.

The longest series go first (longest processing time first): the last machine then ends at most a
third of the ideal later than it could (Graham, SIAM J. Appl. Math. 17, 1969), and far earlier where
there are many series for each machine. Ray hands out work in the order in which it gets it.
"""

from __future__ import annotations

import heapq
import math
import statistics
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from ..cell import Cell
from ..engine import series
from ..engine.series import Series
from ..engine.settings import Settings
from ..measurement import METHOD, Measurement, Outcome, Status
from ..results.records import Record


class Task(msgspec.Struct, frozen=True):
    """A series of the plan. ``seconds``: how long it takes, as far as is known."""

    id: str
    series: Series
    seconds: float


class Plan(msgspec.Struct, frozen=True):
    """What the newest run is to measure. ``hardware``: the class, as a label."""

    hardware: str
    tasks: list[Task]

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases of all series, each once."""
        return tuple(dict.fromkeys(one for task in self.tasks for one in task.series.releases))


@dataclass
class Known:
    """The results here: what they say is left for machines of a class, and how long that takes.

    - ``records``: as `results.records.read` or `analysis.summaries.read` returns them, also those
      of other machines.
    - ``hardware``: the class, as a label. ``machines``: the names of those of this class.
    - ``environment``: ASV's name of the releases' environments.
    - ``commits``: the ledger's commit of each release, because not every measurement knows its
      torch.
    - ``otherwise_s``: see `Durations`.
    """

    records: Sequence[Record]
    hardware: str
    machines: Sequence[str]
    environment: str
    commits: Mapping[str, str]
    otherwise_s: float

    def __post_init__(self) -> None:
        """Find the durations, and the newest measurements of the class."""
        self.durations = Durations(self.records, self.otherwise_s, self.machines)
        releases = {commit: release for release, commit in self.commits.items()}
        # Cell -> machine -> release -> its newest measurement.
        self._newest: dict[Cell, dict[str, dict[str, Measurement]]] = {}
        for record in self.records:
            release = releases.get(record.commit)
            if release and record.machine in self.machines and record.env_name == self.environment:
                of_cell = self._newest.setdefault(record.measurement.cell, {})
                of_cell.setdefault(record.machine, {})[release] = record.measurement

    def plan(self, cells: Iterable[Cell], releases: Sequence[str], settings: Settings) -> Plan:
        """The series of these cells: the longest first, so they are handed out in this order."""
        device = "cpu" if self.hardware.endswith("-cpu") else "cuda"
        tasks = []
        for cell in cells:
            wanted = Series.of(msgspec.structs.replace(cell, device=device), releases, settings)
            # Machines of two classes may take turns in a clone: neither goes on with the other's.
            identity = series.identity(wanted, f"{self.environment} {self.hardware}")
            seconds = self.durations.of(wanted.cell, releases).seconds
            tasks.append(Task(identity, wanted, seconds))
        tasks.sort(key=lambda task: (-task.seconds, task.id))
        return Plan(self.hardware, tasks)

    def done(self, plan: Plan) -> set[str]:
        """The series of the plan that are complete on one of the machines."""
        return {
            task.id
            for task in plan.tasks
            for of_machine in self._newest.get(task.series.cell, {}).values()
            if _complete([of_machine.get(one) for one in task.series.releases])
        }


def _complete(newest: Sequence[Measurement | None]) -> bool:
    """As `series.complete`; a release that fails by its own code is complete, too.

    `history` tries such a release alone again. A fleet would measure all of the series. The failure
    has to be of the series that the others are of.
    """
    failed = [one for one in newest if one is not None and _fails_for_ever(one.outcome)]
    others = [one for one in newest if one not in failed]
    compared = [*failed, *(one for one in others if one is not None and one.outcome.ok)]
    names = {launch.series for one in compared for launch in one.launches}
    return series.complete(others) and (not failed or (len(names) == 1 and "" not in names))


def _fails_for_ever(outcome: Outcome) -> bool:
    """Whether nothing that a user installs on the machine changes how it ends."""
    by_code = outcome.status in (Status.COMPILE_ERROR, Status.WRONG_RESULT)
    return by_code and "install" not in outcome.reason


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


class Expected(NamedTuple):
    """How a plan ends on a number of machines.

    - ``seconds``: until the last series ends.
    - ``ideal_s``: no order can end earlier. It is the total over the number of machines, or the
      longest series.
    - ``efficiency``: the share of the machines' time in which they measure.
    """

    machines: int
    seconds: float
    ideal_s: float
    efficiency: float


def expected(durations_s: Sequence[float], machines: int) -> Expected:
    """The end of series of these durations, the longest first, each on the first free machine."""
    free = [0.0] * machines
    for seconds in sorted(durations_s, reverse=True):
        heapq.heapreplace(free, free[0] + seconds)
    total, end = math.fsum(durations_s), max(free)
    ideal = max(total / machines, max(durations_s, default=0.0))
    return Expected(machines, end, ideal, total / (machines * end) if end else 1.0)

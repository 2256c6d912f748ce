"""The results of one machine, as the site shows them: by point of the axis, with their figures.

The site reads one machine after another, so that its memory does not grow with their number. The
machines of a class are read together, for their assembled history (`assembled`): a fleet divides
its cells among them.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from ..analysis import change, statistics, summaries, summary
from ..analysis.change import Comparison, Side
from ..analysis.summary import Row
from ..cell import Cell
from ..host.machine import FILE as MACHINE
from ..measurement import METHOD, Launch, Measurement
from ..presentation.hardware import title
from ..results import descriptions, machines, parsing, records, regular
from ..results.machines import Standing, assemble
from ..results.parsing import Problem
from ..results.records import Record
from . import cells
from .axis import Axis

# Points of a machine. Each pair of them is a document.
MOST_POINTS = 100

Key = tuple[str, Cell]


Code: TypeAlias = Mapping[str, Sequence[Measurement]]
"""The measurements of cells with a target, of all machines, by point."""


def code_of(records: Iterable[Record], axis: Axis) -> Code:
    """``records`` are those of cells with a target, of all machines."""
    found = cells.grouped(records, axis.point)
    return {point: [one.measurement for one in many] for point, many in found.items() if point}


class Entry(NamedTuple):
    """A record and its figures. The release of both is the point of the axis."""

    record: Record
    row: Row

    @property
    def measurement(self) -> Measurement:
        """The measurement itself, without its samples."""
        return self.record.measurement


def _loop(entry: Entry) -> Hashable:
    """The calibration loop of the entry; times of others do not compare with it."""
    environment = entry.measurement.environment
    return entry.row.machine, environment.loop if environment else None


@dataclass(eq=False)
class Machine:
    """The measurements of one machine; ``facts`` is the content of its machine.json.

    ``code`` is what was generated on any machine. ``divided``: the newest records of cells whose
    calls were divided, by machine, point and plain cell.

    The assembled history of a class is one, too: each of its cells comes from one of its
    ``machines``. Nothing that machines differ in is compared or averaged across them.
    """

    name: str
    facts: dict[str, str]
    entries: list[Entry]
    axis: Axis
    code: Code
    divided: Mapping[tuple[str, str, Cell], Record]

    @property
    def title(self) -> str:
        """The name that people use."""
        several = f", {len(self.machines)} machines" if self.several else ""
        return f"{title(self.facts, self.name)}{several}"

    @cached_property
    def machines(self) -> list[str]:
        """The machines that the cells come from, sorted."""
        return sorted({entry.row.machine for entry in self.entries})

    @cached_property
    def home(self) -> dict[Cell, str]:
        """The machine that each cell comes from."""
        return {entry.row.cell: entry.row.machine for entry in self.entries}

    @property
    def several(self) -> bool:
        """Whether this is the history of several machines."""
        return len(self.machines) > 1

    @cached_property
    def points(self) -> list[str]:
        """The points measured, oldest first."""
        return self.axis.order({entry.row.release for entry in self.entries})

    @cached_property
    def _by_point(self) -> dict[str, list[Entry]]:
        return cells.grouped(self.entries, lambda entry: entry.row.release)

    def of(self, point: str, bucket: int | None = None) -> list[Entry]:
        """The entries of one point, or of one of its buckets."""
        return [
            entry
            for entry in self._by_point.get(point, ())
            if bucket in (None, self.buckets[entry.row.cell.workload])
        ]

    def measurements(self, point: str) -> list[Measurement]:
        """The measurements of one point."""
        return [entry.measurement for entry in self.of(point)]

    @cached_property
    def sides(self) -> dict[str, dict[str, Side]]:
        """Each point on each machine, for comparisons: machine -> point -> side."""
        return {
            machine: {
                point: Side(
                    point,
                    [one.measurement for one in self.of(point) if one.row.machine == machine],
                )
                for point in self.points
            }
            for machine in self.machines
        }

    @cached_property
    def digests(self) -> dict[str, str]:
        """What tells the measurements of each point, and the names of their cells, for
        `results.cached`.
        """
        divided = cells.grouped(self.divided.items(), lambda item: item[0][1])
        return {
            point: hashlib.sha256(
                msgspec.msgpack.encode(
                    [
                        *(
                            (self.ids[one.row.cell], one.row.machine, one.measurement)
                            for one in many
                        ),
                        *(record.measurement for _, record in divided.get(point, ())),
                    ]
                )
            ).hexdigest()
            for point, many in self._by_point.items()
        }

    def compare(self, before: str, after: str) -> Comparison:
        """Two points compared, within each machine. Raises ChangeError."""
        return change.compare_machines(
            {machine: (sides[before], sides[after]) for machine, sides in self.sides.items()}
        )

    @cached_property
    def drifts(self) -> dict[str, float]:
        """How much the times of the same work differ between runs, by machine."""
        return {
            machine: change.drift_between([side for side in sides.values() if side.cells])
            for machine, sides in self.sides.items()
        }

    @property
    def drift(self) -> float:
        """The largest of the `drifts`; NaN if one is unknown."""
        values = list(self.drifts.values())
        return math.nan if any(map(math.isnan, values)) else max(values)

    @cached_property
    def standing(self) -> Standing:
        """How complete its results are. A class of machines is as one machine."""
        named = (entry.record._replace(machine=self.name) for entry in self.entries)
        return machines.standings(named)[self.name]

    def fullest(self, point: str) -> str:
        """The one of its `machines` that has most of a point, for what compares cells."""
        standings = machines.standings(entry.record for entry in self.of(point))
        return machines.in_order(standings)[0]

    @cached_property
    def method(self) -> int:
        """The method by which its times were measured (`measurement.METHOD`)."""
        return max(entry.measurement.method for entry in self.entries) or METHOD

    @cached_property
    def ids(self) -> dict[Cell, str]:
        """The name of each cell in addresses and tables; no two cells have the same."""
        return cells.ids(entry.row.cell for entry in self.entries)

    @cached_property
    def buckets(self) -> dict[str, int]:
        """The bucket of each workload: the documents of cells are divided by workload."""
        most = max(len(entries) for entries in self._by_point.values())
        return cells.buckets((cell.workload for cell in self.ids), most)

    @cached_property
    def slowed(self) -> dict[Key, float]:
        """Each point and cell that should be measured again: a neighbour slowed the processors.

        With how many times as slow as at their best they were.
        """
        launches: dict[Hashable, list[Launch]] = defaultdict(list)
        for entry in self.entries:
            launches[_loop(entry)] += entry.measurement.launches
        quiet_s = {loop: statistics.quietest(many) for loop, many in launches.items()}
        factors = {
            (entry.row.release, entry.row.cell): statistics.slowdown(
                entry.measurement.launches, quiet_s[_loop(entry)]
            )
            for entry in self.entries
        }
        return {key: one for key, one in factors.items() if one > statistics.MOST_SLOWDOWN}

    @property
    def device(self) -> str:
        """The kind of device that was measured."""
        return self.entries[0].row.cell.device

    @property
    def older_method(self) -> str:
        """A warning if its times were measured by an older method; else the empty string."""
        if self.method == METHOD:
            return ""
        return (
            f"These times were measured by method {self.method}, which method {METHOD} has "
            "replaced (see docs/method.md). The state of the heap in them is not known, and they "
            "cannot be compared with newer times."
        )


class Loaded(NamedTuple):
    """A machine, or None if it has no measurement that can be shown.

    - ``unread``: the files and lines that could not be read.
    - ``left_out``: what was read and cannot be shown.
    """

    machine: Machine | None
    unread: list[Problem]
    left_out: list[Problem]


def load(folder: Path, axis: Axis, code: Code) -> Loaded:
    """Read a machine's folder. What cannot be read becomes a problem and does not stop the rest."""
    name = folder.name
    read = summaries.read_machine(folder)
    unread = list(read.problems)
    found = [record._replace(release=axis.point(record)) for record in read.records]
    left_out = [
        Problem(f"{name}/{commit}", f"nothing says which {axis.noun} this is")
        for commit in sorted({record.commit for record in found if not record.release})
    ]
    kept = [record for record in found if record.release]
    points = axis.order({record.release for record in kept})
    if older := set(points[:-MOST_POINTS]):
        said = f"{len(points)} {axis.noun}s: the oldest {len(older)} are left out"
        left_out.append(Problem(name, said))
        kept = [record for record in kept if record.release not in older]
    if not kept:
        return Loaded(None, unread, left_out)
    # If a point was measured in two environments, the later measurement counts.
    latest = {(record.release, record.measurement.cell): record for record in kept}
    mine = _of_one_method(name, latest, axis, left_out)
    rows = summary.rows(mine.values())
    facts: dict[str, str] = {}
    with parsing.named(f"{name}/{MACHINE}", unread):
        fields = descriptions.read(folder).fields
        facts = {key: str(value) for key, value in fields.items() if key != "version"}
    entries = [Entry(mine[row.release, row.cell], row) for row in rows]
    divided = summaries.divided_by_place(summaries.read_divided(folder), axis.point)
    machine = Machine(name, facts, entries, axis, code, divided)
    return Loaded(machine, unread, left_out)


def assembled(hardware: str, machines: Sequence[Machine], axis: Axis, code: Code) -> Machine:
    """The history of a class of machines: each cell from the one that has it most completely.

    Only machines with the newest method take part. Its name cannot clash with a machine's name.
    """
    newest = max(machine.method for machine in machines)
    parts = [machine for machine in machines if machine.method == newest]
    records = [entry.record for machine in parts for entry in machine.entries]
    machine_of = assemble(records).machine_of
    entries = [
        entry
        for machine in parts
        for entry in machine.entries
        if machine_of[entry.row.cell] == entry.record.machine
    ]
    # Modes of one model stay side by side, whichever machines they come from.
    entries.sort(key=lambda one: (one.row.cell.workload, one.row.cell.batch_size))
    facts = {
        key: value
        for key, value in parts[0].facts.items()
        if all(machine.facts.get(key) == value for machine in parts)
    }
    found = [item for machine in parts for item in machine.divided.items()]
    # The records of a cell's own machine come last: they count.
    found.sort(key=lambda item: machine_of.get(item[0][2]) == item[1].machine)
    divided = dict(found)
    return Machine(f"class:{hardware}", facts, entries, axis, code, divided)


def identity(folder: Path) -> list[str]:
    """Cache key of the content of a machine's folder, for `results.cached`."""
    files = [file for of_place in records.files(folder)[0].values() for file in of_place]
    return [folder.name, regular.digest(folder / MACHINE), *map(records.identity, files)]


def _of_one_method(
    name: str, latest: dict[Key, Record], axis: Axis, problems: list[Problem]
) -> dict[Key, Record]:
    """The records that were timed by the machine's newest method: others cannot be compared."""
    newest = max(record.measurement.method for record in latest.values())
    mine = {
        key: record for key, record in latest.items() if record.measurement.method in (0, newest)
    }
    old = Counter(key[0] for key in latest if key not in mine)
    problems += [
        Problem(
            f"{name}, {axis.facts(point).label}",
            f"timed by an older method than the machine's newest: {count}; measure again",
        )
        for point, count in old.items()
    ]
    return mine

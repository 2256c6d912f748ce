"""What was generated for targets, by release: integers, compared exactly.

The counts have no noise and belong to no machine: a change of one kernel is a change. Two machines
that disagree about a release are a fault of the suite (`disagreements`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from .. import matrix
from ..cell import Cell
from ..generated import GENERATION, Generated
from ..measurement import Outcome
from ..results.records import Record
from .summary import version_key

# The counts that others name: launches of a call, and the same where a CUDA graph is one launch.
LAUNCHES = "launches"
WITH_CUDA_GRAPHS = "with CUDA graphs"


def _total(name: str) -> Callable[[Generated], int | None]:
    return lambda generated: generated.total(name)


COUNTS: dict[str, Callable[[Generated], int | None]] = {
    "graphs": lambda generated: generated.graphs,
    "graph breaks": lambda generated: len(generated.graph_breaks),
    "Triton kernels": _total("triton_kernels"),
    LAUNCHES: _total("launches"),
    "of libraries": _total("library_launches"),
    "of them backward": lambda generated: (
        None if generated.backward is None else generated.backward.launches
    ),
    WITH_CUDA_GRAPHS: _total("launches_with_cuda_graphs"),
    "nodes before fusion": _total("nodes_before"),
    "nodes after fusion": _total("nodes_after"),
    "bytes before fusion": _total("bytes_before"),
    "bytes after fusion": _total("bytes_after"),
    "lines of code": _total("source_lines"),
}
"""Each count of a `Generated`; None where it has none."""


class Row(NamedTuple):
    """What a release generated for a cell. ``counts`` is empty for a cell that failed."""

    release: str
    cell: Cell
    outcome: Outcome
    counts: dict[str, int]
    generated: Generated | None


class Difference(Struct, frozen=True):
    """A count (of `COUNTS`) that differs between two releases; None where one of them has none."""

    cell: Cell
    name: str
    before: int | None
    after: int | None


class Gap(Struct, frozen=True):
    """A cell that cannot be compared, and why."""

    cell: Cell
    reason: str


class Step(NamedTuple):
    """A release of a cell's history, and what differs from the last release before with code.

    ``before`` is that release; empty if there is none, or if this one has no code.
    """

    before: str
    row: Row
    differences: list[Difference]


class Comparison(NamedTuple):
    """Two releases, compared exactly. ``compared``: the number of cells that both have."""

    before: str
    after: str
    compared: int
    differences: list[Difference]
    gaps: list[Gap]


def row(record: Record) -> Row:
    """The record's measurement as a row."""
    measurement = record.measurement
    generated = measurement.generated
    counts = {} if generated is None else counts_of(generated)
    cell = matrix.on_any_device(measurement.cell)
    return Row(record.release, cell, measurement.outcome, counts, generated)


def counts_of(generated: Generated) -> dict[str, int]:
    """The counts that are known."""
    return {name: value for name, of in COUNTS.items() if (value := of(generated)) is not None}


def count_of_launches(rows: Iterable[Row]) -> str:
    """Which count tells the launches of these cells: in a mode with CUDA graphs a graph is one."""
    graphs = any(WITH_CUDA_GRAPHS in row.counts for row in rows)
    return WITH_CUDA_GRAPHS if graphs else LAUNCHES


def of_any_machine(records: Iterable[Record]) -> list[Record]:
    """A record for each release and cell: of several machines, one that has code if any has."""
    found: dict[tuple[str, Cell], Record] = {}
    for record in records:
        at = record.release, matrix.on_any_device(record.measurement.cell)
        ok = record.measurement.outcome.ok
        if at not in found or (ok and not found[at].measurement.outcome.ok):
            found[at] = record
    return list(found.values())


def rows(records: Iterable[Record], releases: Sequence[str] = ()) -> list[Row]:
    """A row for each release and cell of ``records.generated``, of those releases if any is named.

    By workload, phase, mode and target, then by release.
    """
    wanted = (one for one in records if not releases or one.release in releases)
    return sorted(map(row, of_any_machine(wanted)), key=_order)


def _order(of: Row) -> tuple[object, ...]:
    cell = of.cell
    place = (cell.workload, cell.phase, cell.batch_size, cell.target, cell.mode)
    return (*place, version_key(of.release))


def compare(records: Iterable[Record], before: str, after: str) -> Comparison:
    """Two releases: every count of every cell that differs. Empty if nothing was generated."""
    sides: dict[str, dict[Cell, Row]] = {before: {}, after: {}}
    for one in rows(records, (before, after)):
        sides[one.release][one.cell] = one
    differences: list[Difference] = []
    gaps: list[Gap] = []
    compared = 0
    for cell in dict.fromkeys([*sides[before], *sides[after]]):
        old, new = sides[before].get(cell), sides[after].get(cell)
        reason = _gap(before, old) or _gap(after, new)
        if reason or old is None or new is None:
            gaps.append(Gap(cell, reason))
        else:
            compared += 1
            differences += _differences(old, new)
    return Comparison(before, after, compared, differences, gaps)


def _differences(old: Row, new: Row) -> list[Difference]:
    return [
        Difference(new.cell, name, old.counts.get(name), new.counts.get(name))
        for name in COUNTS
        if old.counts.get(name) != new.counts.get(name)
    ]


def _gap(release: str, of: Row | None) -> str:
    if of is None:
        return f"not generated with {release}"
    if of.generated is None:
        return f"{release}: {of.outcome}"
    return ""


def steps(rows: Iterable[Row], releases: Sequence[str]) -> list[Step]:
    """The history of each cell: its rows in the order of ``releases``, which are all that count.

    A release without code of a cell changes nothing: the next one is compared with the last that
    has code.
    """
    places = {release: place for place, release in enumerate(releases)}
    by_cell: dict[Cell, list[Row]] = {}
    for one in rows:
        if one.release in places:
            by_cell.setdefault(one.cell, []).append(one)
    made = []
    for mine in by_cell.values():
        last: Row | None = None
        for one in sorted(mine, key=lambda one: places[one.release]):
            if one.generated is None or last is None:
                made.append(Step("", one, []))
            else:
                made.append(Step(last.release, one, _differences(last, one)))
            last = one if one.generated else last
    return made


def disagreements(records: Iterable[Record]) -> list[tuple[str, Cell, list[str]]]:
    """Releases and cells of which several machines recorded different code: there must be none.

    Each with the names of the machines. Of graph breaks only the number is compared: a version of
    the suite words the reasons, and a line moves with the suite's own files. Nor is the version of
    counting compared: of the records that are read, an older one counts alike.
    """
    found: dict[tuple[str, Cell], dict[bytes, list[str]]] = {}
    for record in records:
        if (code := record.measurement.generated) is not None:
            at = record.release, matrix.on_any_device(record.measurement.cell)
            unworded = msgspec.structs.replace(code, graph_breaks=[], generation=GENERATION)
            content = msgspec.json.encode((len(code.graph_breaks), unworded))
            found.setdefault(at, {}).setdefault(content, []).append(record.machine)
    return [
        (release, cell, sorted(name for names in contents.values() for name in names))
        for (release, cell), contents in found.items()
        if len(contents) > 1
    ]

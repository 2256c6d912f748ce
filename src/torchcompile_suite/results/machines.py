"""Which machine's results a command shows, and the site first: the one rule for all of them.

1. The machine that the user names with ``--machine``.
2. The machine with the most complete results of what is asked. A failure is a result, too.

Of equally complete ones it is this machine. One line says why it is another one: a handful of
results of this machine does not hide the full history of another.

"Most complete" counts records with numbers: a cell in two releases is two (`Standing`). Those of
the newest method (`measurement.METHOD`) count first. A command that asks about completeness itself
counts all of them first.

In a fleet the series of different cells come from different machines of one class. Then each cell
is shown from the machine that has it most completely (`assemble`), and always from one, because
times of two machines are never compared.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from ..cell import Cell
from ..errors import SuiteError
from ..host import machine as hosts
from . import descriptions
from .records import Record, machine_folders


class NoResultsError(SuiteError):
    """No machine has results for what is asked. The message says what to do."""


class Choice(NamedTuple):
    """The machine to show. ``line`` says why, and is empty where the user need not be told."""

    machine: str
    line: str = ""


class Standing(NamedTuple):
    """How complete the results of a machine are: its numbers of records with numbers.

    ``newest``: those of the newest method.
    """

    newest: int
    measured: int


def classes(results: Path) -> dict[str, str]:
    """The class of each machine that describes itself (`host.machine.class_of`), by name.

    Machines of one class have the same hardware. A machine whose description cannot be read is left
    out.
    """
    found = {}
    for folder in machine_folders(results)[0]:
        with contextlib.suppress(ValueError):
            found[folder.name] = hosts.class_of(descriptions.read(folder).fields)
    return found


def standings(
    records: Iterable[Record], wanted: Set[str] = frozenset(), *, every: bool = False
) -> dict[str, Standing]:
    """The standing of each machine with records of the releases, or of any, if none is wanted.

    A record without numbers is a result, too. With ``every``: of each machine with records of all
    of them, over the cells that all have.
    """
    held: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if not wanted or record.release in wanted:
            held[record.machine].append(record)
    found = {}
    for name, mine in held.items():
        if not every or {record.release for record in mine}.issuperset(wanted):
            measured = [record for record in mine if record.measurement.outcome.ok]
            newest = [record for record in measured if record.measurement.timed_anew]
            shared_by = len(wanted) if every else 0
            found[name] = Standing(_count(newest, shared_by), _count(measured, shared_by))
    return found


def _count(records: Iterable[Record], shared_by: int) -> int:
    """The number of records, each cell of a release once; or of the cells that so many releases
    share, unless ``shared_by`` is 0.
    """
    held = {(record.release, record.measurement.cell) for record in records}
    found = Counter(cell for _, cell in held)
    return sum(1 for n in found.values() if n == shared_by) if shared_by else found.total()


def in_order(
    standings: Mapping[str, Standing],
    *,
    completeness_first: bool = False,
    first: Container[str] = (),
) -> list[str]:
    """The machines, the most complete one first.

    Of two with one standing that of ``first`` comes first, and then that with the smaller name.
    """

    def place(name: str) -> tuple[object, ...]:
        counts = standings[name][:: -1 if completeness_first else 1]
        return *(-count for count in counts), name not in first, name

    return sorted(standings, key=place)


def choose(
    records: Iterable[Record],
    releases: Sequence[str],
    *,
    here: str,
    named: str | None = None,
    known: Iterable[str] = (),
    labels: Sequence[str] = (),
    completeness_first: bool = False,
    every: bool = True,
    own: bool = False,
) -> Choice:
    """The machine whose results of all ``releases`` are shown (of any release, if none is asked).

    Without ``every``, results of one of the releases are enough. With ``own`` it is this machine,
    if it has any.

    ``here`` is the name of this machine, and ``named`` is the one that the user asked for.
    ``known`` are machines without records that can be named, too. ``labels`` are the releases as
    the user wrote them. Raises NoResultsError.
    """
    records = list(records)
    names = sorted({*(record.machine for record in records), *known})
    if named is not None:
        if named not in names:
            raise NoResultsError(
                f"no results of machine {named!r}; there are results of: "
                f"{', '.join(names) or 'no machine'}"
            )
        return Choice(named)
    ranks = standings(records, {*releases}, every=every)
    asked = " and ".join(labels or releases)
    if not ranks:
        raise NoResultsError(_nothing(labels or releases, names))
    best = in_order(ranks, completeness_first=completeness_first, first={here})[0]
    if best == here or (own and here in ranks):
        return Choice(here)
    return Choice(best, _line(best, asked, here, ranks))


def _line(best: str, asked: str, here: str, ranks: Mapping[str, Standing]) -> str:
    has = f"{'fewer' if here in ranks else 'none'}{f' of {asked}' if asked else ''}"
    others = f" (there are: {', '.join(sorted(ranks))})" if len(ranks) > 1 else ""
    return (
        f"results of {best}: this machine ({here}) has {has}; choose another with --machine "
        f"NAME{others}"
    )


def _nothing(asked: Sequence[str], names: Sequence[str]) -> str:
    if not names:
        return "nothing was measured yet; start with: nox -s bench"
    commands = " and ".join(f"asv run {name}^!" for name in asked)
    return (
        f"no machine has results of {' and '.join(asked)}; measure here with: {commands} "
        f"(machines with other results: {', '.join(names)})"
    )


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
    ``releases``: those that count; none: all.

    The order of the criteria: numbers by the newest method in one series, numbers by the newest
    method, numbers, outcomes without a number, the newest start, the name of the machine.
    """
    of_cell: dict[Cell, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if not releases or record.release in releases:
            of_cell[record.measurement.cell][record.machine].append(record)
    # Of equal ones the first by name.
    chosen = {
        cell: max(sorted(of), key=lambda name: _rank(of[name])) for cell, of in of_cell.items()
    }
    kept = [one for cell, name in chosen.items() for one in of_cell[cell][name]]
    return Assembled(kept, chosen)


def _rank(records: Sequence[Record]) -> tuple[int, int, int, int, str]:
    """The criteria of `assemble`, without the name."""
    measured = [one.measurement for one in records if one.measurement.outcome.ok]
    newest = [one for one in measured if one.timed_anew]
    series = Counter(
        name
        for one in newest
        for name in {launch.series for launch in one.launches if launch.series}
    )
    return (
        max(series.values(), default=0),
        len(newest),
        len(measured),
        len(records),
        max(one.measurement.started_at for one in records),
    )

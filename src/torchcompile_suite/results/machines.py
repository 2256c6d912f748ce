"""Which machine's results a command shows, and the site first: the one rule for all of them.

1. The machine that the user names with ``--machine``.
2. This machine, if it has results for what is asked. A failure is a result, too.
3. The machine with the most complete results, and one line says so.

"Most complete" counts records with numbers: a cell in two releases is two (`Standing`). Those of
the newest method (`measurement.METHOD`) count first. A command that asks about completeness itself
counts all of them first.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

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
) -> Choice:
    """The machine whose results of all ``releases`` are shown (of any release, if none is asked).

    Without ``every``, results of one of the releases are enough.

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
    if here in ranks:
        return Choice(here)
    if not ranks:
        raise NoResultsError(_nothing(labels or releases, names))
    best = in_order(ranks, completeness_first=completeness_first)[0]
    return Choice(best, _line(best, asked, here, sorted(ranks)))


def _line(best: str, asked: str, here: str, names: Sequence[str]) -> str:
    others = f" (there are: {', '.join(names)})" if len(names) > 1 else ""
    return (
        f"results of {best}: this machine ({here}) has none{f' of {asked}' if asked else ''}; "
        f"choose another with --machine NAME{others}"
    )


def _nothing(asked: Sequence[str], names: Sequence[str]) -> str:
    if not names:
        return "nothing was measured yet; start with: nox -s bench"
    commands = " and ".join(f"asv run {name}^!" for name in asked)
    return (
        f"no machine has results of {' and '.join(asked)}; measure here with: {commands} "
        f"(machines with other results: {', '.join(names)})"
    )

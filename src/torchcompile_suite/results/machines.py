"""Which machine's results a command shows, and the site first: the one rule for all of them.

1. The machine that the user names with ``--machine``.
2. This machine, if it has results for what is asked. A failure is a result, too.
3. The machine with the most complete results, and one line says so.

"Most complete" counts measured values: a cell in two releases is two (`Standing`). Values of the
newest method count first (`cell.METHOD`). A command that asks about completeness itself counts all
values first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ..errors import SuiteError
from .records import Record


class NoResultsError(SuiteError):
    """No machine has results for what is asked. The message says what to do."""


class Value(NamedTuple):
    """One recorded result of a machine.

    ``release`` is a version or a commit, as the caller asks. ``what`` is the cell, or the benchmark
    with its parameters. ``measured`` is False for a cell that gave no number. ``newest`` says
    whether the value is of the newest method.
    """

    machine: str
    release: str
    what: Hashable
    measured: bool
    newest: bool


class Choice(NamedTuple):
    """The machine to show. ``line`` says why, and is empty where the user need not be told."""

    machine: str
    line: str = ""


class Standing(NamedTuple):
    """How complete the results of a machine are: its numbers of measured values.

    ``newest``: those of the newest method.
    """

    newest: int
    measured: int


class _Held:
    """The measured values of one machine."""

    def __init__(self) -> None:
        self.measured: set[Hashable] = set()
        self.newest: set[Hashable] = set()

    def add(self, value: Value, what: Hashable) -> None:
        """Take a value, as ``what``."""
        if value.measured:
            self.measured.add(what)
            if value.newest:
                self.newest.add(what)


def standings(values: Iterable[Value]) -> dict[str, Standing]:
    """The standing of each machine, over all releases."""
    held: dict[str, _Held] = defaultdict(_Held)
    for value in values:
        held[value.machine].add(value, (value.release, value.what))
    return {name: Standing(len(one.newest), len(one.measured)) for name, one in held.items()}


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


def of_records(records: Iterable[Record]) -> list[Value]:
    """The records as values of the rule, by version of PyTorch."""
    return [
        Value(
            record.machine,
            record.release,
            record.measurement.cell,
            record.measurement.outcome.ok,
            record.measurement.timed_anew,
        )
        for record in records
    ]


def choose(
    values: Iterable[Value],
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
    ``known`` are machines without values that can be named, too. ``labels`` are the releases as
    the user wrote them. Raises NoResultsError.
    """
    held: dict[str, dict[str, _Held]] = defaultdict(lambda: defaultdict(_Held))
    for value in values:
        held[value.machine][value.release].add(value, value.what)
        held[value.machine][""].add(value, (value.release, value.what))
    names = sorted({*held, *known})
    if named is not None:
        if named not in names:
            raise NoResultsError(
                f"no results of machine {named!r}; there are results of: "
                f"{', '.join(names) or 'no machine'}"
            )
        return Choice(named)
    wanted = list(dict.fromkeys(releases)) or [""]
    ranks = {
        name: rank
        for name in names
        if (rank := _rank([held[name].get(release) for release in wanted], every)) is not None
    }
    asked = " and ".join(labels or releases)
    if here in ranks:
        return Choice(here)
    if not ranks:
        raise NoResultsError(_nothing(labels or releases, names))
    best = in_order(ranks, completeness_first=completeness_first)[0]
    return Choice(best, _line(best, asked, here, sorted(ranks)))


def _rank(held: Sequence[_Held | None], every: bool) -> Standing | None:
    """The standing over these releases.

    With ``every``: of the values that all releases have, and None if one release has no results.
    Else: over all releases, and None if no release has results.
    """
    present = [one for one in held if one is not None]
    if not present or (every and len(present) < len(held)):
        return None
    if not every:
        return Standing(
            sum(len(one.newest) for one in present), sum(len(one.measured) for one in present)
        )
    newest = set.intersection(*(one.newest for one in present))
    measured = set.intersection(*(one.measured for one in present))
    return Standing(len(newest), len(measured))


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

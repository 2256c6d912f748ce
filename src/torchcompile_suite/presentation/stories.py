"""What releases changed about a call, and why: a table, and the draft of a story for each change.

A person edits a draft: it has what was measured, and no cause that nobody has looked for.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from ..analysis import why as analysis
from ..analysis.statistics import Interval, geometric_interval
from ..analysis.why import Why
from ..cell import Cell
from ..measurement import Launch
from ..results.records import Record
from . import terminal, why
from .sheets import Sheet
from .wording import plural

# A release that changes a call by less is not named. Two measurements in turns agree that well.
LEAST = 0.03
MOST_GROUPS = 6

History: TypeAlias = Mapping[str, Sequence[Launch]]
"""The launches of each release, which divide the calls of one cell; the oldest first."""


class Change(NamedTuple):
    """A call that a release made faster or slower.

    ``what``: the time of eager, or that of compiled code over eager's: the drift of the machine
    cancels in it. ``factor``: that of ``after`` over that of ``before``.
    """

    what: str
    before: str
    after: str
    factor: Interval
    why: Why

    @property
    def sentence(self) -> str:
        """Such as ``2.9.1 against 2.8.0, compiled over eager: 1.16 [1.12, 1.20] times``."""
        return f"{self.after} against {self.before}, {self.what}: {self.factor} times"


class ComparedReason(Struct):
    """Why the calls of a cell changed, where they were divided."""

    cell: Cell
    says: str


def reasons(
    divided: Mapping[tuple[str, str, Cell], Record], before: str, after: str
) -> Iterator[ComparedReason]:
    """Why a release changed the calls of each cell that one machine has divided in both.

    ``divided``: the records by machine, release and plain cell. Of several machines that have both
    releases of a cell, the last one counts.
    """
    found = {}
    for (machine, release, cell), later in divided.items():
        earlier = divided.get((machine, before, cell))
        if release != after or earlier is None:
            continue
        if earlier.measurement.outcome.ok and later.measurement.outcome.ok:
            found[cell] = earlier, later
    for cell, (earlier, later) in found.items():
        history = {before: earlier.measurement.launches, after: later.measurement.launches}
        for change in changes(history):
            why_so = why.reasons(change.why, (before, after))
            on = f"(on {later.machine})"
            yield ComparedReason(cell, " ".join([f"{change.sentence}.", *why_so, on]))


def changes(history: History) -> Iterator[Change]:
    """What each release changed against the one before, if the launches are sure of it."""
    for (before, earlier), (after, later) in pairwise(history.items()):
        one, two = _in_turns(earlier, later)
        if not one:
            continue  # of two runs that followed each other no time is compared
        compiled = analysis.call_against_call(one, two)
        eager = analysis.call_against_call(one, two, "eager")
        factor = geometric_interval(
            [mode / base for mode, base in zip(compiled.ratios, eager.ratios, strict=True)]
        )
        for change in (
            Change("compiled over eager", before, after, factor, compiled),
            Change("eager", before, after, eager.ratio, eager),
        ):
            value, low, high = change.factor
            sure = change.factor.known and (low > 1 or high < 1)
            if sure and abs(value - 1) >= LEAST:
                yield change


def _in_turns(before: Sequence[Launch], after: Sequence[Launch]) -> tuple[list[Launch], ...]:
    """The launches of the rounds that both have, in the same order."""
    sides = [
        {
            (one.series, one.round): one
            for one in launches
            if one.series and one.round and one.attribution
        }
        for launches in (before, after)
    ]
    both = [each for each in sides[0] if each in sides[1]]
    return tuple([side[each] for each in both] for side in sides)


def by_release(history: History) -> Sheet:
    """A line for each release: both calls, and what the compiled one loses and gains most."""
    columns = ["release", *why.SUMMED_UP]
    lines = [
        [release, *why.summed_up(analysis.compiled_against_eager(launches))]
        for release, launches in history.items()
    ]
    return Sheet(columns, frozenset(columns[1:4]), lines)


def draft(cell: Cell, history: History) -> Iterator[str]:
    """The lines of a page in Markdown."""
    cell = msgspec.structs.replace(cell, protocol="right")
    found = list(changes(history))
    yield f"# {cell}: what {plural(len(history), 'release')} changed, and where"
    yield ""
    yield from terminal.markdown(by_release(history)).splitlines()
    if not found:
        yield ""
        yield f"No change of a call by {LEAST:.0%} or more is sure."
    apart = [
        f"{before} and {after}"
        for (before, earlier), (after, later) in pairwise(history.items())
        if not _in_turns(earlier, later)[0]
    ]
    if apart:
        yield ""
        yield f"Not measured in turns, and so not compared: {'; '.join(apart)}."
    for one in found:
        names = (one.before, one.after)
        yield ""
        yield f"## {terminal.escaped(one.sentence)}"
        yield ""
        yield " ".join(map(terminal.escaped, why.sentences(one.why, names)))
        yield ""
        shown = why.sheet(one.why, names)
        yield from terminal.markdown(shown._replace(lines=shown.lines[:MOST_GROUPS])).splitlines()
        if code := why.code_changes(one.why):
            yield ""
            # A line of theirs must not end the block.
            shown_code = [line.replace("```", "'''") for line in code[: why.MOST_CODE]]
            yield from ("```diff", *shown_code, "```")
        yield ""
        yield "Repeat it:"
        yield ""
        yield from ("```console", _command(cell, one), "```")


def _command(cell: Cell, change: Change) -> str:
    command = ["torchcompile-suite", "why", cell.workload, "--batch-size", str(cell.batch_size)]
    command += ["--mode", cell.mode, *["--training"] * (cell.phase == "training")]
    command += ["--release", f"v{change.after}", "--against", f"v{change.before}", "--code"]
    return shlex.join(command)

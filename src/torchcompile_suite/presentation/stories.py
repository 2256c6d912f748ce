"""What releases changed about a call, and why: a table, and the draft of a story for each change.

A person edits a draft: it has what was measured, and no cause that nobody has looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ..analysis import why as analysis
from ..analysis.statistics import geometric_interval
from ..analysis.why import Why
from ..cell import Cell
from ..measurement import Launch
from . import terminal, why
from .sheets import Sheet
from .wording import milliseconds, ratio

# A release that changes a call by less is not named. Two measurements in turns agree that well.
LEAST = 0.03
MOST_GROUPS = 6


class Of(NamedTuple):
    """The launches of a release, which divide the calls of one cell."""

    release: str
    launches: Sequence[Launch]


class Change(NamedTuple):
    """A call that a release made faster or slower. ``call``: eager or compiled."""

    call: str
    before: str
    after: str
    why: Why

    @property
    def sentence(self) -> str:
        """Such as ``2.9.1 against 2.8.0, compiled: 1.16 [1.12, 1.20] of the time``."""
        return f"{self.after} against {self.before}, {self.call}: {self.why.ratio} of the time"


def changes(history: Iterable[Of]) -> Iterator[Change]:
    """What each release changed against the one before, if the launches are sure of it."""
    for one, two in pairwise(history):
        for call, compared in (
            ("compiled", analysis.compiled_against_compiled),
            ("eager", analysis.eager_against_eager),
        ):
            found = compared(one.launches, two.launches)
            value, low, high = found.ratio
            sure = found.ratio.known and (low > 1 or high < 1)
            if sure and abs(value - 1) >= LEAST:
                yield Change(call, one.release, two.release, found)


def by_release(history: Iterable[Of]) -> Sheet:
    """A line for each release: both calls, and what the compiled one loses and gains most."""
    columns = ["release", "eager ms", "compiled ms", "ratio [95 %]", "loses most", "gains most"]
    lines = []
    for release, launches in history:
        found = analysis.compiled_against_eager(launches)
        times = (geometric_interval(side.calls_s) for side in (found.before, found.after))
        losses, gains = why.worth_naming(found)
        named = (why.named(of[0]) if of else "-" for of in (losses, gains))
        lines.append([release, *map(milliseconds, times), ratio(found.ratio), *named])
    return Sheet(columns, frozenset(columns[1:4]), lines)


def draft(cell: Cell, history: Sequence[Of]) -> Iterator[str]:
    """The lines of a page in Markdown."""
    found = list(changes(history))
    yield f"# {cell}: what {len(history)} releases changed, and where"
    yield ""
    yield terminal.markdown(by_release(history))
    if not found:
        yield ""
        yield f"No release changed a call by {LEAST:.0%} or more."
    for one in found:
        names = (one.before, one.after)
        told = why.told(one.why, names)
        yield ""
        yield f"## {one.sentence}"
        yield ""
        yield " ".join(map(terminal.escaped, told.sentences))
        yield ""
        yield terminal.markdown(told.sheet._replace(lines=told.sheet.lines[:MOST_GROUPS]))
        if code := why.code_changes(one.why):
            yield ""
            yield from ("```diff", *code[: why.MOST_CODE], "```")
        yield ""
        yield "Repeat it:"
        yield ""
        yield from ("```console", _command(cell, one), "```")


def _command(cell: Cell, change: Change) -> str:
    training = " --training" * (cell.phase == "training")
    return (
        f"torchcompile-suite why {cell.workload} --batch-size {cell.batch_size} --mode {cell.mode}"
        f"{training} --release v{change.after} --against v{change.before} --code"
    )

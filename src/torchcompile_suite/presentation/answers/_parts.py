"""What several answers need: the rows of a question, and what they say on average."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...analysis import advice, statistics, summary
from ...analysis.payoff import Payoff, counts
from ...analysis.statistics import Interval
from ...analysis.summary import Row
from ...cell import Cell
from ...results.records import Record
from ..wording import plural

NOTHING = "Nothing of this question was measured."


def rows(records: Iterable[Record], wanted: Callable[[Cell], bool]) -> list[Row]:
    """The rows of the wanted cells, failed ones, too."""
    return summary.rows(one for one in records if wanted(one.measurement.cell))


def mean(of: Iterable[Row]) -> Interval | None:
    """The geometric mean of the ratios; None if no row has one."""
    ratios = [row.ratio for row in of if row.ratio is not None]
    return statistics.geometric_mean(ratios) if ratios else None


def without_numbers(of: Sequence[Row]) -> str:
    """The sentence of an answer whose rows have no number, or of no row."""
    if not of:
        return NOTHING
    return f"None of {plural(len(of), 'cell')} has a number; the table has the reasons."


def payoffs(of: Sequence[Row]) -> str:
    """In how many cells compiling pays: "faster in 3 of 5 cells, slower in 2"."""
    number = counts(of)
    measured = sum(number.values())
    first = f"{Payoff.GAIN.value} in {number[Payoff.GAIN]} of {plural(measured, 'cell')}"
    others = (
        f"{pays.value} in {number[pays]}"
        for pays in Payoff
        if pays is not Payoff.GAIN and number[pays]
    )
    return ", ".join([first, *others])


def by_mode(of: Sequence[Row]) -> str:
    """The mean of each mode: "mode default 0.71 [0.70, 0.72] (5 cells), ..."."""
    parts = []
    for mode in dict.fromkeys(row.cell.mode for row in of):
        mine = [row for row in of if row.cell.mode == mode and row.ratio is not None]
        if interval := mean(mine):
            # Cells may differ; launches of one cell that differ so much are no figure.
            torn = len(mine) == 1 and advice.disagreement(interval)
            figure = f"cannot tell, as {torn}" if torn else interval
            parts.append(f"mode {mode} {figure} ({plural(len(mine), 'cell')})")
    return ", ".join(parts)


def failed(of: Sequence[Row]) -> str:
    """How many rows have no number, as a further sentence; empty if all have one."""
    number = sum(row.ratio is None for row in of)
    if not number:
        return ""
    verb = "has" if number == 1 else "have"
    return f" {plural(number, 'cell')} {verb} no number: the table has the reasons."

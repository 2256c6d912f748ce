"""What answers share: their form, the figures of a cell, and sentences about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from ...analysis import advice, statistics, summary
from ...analysis.claims.evidence import Evidence, Missing
from ...analysis.statistics import Interval
from ...analysis.summary import Row
from ...cell import Cell
from ...compiled import Compiled
from ...results.records import Record
from ..sheets import Columns, Sheet, ended, sheet
from ..wording import listed, plural

NOTHING = "Nothing of this question was measured."
# The drift of the machine between two measurements is in them. Of ratios it cancels.
_DRIFTING = frozenset(["cold_s", "warm_s"])


class Answer(NamedTuple):
    """What a question's page begins with.

    ``sentence`` has the figures with their intervals. ``sheet`` has a line for each cell of the
    question in the records: its figures, or why it has none.
    """

    sentence: str
    sheet: Sheet

    @property
    def measured(self) -> bool:
        """Whether the records have a cell of the question, be it a failed one."""
        return bool(self.sheet.lines)


class Figures(NamedTuple):
    """The figures of one cell, over its launches. None where it has none.

    - ``row``: times of a call. ``compiled``: what was compiled, with unknown counts if nothing was.
    - ``cold_s``, ``warm_s``: compile costs in seconds. ``first_s``: the first call of a cold start.
    - ``error``: the largest relative error of the outputs; ``float32_error``: against float32.
    - ``memory_bytes``: the peak memory in the mode.
    - ``beside``: the cell that it is compared with; None beside itself, or if it was not measured.
    - ``over_beside``: its time over a time of that cell, where a question sets it.
    - ``between``: compares it with that cell.
    """

    row: Row
    compiled: Compiled
    cold_s: Interval | None = None
    warm_s: Interval | None = None
    first_s: Interval | None = None
    error: float | None = None
    float32_error: float | None = None
    memory_bytes: Interval | None = None
    beside: Figures | None = None
    over_beside: Interval | None = None
    between: Between | None = None

    @property
    def cell(self) -> Cell:
        """The cell that was measured."""
        return self.row.cell

    def over(self, figure: str) -> Interval | None:
        """A figure (a path of attributes) over that of ``beside``; None if either is missing."""
        of = attrgetter(figure)
        one, other = of(self), self.beside and of(self.beside)
        if one is None or other is None:
            return None
        if figure in _DRIFTING:
            assert self.between is not None
            return self.between.over(one, other)
        return statistics.quotient(one, other)

    def call_over(self, figure: str) -> Interval | None:
        """The time of a call over a time (a path) of ``beside``; None if either is missing."""
        time, other = self.row.latency_s, self.beside and attrgetter(figure)(self.beside)
        if time is None or other is None:
            return None
        assert self.between is not None
        return self.between.over(time, other)


def figures(
    records: Sequence[Record],
    wanted: Callable[[Cell], bool],
    beside: Callable[[Cell], Cell] = lambda cell: cell,
) -> dict[Cell, Figures]:
    """The figures of the wanted cells, failed ones, too.

    ``records``: all of a release on a machine. ``beside``: the cell that each cell is compared
    with, wanted or not.
    """
    between = Between(records)
    by_cell = {record.measurement.cell: record for record in records}
    found = {}
    for cell, record in by_cell.items():
        if wanted(cell):
            other = by_cell.get(beside(cell), record)
            found[cell] = _figures(record)._replace(
                beside=None if other is record else _figures(other), between=between
            )
    return found


def _figures(record: Record) -> Figures:
    measurement = record.measurement
    own = Figures(summary.row(record), measurement.compiled or Compiled())
    if not measurement.outcome.ok:
        return own
    launches = statistics.undisturbed(measurement.launches)
    cold = [one for one in measurement.launches if one.kind == "cold"]
    checks = [one.accuracy for one in measurement.launches if one.accuracy is not None]
    return own._replace(
        cold_s=_interval(statistics.compile_costs(measurement.launches, "cold")),
        warm_s=_interval(statistics.compile_costs(measurement.launches, "warm")),
        first_s=_interval([statistics.first_call_of(one) for one in cold]),
        error=_largest(one.accuracy.mode_error for one in launches if one.accuracy is not None),
        float32_error=_largest(check.float32_error for check in checks),
        memory_bytes=_interval([one.peak_memory_bytes or 0 for one in launches]),
    )


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _interval(values: Sequence[float]) -> Interval | None:
    """None without values, and if one of them is 0, which has no logarithm."""
    return statistics.geometric_interval(values) if values and min(values) > 0 else None


def rows(records: Iterable[Record], wanted: Callable[[Cell], bool]) -> list[Row]:
    """The rows of the wanted cells, failed ones, too."""
    return summary.rows(one for one in records if wanted(one.measurement.cell))


def table(found: Iterable[Figures], place: Columns[Figures], columns: Columns[Figures]) -> Sheet:
    """A line for each cell: its figures, or why it has none."""
    return sheet(found, place, columns, reason=lambda one: ended(one.row))


def told(sentence: str, of: Sequence[Row], drawn: Sheet) -> Answer:
    """The answer with how many rows have no number. ``sentence`` is empty if none of them has."""
    if sentence:
        number = sum(row.ratio is None for row in of)
        if number:
            verb = "has" if number == 1 else "have"
            sentence += f" {plural(number, 'cell')} {verb} no number: the table has the reasons."
    elif of:
        sentence = f"None of {plural(len(of), 'cell')} has a number; the table has the reasons."
    return Answer(sentence or NOTHING, drawn)


def missing(question: str, of: Sequence[Figures]) -> str:
    """The sentence where no cell of the question has figures."""
    if not of:
        return NOTHING
    ends = sorted({one.row.outcome.status.value for one in of})
    number = plural(len(of), "cell")
    if all(one.row.outcome.ok for one in of):
        why = f"what {number} would be compared with has none"
    else:
        why = f"{number} ended as {listed(ends)}"
    return f"{question} has no figures here: {why}."


def mean(of: Iterable[Interval | None]) -> Interval | None:
    """The geometric mean of those that are known; None if none is."""
    known = [one for one in of if one is not None]
    return statistics.geometric_mean(known) if known else None


def by_mode(of: Sequence[Row]) -> str:
    """The mean of each mode: "mode default 0.71 [0.70, 0.72] (5 cells), ..."."""
    parts = []
    for mode in dict.fromkeys(row.cell.mode for row in of):
        mine = [row.ratio for row in of if row.cell.mode == mode and row.ratio is not None]
        if interval := mean(mine):
            # Cells may differ; launches of one cell that differ so much are no figure.
            torn = len(mine) == 1 and advice.disagreement(interval)
            figure = f"cannot tell, as {torn}" if torn else interval
            parts.append(f"mode {mode} {figure} ({plural(len(mine), 'cell')})")
    return ", ".join(parts)


class Between:
    """Compares times of two cells of one release on one machine, measured one after the other."""

    def __init__(self, records: Sequence[Record]) -> None:
        """``records``: all of that release and machine. The drift is known from all of them."""
        self._evidence = Evidence((record.measurement for record in records), "")

    def over(self, one: Interval, other: Interval) -> Interval:
        """One time over the other. The interval includes the drift of the machine; it has no bounds
        if the drift is not known: that needs work that several cells have timed.
        """
        try:
            return self._evidence.over(one, other)
        except Missing:
            return Interval(one.value / other.value, math.nan, math.nan)

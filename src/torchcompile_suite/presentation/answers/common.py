"""What answers share: their form, the figures of a cell, and sentences about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
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
_DRIFTING = frozenset(["cold_s", "warm_s", "row.latency_s"])


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
        return self.sentence != NOTHING


class Figures(NamedTuple):
    """The figures of one cell, over its launches. None where it has none.

    - ``row``: times of a call. ``compiled``: what was compiled, with unknown counts if nothing was.
    - ``cold_s``, ``warm_s``: compile costs in seconds. ``first_s``: the first call of a cold start.
    - ``error``: the largest relative error of the outputs; ``float32_error``: against float32.
    - ``memory_bytes``: the peak memory in the mode.
    - ``beside``: the cell that it is compared with; None beside itself, or if it was not measured.
    - ``over_beside``: its time over a time of that cell, where a question sets it.
    - ``evidence``: all of the release and machine. It knows the drift.
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
    evidence: Evidence | None = None

    @property
    def cell(self) -> Cell:
        """The cell that was measured."""
        return self.row.cell

    def over(self, figure: str, than: str = "") -> Interval | None:
        """A figure (a path of attributes) over that of ``beside``, or over the figure ``than`` of
        it; None if either is missing.

        Of times the interval includes the drift of the machine. It has no bounds if the drift is
        not known: that needs work that several cells have timed.
        """
        one, other = (
            attrgetter(path)(of) if of is not None else None
            for of, path in ((self, figure), (self.beside, than or figure))
        )
        if one is None or other is None:
            return None
        if figure not in _DRIFTING:
            return statistics.quotient(one, other)
        assert self.evidence is not None
        try:
            return self.evidence.over(one, other)
        except Missing:
            return Interval(one.value / other.value, math.nan, math.nan)


def figures(
    records: Sequence[Record],
    wanted: Callable[[Cell], bool],
    beside: Callable[[Cell], Cell] = lambda cell: cell,
) -> dict[Cell, Figures]:
    """The figures of the wanted cells, failed ones, too.

    ``records``: all of a release on a machine. ``beside``: the cell that each cell is compared
    with, wanted or not.
    """
    evidence = Evidence((record.measurement for record in records), "")
    by_cell = {record.measurement.cell: record for record in records}
    found = {}
    for cell, record in by_cell.items():
        if wanted(cell):
            other = by_cell.get(beside(cell), record)
            found[cell] = _figures(record)._replace(
                beside=None if other is record else _figures(other), evidence=evidence
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
        sentence += without_number(sum(row.ratio is None for row in of))
    elif of:
        sentence = f"None of {plural(len(of), 'cell')} has a number; the table has the reasons."
    return Answer(sentence or NOTHING, drawn)


def without_number(cells: int) -> str:
    """The sentence that says how many cells have no number; empty if none."""
    if not cells:
        return ""
    verb = "has" if cells == 1 else "have"
    return f" {plural(cells, 'cell')} {verb} no number: the table has the reasons."


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
    known = statistics.having(one for one in of if one is not None)
    return statistics.geometric_mean(known) if known else None


def by_mode(of: Sequence[Row], mode: Callable[[Cell], str] = lambda cell: cell.mode) -> str:
    """The mean of each mode: "mode default 0.71 [0.70, 0.72] (5 cells), ...".

    Where the modes have numbers of different cells, also over the cells that all modes have: the
    others do not compare. ``mode`` names the mode of a cell.
    """
    modes: dict[str, dict[tuple[str, int], Interval]] = {}
    timed = [(row.cell, row.ratio) for row in of if row.ratio is not None]
    # One launch gives no interval, and would hide that of a mean.
    for cell, ratio in [one for one in timed if one[1].known] or timed:
        modes.setdefault(mode(cell), {})[cell.workload, cell.batch_size] = ratio
    if not modes:
        return ""
    text = _means({mode: list(ratios.values()) for mode, ratios in modes.items()})
    shared = set.intersection(*(set(ratios) for ratios in modes.values()))
    if all(ratios.keys() == shared for ratios in modes.values()):
        return text
    if not shared:
        return f"{text}; no cell has a number in each of these modes"
    alike = {mode: [ratios[model] for model in shared] for mode, ratios in modes.items()}
    return f"{text}; of the cells that all these modes have: {_means(alike)}"


def _means(modes: Mapping[str, Sequence[Interval]]) -> str:
    parts = []
    for mode, ratios in modes.items():
        average = statistics.geometric_mean(ratios)
        # Cells may differ; launches of one cell that differ so much are no figure.
        torn = len(ratios) == 1 and advice.disagreement(average)
        figure = f"cannot tell, as {torn}" if torn else average
        parts.append(f"mode {mode} {figure} ({plural(len(ratios), 'cell')})")
    return ", ".join(parts)

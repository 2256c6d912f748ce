"""What int8 does to a call, alone and compiled, against float32 in eager and compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...analysis import statistics, summary
from ...analysis.statistics import Interval
from ...analysis.summary import Row
from ...cell import QUANTISATIONS, Cell
from ...modes import EAGER, MODES, place
from ...results.records import Record
from ..sheets import Sheet, no_number
from ..wording import plural, ratio
from . import Answer, _parts
from ._between import Between, gains, time

QUESTION = "Does int8 pay, alone and compiled?"

_MS = 1e-3
_FIGURES = [
    *("float32 eager ms", "int8 ms", "over float32 eager [95 %]"),
    *("over float32 in the same mode [95 %]", "error against float32"),
]
COLUMNS = ["model", "batch", "quantisation", "mode", *_FIGURES]


class _One(NamedTuple):
    """A quantised cell.

    ``over``: its time over that of float32 in the same mode; None if that was not measured.
    ``error``: the largest relative error of its outputs against float32.
    """

    row: Row
    over: Interval | None
    error: float | None


def answer(records: Sequence[Record]) -> Answer:
    """The answer from modules whose linear layers have int8 weights."""
    found = _quantised(records)
    sheet = Sheet(
        COLUMNS,
        frozenset(COLUMNS) - {"model", "quantisation", "mode"},
        [_line(one) for one in found],
    )
    rows = [one.row for one in found]
    parts = [part for dtype in QUANTISATIONS if (part := _of(dtype, found))]
    if not parts:
        return _without_numbers(rows, records, sheet)
    best, row = min(
        ((row.ratio, row) for row in rows if row.ratio is not None),
        key=lambda pair: pair[0].value,
    )
    sentence = (
        f"{'; '.join(parts)}. The least time over float32 in eager: {best} "
        f"({row.cell.workload}, {row.cell.dtype}, mode {row.cell.mode}).{_parts.failed(rows)}"
    )
    return Answer(sentence, sheet)


def _without_numbers(rows: Sequence[Row], records: Sequence[Record], sheet: Sheet) -> Answer:
    """The reason, once if it is the same for all, and what float32 does alone."""
    sentence = _parts.without_numbers(rows)
    if not rows:
        return Answer(sentence, sheet)
    if len(reasons := {str(row.outcome) for row in rows}) == 1:
        sentence = f"None of {plural(len(rows), 'cell')} has a number: {reasons.pop()}."
        sheet = sheet._replace(lines=[])
    plain = _parts.rows(records, lambda cell: not cell.differs() and cell.mode != EAGER)
    if told := _parts.by_mode(plain):
        sentence += f" Float32 compiled, of its time in eager: {told}."
    return Answer(sentence, sheet)


def _quantised(records: Sequence[Record]) -> list[_One]:
    rows = {
        record.measurement.cell: summary.row(record)
        for record in records
        if record.measurement.cell.quantised or not record.measurement.cell.differs()
    }
    between = Between(records)
    found = []
    for record in records:
        cell = record.measurement.cell
        if not (cell.quantised and cell.differs() == {"dtype", "baseline"}):
            continue
        row = rows[cell]
        over = row.ratio
        if cell.mode != EAGER:
            plain = rows.get(Cell(cell.workload, cell.batch_size, cell.mode, device=cell.device))
            over = between.over(row.latency_s, plain.latency_s if plain else None)
        errors = [
            launch.accuracy.float32_error
            for launch in record.measurement.launches
            if launch.accuracy is not None and launch.accuracy.float32_error is not None
        ]
        found.append(_One(row, over, max(errors, default=None)))
    order = {dtype: place for place, dtype in enumerate(QUANTISATIONS)}
    return sorted(
        found,
        key=lambda one: (
            one.row.cell.workload,
            one.row.cell.batch_size,
            order[one.row.cell.dtype],
            place(one.row.cell.mode),
        ),
    )


def _line(one: _One) -> list[str]:
    row = one.row
    first = [row.cell.workload, str(row.cell.batch_size), row.cell.dtype, row.cell.mode]
    if not row.outcome.ok:
        return [*first, *no_number(row.outcome, len(_FIGURES))]
    return [
        *first,
        *(time(row.eager_s, _MS), time(row.latency_s, _MS), ratio(row.ratio), ratio(one.over)),
        "-" if one.error is None else f"{one.error:.2g}",
    ]


def _of(dtype: str, found: Sequence[_One]) -> str:
    """What one way to quantise does, by mode; empty if it has no number."""
    parts = []
    for mode in MODES:
        mine = [one for one in found if (one.row.cell.dtype, one.row.cell.mode) == (dtype, mode)]
        mean = _parts.mean(one.row for one in mine)
        if mean is None:
            continue
        measured = sum(one.row.ratio is not None for one in mine)
        gain = sum(gains(one.row.ratio) for one in mine)
        how = "alone" if mode == EAGER else f"compiled (mode {mode})"
        text = f"{how} faster in {gain} of {plural(measured, 'model')}, on average {mean}"
        over = [one.over for one in mine if one.over is not None]
        if mode != EAGER and over:
            text += f", and {statistics.geometric_mean(over)} of float32 compiled"
        parts.append(text)
    return f"{dtype}, of the time of float32 in eager: {', '.join(parts)}" if parts else ""

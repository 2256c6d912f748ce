"""A model written or quantised in other ways, compiled, against one way in eager."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ... import matrix
from ...analysis import summary
from ...analysis.payoff import Payoff, payoff
from ...analysis.statistics import Interval
from ...analysis.summary import Row
from ...cell import QUANTISATIONS, Cell
from ...modes import EAGER, MODES, place
from ...results.records import Record
from ..sheets import Columns, sheet
from ..wording import listed, milliseconds, number, plural, ratio, seconds
from . import common
from .common import Answer, Between, by_mode, mean, reason

_NAME = re.compile(r"attention_(\w+)_(\d+)")  # as `workloads.attention` gives them
# Way -> its name in a sentence, and the way in eager that everybody has for the same result.
_WAYS = {
    "spelled_out": ("attention spelled out", "sdpa"),
    "sdpa": ("SDPA", "sdpa"),
    "flex": ("FlexAttention", "sdpa"),
    "sdpa_causal": ("SDPA with a causal mask", "sdpa_causal"),
    "flex_causal": ("FlexAttention with a causal mask", "sdpa_causal"),
}


class _Way(NamedTuple):
    """A way at a length, in a mode. ``over``: compiled over SDPA in eager with the same mask."""

    length: int
    way: str
    row: Row
    over: Interval | None


_ATTENTION_PLACE: Columns[_Way] = {
    "length": lambda one: str(one.length),
    "way": lambda one: _WAYS[one.way][0],
    "mode": lambda one: one.row.cell.mode,
}
_ATTENTION: Columns[_Way] = {
    "eager ms": lambda one: milliseconds(one.row.eager_s),
    "compiled ms": lambda one: milliseconds(one.row.latency_s),
    "compiled over eager [95 %]": lambda one: ratio(one.row.ratio),
    "compiled over SDPA in eager [95 %]": lambda one: ratio(one.over),
    "compile s": lambda one: seconds(one.row.cold_compile_s),
}


def attention(records: Sequence[Record]) -> Answer:
    """Attention in several ways, at several lengths."""
    found = ways_of_attention(records)
    table = sheet(found, _ATTENTION_PLACE, _ATTENTION, reason=reason)
    rows = [one.row for one in found]
    parts = []
    for way, (name, _) in _WAYS.items():
        mine = [one for one in found if one.way == way and one.row.cell.mode == "default"]
        if times := [f"{one.over} at length {one.length}" for one in mine if one.over]:
            parts.append(f"{name} {listed(times)}")
    if not parts:
        return Answer(common.without_numbers(rows), table)
    sentence = f"Compiled, in times of SDPA in eager with the same mask: {'; '.join(parts)}."
    return Answer(sentence + common.failed(rows), table)


def ways_of_attention(records: Sequence[Record]) -> list[_Way]:
    """The ways that were measured, by length, way and mode."""
    rows: dict[tuple[int, str, str], Row] = {}
    for record in records:
        cell = record.measurement.cell
        named = _NAME.fullmatch(cell.workload)
        if named is None or matrix.on_any_device(cell) not in matrix.ATTENTION.by_cell:
            continue
        way, length = named.groups()
        if way in _WAYS:
            rows[int(length), way, cell.mode] = summary.row(record)
    between = Between(records)
    found = []
    for (length, way, mode), row in rows.items():
        over = row.ratio
        if (base := _WAYS[way][1]) != way:
            # The same mode's cell, so that the two were measured in the same run, as a rule.
            reference = rows.get((length, base, mode))
            over = between.over(row.latency_s, reference.eager_s if reference else None)
        found.append(_Way(length, way, row, over))
    ways = list(_WAYS)
    return sorted(
        found, key=lambda one: (one.length, ways.index(one.way), place(one.row.cell.mode))
    )


class _Quantised(NamedTuple):
    """A quantised cell.

    ``over``: its time over that of float32 in the same mode; None if that was not measured.
    ``error``: the largest relative error of its outputs against float32.
    """

    row: Row
    over: Interval | None
    error: float | None


_QUANTISED_PLACE: Columns[_Quantised] = {
    "model": lambda one: one.row.cell.workload,
    "batch": lambda one: str(one.row.cell.batch_size),
    "quantisation": lambda one: one.row.cell.dtype,
    "mode": lambda one: one.row.cell.mode,
}
_QUANTISED: Columns[_Quantised] = {
    "float32 eager ms": lambda one: milliseconds(one.row.eager_s),
    "int8 ms": lambda one: milliseconds(one.row.latency_s),
    "over float32 eager [95 %]": lambda one: ratio(one.row.ratio),
    "over float32 in the same mode [95 %]": lambda one: ratio(one.over),
    "error against float32": lambda one: number(one.error, ".2g"),
}


def quantisation(records: Sequence[Record]) -> Answer:
    """Modules whose linear layers have int8 weights."""
    found = _quantised(records)
    table = sheet(found, _QUANTISED_PLACE, _QUANTISED, reason=reason)
    rows = [one.row for one in found]
    parts = [part for dtype in QUANTISATIONS if (part := _of_dtype(dtype, found))]
    if parts:
        timed = [(row.ratio, row.cell) for row in rows if row.ratio]
        least, cell = min(timed, key=lambda pair: pair[0].value)
        sentence = (
            f"{'; '.join(parts)}. The least time over float32 in eager: {least} "
            f"({cell.workload}, {cell.dtype}, mode {cell.mode}).{common.failed(rows)}"
        )
        return Answer(sentence, table)
    sentence = common.without_numbers(rows)
    if len(reasons := {str(row.outcome) for row in rows}) == 1:
        sentence = f"None of {plural(len(rows), 'cell')} has a number: {reasons.pop()}."
        table = table._replace(lines=[])
    # What is not quantised still has an answer for float32.
    plain = common.rows(records, lambda cell: not cell.differs() and cell.mode != EAGER)
    if rows and (told := by_mode(plain)):
        sentence += f" Float32 compiled, of its time in eager: {told}."
    return Answer(sentence, table)


def _quantised(records: Sequence[Record]) -> list[_Quantised]:
    between = Between(records)
    plain = {row.cell: row for row in common.rows(records, lambda cell: not cell.differs())}
    found = []
    for record in records:
        cell = record.measurement.cell
        if not (cell.quantised and cell.differs() == {"dtype", "baseline"}):
            continue
        row = summary.row(record)
        over = row.ratio
        if cell.mode != EAGER:
            float32 = plain.get(Cell(cell.workload, cell.batch_size, cell.mode, device=cell.device))
            over = between.over(row.latency_s, float32.latency_s if float32 else None)
        checks = [launch.accuracy for launch in record.measurement.launches if launch.accuracy]
        errors = [one.float32_error for one in checks if one.float32_error is not None]
        found.append(_Quantised(row, over, max(errors, default=None)))
    return sorted(found, key=_by_quantisation)


def _by_quantisation(one: _Quantised) -> tuple[object, ...]:
    cell = one.row.cell
    dtype = list(QUANTISATIONS).index(cell.dtype)
    return cell.workload, cell.batch_size, dtype, place(cell.mode)


def _of_dtype(dtype: str, found: Sequence[_Quantised]) -> str:
    """What one way to quantise does, by mode; empty if it has no number."""
    parts = []
    for mode in MODES:
        mine = [one for one in found if (one.row.cell.dtype, one.row.cell.mode) == (dtype, mode)]
        ratios = [one.row.ratio for one in mine if one.row.ratio]
        if not ratios:
            continue
        gain = sum(payoff(one) is Payoff.GAIN for one in ratios)
        how = "alone" if mode == EAGER else f"compiled (mode {mode})"
        text = (
            f"{how} faster in {gain} of {plural(len(ratios), 'model')}, on average {mean(ratios)}"
        )
        over = mean(one.over for one in mine)
        if mode != EAGER and over:
            text += f", and {over} of float32 compiled"
        parts.append(text)
    return f"{dtype}, of the time of float32 in eager: {', '.join(parts)}" if parts else ""

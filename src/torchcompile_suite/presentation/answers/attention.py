"""The ways to write attention, compiled, against SDPA in eager."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ... import matrix
from ...analysis import summary
from ...analysis.statistics import Interval
from ...analysis.summary import Row
from ...modes import place
from ...results.records import Record
from ..sheets import Sheet, no_number
from ..wording import listed, ratio, seconds
from . import Answer, _parts
from ._between import Between, time

QUESTION = "Which way to write attention is the fastest when it is compiled?"

_NAME = re.compile(r"attention_(\w+)_(\d+)")  # as `workloads.attention` gives them
# Way -> its name in a sentence, and the way in eager that everybody has for the same result.
_WAYS = {
    "spelled_out": ("attention spelled out", "sdpa"),
    "sdpa": ("SDPA", "sdpa"),
    "flex": ("FlexAttention", "sdpa"),
    "sdpa_causal": ("SDPA with a causal mask", "sdpa_causal"),
    "flex_causal": ("FlexAttention with a causal mask", "sdpa_causal"),
}
_MS = 1e-3
_FIGURES = [
    *("eager ms", "compiled ms", "compiled over eager [95 %]"),
    *("compiled over SDPA in eager [95 %]", "compile s"),
]
COLUMNS = ["length", "way", "mode", *_FIGURES]


class _One(NamedTuple):
    """A way at a length, in a mode. ``over``: compiled over SDPA in eager with the same mask."""

    length: int
    way: str
    row: Row
    over: Interval | None


def answer(records: Sequence[Record]) -> Answer:
    """The answer from attention in several ways, at several lengths."""
    ways = _ways(records)
    sheet = Sheet(COLUMNS, frozenset(COLUMNS) - {"way", "mode"}, [_line(one) for one in ways])
    parts = [part for way in _WAYS if (part := _times(way, ways))]
    rows = [one.row for one in ways]
    if not parts:
        return Answer(_parts.without_numbers(rows), sheet)
    sentence = (
        "Compiled, in times of SDPA in eager with the same mask: "
        f"{'; '.join(parts)}.{_parts.failed(rows)}"
    )
    return Answer(sentence, sheet)


def _ways(records: Sequence[Record]) -> list[_One]:
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
    ways = list(_WAYS)
    found = []
    for (length, way, mode), row in rows.items():
        over = row.ratio
        if (base := _WAYS[way][1]) != way:
            # The same mode's cell, so that the two were measured in the same run, as a rule.
            reference = rows.get((length, base, mode))
            over = between.over(row.latency_s, reference.eager_s if reference else None)
        found.append(_One(length, way, row, over))
    return sorted(
        found,
        key=lambda one: (one.length, ways.index(one.way), place(one.row.cell.mode)),
    )


def _line(one: _One) -> list[str]:
    row = one.row
    first = [str(one.length), _WAYS[one.way][0], row.cell.mode]
    if not row.outcome.ok:
        return [*first, *no_number(row.outcome, len(_FIGURES))]
    return [
        *first,
        *(time(row.eager_s, _MS), time(row.latency_s, _MS), ratio(row.ratio)),
        *(ratio(one.over), seconds(row.cold_compile_s)),
    ]


def _times(way: str, ways: Sequence[_One]) -> str:
    """The figures of a way in mode default, by length; empty if it has none."""
    mine = [one for one in ways if one.way == way and one.row.cell.mode == "default"]
    parts = [f"{one.over} at length {one.length}" for one in mine if one.over is not None]
    return f"{_WAYS[way][0]} {listed(parts)}" if parts else ""

"""Shapes vary: which policy of torch.compile is best, and what does it compile when?"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ... import matrix
from ...analysis import payoff, summary
from ...cell import Cell, Measurement
from ...results.records import Record
from ..wording import count, listed
from . import Answer, _compared
from ._compared import text

QUESTION = "Which policy for changing shapes is the fastest, and what does it compile when?"

_COLUMNS = [
    *("eager ms", "compiled ms", "over eager [95 %]", "graphs", "first pass s", "warm s"),
    *("refused: again", "refused: new shapes"),
]


def answer(records: Sequence[Record]) -> Answer:
    """The policies for shapes of each model: a pass over its requests, and the first one.

    See the package. ``refused``: requests that ``fail_on_recompile`` refuses, in a second pass over
    the same requests, and of new shapes at the end.
    """
    measured = {
        cell: one
        for cell, one in _compared.by_cell(records).items()
        if cell.shapes != "static" and cell.way == "whole" and cell.protocol == "right"
    }
    lines = {cell: _line(one) for cell, one in measured.items()}
    streams: dict[str, list[Record]] = {}
    for record in records:
        cell = record.measurement.cell
        if cell in measured and record.measurement.outcome.ok:
            stream = msgspec.structs.replace(cell, shapes="static")
            streams.setdefault(str(stream), []).append(record)
    sentences = [_sentence(name, own) for name, own in sorted(streams.items())]
    return Answer(
        " ".join(sentences) or _compared.missing("The choice of a policy for shapes", measured),
        _compared.sheet(_COLUMNS, lines, measured),
    )


def _line(measurement: Measurement) -> list[str] | None:
    own = _compared.figures(measurement)
    if own is None:
        return None
    return [
        text(own.eager_s, 1e3, ".3g"),
        text(own.mode_s, 1e3, ".3g"),
        text(own.ratio),
        count(None if measurement.compiled is None else measurement.compiled.graphs),
        text(own.first_s, spec=".1f"),
        text(own.warm_s, spec=".1f"),
        count(_refused(measurement, "tail")),
        count(_refused(measurement, "new shapes")),
    ]


def _refused(measurement: Measurement, which: str) -> int | None:
    compiled = measurement.compiled
    return None if compiled is None else compiled.recaptures.get(which)


def _sentence(name: str, records: list[Record]) -> str:
    """``records``: policies of one stream of requests, none of them failed."""
    rows = {row.cell: row for row in map(summary.row, records)}
    measured = {record.measurement.cell: record.measurement for record in records}
    found = {cell: _compared.figures(one) for cell, one in measured.items()}
    fastest = payoff.best(rows.values())
    parts = [_fastest(name, fastest, rows)]
    first = sorted(
        (own.first_s.value, cell.shapes)
        for cell, own in found.items()
        if own is not None and own.first_s is not None
    )
    if len(first) > 1:
        (least_s, least), (most_s, most) = first[0], first[-1]
        parts.append(
            f"the first pass takes {least_s:.1f} s with {least}, and {most_s:.1f} s with {most}"
        )
    parts += _tail(measured)
    return "; ".join(parts) + "."


def _fastest(name: str, fastest: Sequence[Cell], rows: dict[Cell, summary.Row]) -> str:
    if not fastest:
        lowest = min(rows.values(), key=lambda row: row.ratio.value if row.ratio else float("inf"))
        return (
            f"{name}: no policy for shapes is surely faster than eager; the nearest is "
            f"{lowest.cell.shapes}, a pass takes {lowest.ratio} of eager's time"
        )
    best, *others = fastest
    said = (
        f"{name}: the fastest policy for shapes is {best.shapes}, a pass takes "
        f"{rows[best].ratio} of eager's time"
    )
    if others:
        named = listed(f"{cell.shapes} ({rows[cell].ratio})" for cell in others)
        said += f", which cannot be told from {named}"
    return said


def _tail(measured: dict[Cell, Measurement]) -> list[str]:
    """What ``fail_on_recompile`` says, if the release has it."""
    parts = []
    for which, words in (("tail", "a second pass"), ("new shapes", "new shapes")):
        counts = {
            cell.shapes: number
            for cell, one in measured.items()
            if (number := _refused(one, which)) is not None
        }
        if not counts:
            continue
        # The records of a site and of a command need not have one order.
        refused = [f"{name} ({counts[name]})" for name in matrix.POLICIES if counts.get(name)]
        with_which = f"with {listed(refused)}" if refused else "with none of them"
        parts.append(f"fail_on_recompile refuses requests of {words} {with_which}")
    return parts

"""How much of a gain comes from malloc: the same cells with other heaps and allocators."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...analysis.summary import Row
from ...cell import Cell
from ...results.records import Record
from .. import sheets
from ..wording import plural
from . import Answer, _parts

QUESTION = "How much of the gain comes from malloc?"
_SETTLED = "system"
_ELSEWHERE = (
    "No gain of an accelerator comes from malloc: torch's own allocator has the tensors, and keeps "
    "their memory."
)


def answer(records: Sequence[Record]) -> Answer:
    """The mean ratio with each allocator, and that of the same cells with a settled heap."""
    # Other protocols, such as many calls, are other questions.
    others = [
        record.measurement.cell
        for record in records
        if "allocator" in record.measurement.cell.differs()
        and record.measurement.cell.protocol == "right"
    ]
    asked = {_settled(cell) for cell in others if cell.device == "cpu"}
    if others and not asked:
        return Answer(_ELSEWHERE, sheets.measured([]))
    rows = _parts.rows(records, lambda cell: _settled(cell) in asked)
    by_cell = {row.cell: row for row in rows if row.ratio is not None}
    pairs: dict[str, list[tuple[Row, Row]]] = {}
    for cell, row in by_cell.items():
        twin = by_cell.get(_settled(cell))
        if twin is not None and twin is not row:
            pairs.setdefault(cell.allocator, []).append((row, twin))
    if not pairs:
        alone = "No cell has a number both with another malloc and with a settled heap."
        sentence = alone + _parts.failed(rows) if by_cell else _parts.without_numbers(rows)
        return Answer(sentence, sheets.measured(rows))
    parts = (
        f"with {name} {_parts.mean(row for row, _ in both)}, and with a settled heap "
        f"{_parts.mean(twin for _, twin in both)} ({plural(len(both), 'cell')})"
        for name, both in sorted(pairs.items())
    )
    sentence = (
        f"A compiled call takes on average, of eager's time: {'; '.join(parts)}."
        f"{_parts.failed(rows)}"
    )
    return Answer(sentence, sheets.measured(rows))


def _settled(cell: Cell) -> Cell:
    return msgspec.structs.replace(cell, allocator=_SETTLED)

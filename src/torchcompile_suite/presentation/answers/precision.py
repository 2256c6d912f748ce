"""What bfloat16 does to a call, in eager and compiled, against eager in float32."""

from __future__ import annotations

from collections.abc import Sequence

from ...cell import Cell
from ...results.records import Record
from .. import sheets
from . import Answer, _parts

QUESTION = "Does bfloat16 pay, alone and compiled?"


def answer(records: Sequence[Record]) -> Answer:
    """The answer of autocast regions in bfloat16, whose baseline is eager in float32."""
    rows = _parts.rows(records, _wanted)
    if _parts.mean(rows) is None:
        return Answer(_parts.without_numbers(rows), sheets.measured(rows))
    sentence = (
        "In bfloat16 a call takes on average, of eager's time in float32: "
        f"{_parts.by_mode(rows)}.{_parts.failed(rows)}"
    )
    return Answer(sentence, sheets.measured(rows))


def _wanted(cell: Cell) -> bool:
    return cell.dtype == "bfloat16" and cell.differs() == {"dtype", "baseline"}

"""In which share of the cells a compiled optimizer step is faster than eager, and by how much."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.payoff import asks_whether_it_pays
from ...cell import Cell
from ...results.records import Record
from . import Answer, _parts, _pays

QUESTION = "Does compiling a training step pay?"


def answer(records: Sequence[Record]) -> Answer:
    """The answer of whole optimizer steps, in any precision and number of micro-batches."""
    return _pays.answer(_parts.rows(records, _wanted), "an optimizer step")


def _wanted(cell: Cell) -> bool:
    return asks_whether_it_pays(cell) and cell.phase == "training"

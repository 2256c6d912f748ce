"""In which share of the cells a compiled forward pass is faster than eager, and by how much."""

from __future__ import annotations

from collections.abc import Sequence

from ... import matrix
from ...analysis.payoff import asks_whether_it_pays
from ...cell import Cell
from ...results.records import Record
from . import Answer, _parts, _pays

QUESTION = "Does compiling a model for inference pay?"


def answer(records: Sequence[Record]) -> Answer:
    """The answer of plain inference in float32, by mode."""
    return _pays.answer(_parts.rows(records, _wanted), "a call")


def _wanted(cell: Cell) -> bool:
    model = matrix.made_for(cell.workload) is None
    return model and asks_whether_it_pays(cell) and not cell.differs()

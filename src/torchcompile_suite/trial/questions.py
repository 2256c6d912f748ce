"""What `try` measures to answer a question about a user's model: the cells, by question."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from .. import matrix
from ..cell import Cell, Way
from ..modes import EAGER
from .outline import Outline
from .plan import Trial, cells


def _freezing(trial: Trial, outline: Outline) -> list[Cell]:
    """The model compiled plainly and frozen; on a CPU also with the default heap, for memory."""
    return _by_ways(trial, outline, matrix.FREEZING_WAYS)


def _regional(trial: Trial, outline: Outline) -> list[Cell]:
    """The model compiled whole, only its repeated block, and whole with the block as a region."""
    settled = msgspec.structs.replace(trial, allocators=trial.allocators or ("system",))
    return _by_ways(settled, outline, matrix.REGIONAL_WAYS)


def _by_ways(trial: Trial, outline: Outline, ways: Sequence[Way]) -> list[Cell]:
    plain = cells(msgspec.structs.replace(trial, dynamic=False), outline)
    return [
        msgspec.structs.replace(cell, way=way)
        for cell in plain
        for way in (["whole"] if cell.mode == EAGER else ways)
    ]


def _dynamic_shapes(trial: Trial, outline: Outline) -> list[Cell]:
    """All policies for shapes. The batch sizes of the trial are the requests of the stream."""
    streams = cells(msgspec.structs.replace(trial, dynamic=True), outline)
    plain = dict.fromkeys(msgspec.structs.replace(cell, shapes="static") for cell in streams)
    return [
        msgspec.structs.replace(cell, shapes=policy) for cell in plain for policy in matrix.POLICIES
    ]


QUESTIONS: dict[str, Callable[[Trial, Outline], list[Cell]]] = {
    "freezing": _freezing,
    "regional": _regional,
    "dynamic-shapes": _dynamic_shapes,
}
"""Each raises `plan.TrialError` if the model cannot be asked."""

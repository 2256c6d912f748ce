"""The questions that a user can ask about a model of their own, beside whether compiling pays.

Each makes the cells that answer it, from the trial and the outline of its model.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import matrix
from ..cell import DEFAULT_HEAP, MOST_BATCH, Cell, Shapes
from .outline import Outline
from .plan import Trial


def _batch(trial: Trial, outline: Outline) -> int:
    """The first batch size that is asked for; else that of the model's own inputs."""
    if trial.batch_sizes:
        return trial.batch_sizes[0]
    return 1 if outline.scales else min(outline.batch_size, MOST_BATCH)


def _starts(trial: Trial, outline: Outline) -> list[Cell]:
    """Every way to start. A process of a user's service builds the model from its factory."""
    size = _batch(trial, outline)
    return [
        Cell(trial.workload, size, trial.modes[0], device=trial.device, start=start)
        for start in matrix.STARTS
    ]


def _memory(trial: Trial, outline: Outline) -> list[Cell]:
    """Fixed shapes; with several batch sizes also changing ones."""
    size = _batch(trial, outline)
    changing: list[Shapes] = matrix.CHANGING if trial.dynamic else ["static"]
    return [
        Cell(
            trial.workload,
            size,
            trial.modes[0],
            dtype=trial.dtype,
            device=trial.device,
            shapes=shapes,
            allocator=DEFAULT_HEAP if trial.device == "cpu" else "system",
            protocol="many-calls",
        )
        for shapes in changing
    ]


QUESTIONS: dict[str, Callable[[Trial, Outline], list[Cell]]] = {
    "starts": _starts,
    "memory": _memory,
}
"""Name -> the cells for a user's model. The answer is in `presentation.answers`, by the name."""

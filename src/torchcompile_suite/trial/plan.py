"""The question of a trial, and the cells that answer it."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

import msgspec

from ..cell import DEFAULT_HEAP, MOST_BATCH, Cell, Layout, Shapes
from ..errors import SuiteError
from ..modes import EAGER
from .outline import Outline
from .target import Target

# Seconds for one cell. After this time the answer is as precise as the launches so far allow. With
# imports and the last launch, a cell then takes two minutes.
BUDGET_S = 75.0


# The default heap is a lottery: more launches would not make its figures a property of the model.
DEFAULT_HEAP_BUDGET_S = 30.0
DEFAULT_HEAP_PRECISION = 0.05


class TrialError(SuiteError):
    """The model cannot be measured as asked. The message says what to change."""


class Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question about one model. Every combination of the tuples is a cell.

    - ``question``: a name of `questions.QUESTIONS`, which then decides the cells; empty for the
      question whether compiling pays.
    - ``target``: None for one of the suite's own workloads.
    - ``batch_sizes``: empty for the batch size of the model's own inputs.
    - ``dynamic``: call the model with all batch sizes in turn, with several policies for shapes.
    - ``allocators``: empty for those that `allocators` chooses.
    - ``precision``: relative half-width of the ratio's interval.
    - ``budget_s``: seconds for one cell. ``total_s``: seconds for all cells together, instead.
    """

    workload: str
    target: Target | None = None
    batch_sizes: tuple[int, ...] = ()
    modes: tuple[str, ...] = ("default",)
    backends: tuple[str, ...] = ("inductor",)
    allocators: tuple[str, ...] = ()
    dtype: str = "float32"
    layout: Layout = "contiguous"
    device: str = "cpu"
    training: bool = False
    dynamic: bool = False
    precision: float = 0.03
    budget_s: float = BUDGET_S
    total_s: float | None = None
    question: str = ""

    def digest(self, python: str) -> str:
        """A name for the question: the same for the same question, code and Python.

        Precision and budget are no part of it, so that a second run can improve the answer.
        """
        question = msgspec.structs.replace(self, precision=0.0, budget_s=0.0, total_s=None)
        parts = [msgspec.json.encode(question), python.encode()]
        if self.target is not None and self.target.kind == "file":
            parts.append(Path(self.target.where).read_bytes())
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]


def allocators(trial: Trial) -> tuple[str, ...]:
    """The allocators that the trial measures: if none is asked for, both ends of the heap."""
    both = trial.device == "cpu" and not trial.dynamic
    return trial.allocators or (("system", DEFAULT_HEAP) if both else ("system",))


def headline(trial: Trial, outline: Outline) -> str:
    """The model, its inputs and its torch, in one line."""
    inputs = ", ".join(outline.inputs) or "no tensors"
    return (
        f"{trial.workload}: {outline.model}, {outline.parameters / 1e6:.3g} M parameters, called "
        f"with {inputs}; PyTorch {outline.torch} on {trial.device}, {outline.threads} threads"
    )


def cells(trial: Trial, outline: Outline) -> list[Cell]:
    """The cells of every combination, whatever the question.

    Raises TrialError if the model cannot have these batch sizes.
    """
    if trial.batch_sizes and not outline.scales:
        raise TrialError(
            f"{trial.workload} decides its batch size ({outline.batch_size}) itself; add a "
            "parameter batch_size to its factory, or give inputs with a B: --input Bx3x224x224"
        )
    if trial.dynamic and trial.target is not None and len(trial.batch_sizes) < 2:
        raise TrialError(
            "--dynamic calls the model with several batch sizes in turn; name at least two: "
            "--batch-size 1 --batch-size 8"
        )
    # The first dimension of a long vector is no batch.
    own = outline.batch_size if outline.batch_size <= MOST_BATCH else 1
    sizes = trial.batch_sizes or (1 if outline.scales else own,)
    # With dynamic shapes, all sizes belong to one stream of requests.
    streams: tuple[Shapes, ...] = ("static",)
    if trial.dynamic:
        streams = ("recompile", "automatic", "dynamic")
    made = []
    for size, backend, mode, allocator, shapes in itertools.product(
        sizes[:1] if trial.dynamic else sizes,
        trial.backends,
        trial.modes,
        allocators(trial),
        streams,
    ):
        if backend != "inductor" and mode != trial.modes[0]:
            continue  # only Inductor has modes
        made.append(
            Cell(
                trial.workload,
                size,
                "default" if backend != "inductor" and mode != EAGER else mode,
                phase="training" if trial.training else "inference",
                dtype=trial.dtype,
                layout=trial.layout,
                device=trial.device,
                shapes=shapes,
                backend=backend,
                allocator=allocator,
            )
        )
    if outline.compiled and not trial.dynamic and not trial.question:
        # Once for each size: the user's code decides on mode and backend.
        plain = [one for one in made if one.allocator == allocators(trial)[0]]
        given = [msgspec.structs.replace(one, mode="default", backend="inductor") for one in plain]
        made += [msgspec.structs.replace(one, way="as-given") for one in dict.fromkeys(given)]
    return made

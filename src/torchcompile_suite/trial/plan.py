"""What is asked of a model, and the cells that answer it."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

import msgspec

from ..cell import Cell, Launch, Measurement, Text
from ..errors import SuiteError
from ..modes import EAGER
from .outline import Outline
from .target import Target

# A cell that is not known to the precision asked for after this long is answered as far as it is:
# with imports and the last launch it comes to two minutes.
BUDGET_S = 75.0


class TrialError(SuiteError):
    """The model cannot be tried as asked; the message says what to change."""


class Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question about one model: every combination of what is listed is a cell.

    ``target`` is None for one of the suite's own workloads. No ``batch_sizes`` are those that the
    model comes with. ``budget_s`` is for one cell.
    """

    workload: str
    target: Target | None = None
    batch_sizes: tuple[int, ...] = ()
    modes: tuple[str, ...] = ("default",)
    backends: tuple[str, ...] = ("inductor",)
    allocators: tuple[str, ...] = ("system",)
    dtype: str = "float32"
    device: str = "cpu"
    training: bool = False
    dynamic: bool = False
    precision: float = 0.03
    budget_s: float = BUDGET_S

    def digest(self, python: str) -> str:
        """The same for the same question about the same code in the same Python.

        How long and how precisely it is asked is no part of it, so that an answer can be improved.
        """
        asked = msgspec.structs.replace(self, precision=0.0, budget_s=0.0)
        parts = [msgspec.json.encode(asked), python.encode()]
        if self.target is not None and self.target.kind in ("file", "pickle"):
            parts.append(Path(self.target.where).read_bytes())
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]


def headline(trial: Trial, outline: Outline) -> str:
    """What is tried, in one line."""
    inputs = ", ".join(outline.inputs) or "no tensors"
    return (
        f"{trial.workload}: {outline.model}, {outline.parameters / 1e6:.3g} M parameters, called "
        f"with {inputs}; PyTorch {outline.torch} on {trial.device}, {outline.threads} threads"
    )


class Known(msgspec.Struct, frozen=True):
    """A line of what a trial keeps: the outline, a launch of a cell, or its measurement."""

    outline: Outline | None = None
    cell: Cell | None = None
    launch: Launch | None = None
    measurement: Measurement | None = None


class Refused(msgspec.Struct, frozen=True):
    """Why the worker measured nothing."""

    error: Text


def cells(trial: Trial, outline: Outline) -> list[Cell]:
    """The cells to measure. Raises TrialError where the model has no such batch size or dtype."""
    if trial.batch_sizes and not outline.scales:
        raise TrialError(
            f"{trial.workload} decides its batch size ({outline.batch_size}) itself; let its "
            "factory take batch_size, or give inputs with a B: --input Bx3x224x224"
        )
    if trial.dynamic and trial.target is not None and len(trial.batch_sizes) < 2:
        raise TrialError(
            "--dynamic calls the model with several batch sizes in turns; name at least two: "
            "--batch-size 1 --batch-size 8"
        )
    sizes = trial.batch_sizes or (1 if outline.scales else outline.batch_size,)
    # With dynamic shapes all sizes are one stream of requests.
    streams = ("recompile", "automatic", "dynamic") if trial.dynamic else ("static",)
    found = []
    for size, backend, mode, allocator, shapes in itertools.product(
        sizes[:1] if trial.dynamic else sizes,
        trial.backends,
        trial.modes,
        trial.allocators,
        streams,
    ):
        if backend != "inductor" and mode != trial.modes[0]:
            continue  # modes are Inductor's
        found.append(
            Cell(
                trial.workload,
                size,
                "default" if backend != "inductor" and mode != EAGER else mode,
                phase="training" if trial.training else "inference",
                dtype=trial.dtype,
                device=trial.device,
                shapes=shapes,
                backend=backend,
                allocator=allocator,
            )
        )
    return found

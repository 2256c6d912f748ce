"""The question of a trial, and the cells that answer it.

The answer to what ``try --question`` can ask is that of the question of the same name in
`presentation.answers`. It is made of the trial's own measurements, as it is of the suite's
workloads.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from .. import matrix, workloads
from ..cell import CHANNELS_LAST, DEFAULT_HEAP, MOST_BATCH, QUANTISATIONS, Cell, Layout, Shapes, Way
from ..errors import SuiteError, refuse
from ..host import machine
from ..host.heap import LIBRARIES
from ..modes import EAGER, MODES
from .outline import Outline
from .target import Target, decides_itself, parse

# Seconds for one cell. After this time the answer is as precise as the launches so far allow. With
# imports and the last launch, a cell then takes two minutes.
BUDGET_S = 75.0
# Relative half-width of the ratio's interval.
PRECISION = 0.03
# The default heap is a lottery: more launches would not make its figures a property of the model.
DEFAULT_HEAP_BUDGET_S = 15.0
DEFAULT_HEAP_PRECISION = 0.05
SETTLED = ("system",)
# The questions for which several batch sizes are the requests of a stream.
CHANGING_SHAPES = ("dynamic_shapes", "memory")


class TrialError(SuiteError):
    """The model cannot be measured as asked. The message says what to change."""


class Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question about one model. Every combination of the tuples is a cell.

    - ``question``: a name of `QUESTIONS`, which then decides the cells; empty for the
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
    precision: float = PRECISION
    budget_s: float = BUDGET_S
    total_s: float | None = None
    question: str = ""

    def cell(self, size: int, mode: str, **others: Any) -> Cell:
        """The cell of a batch size and a mode. ``others``: further fields."""
        phase = "training" if self.training else "inference"
        own = {"phase": phase, "dtype": self.dtype, "layout": self.layout, "device": self.device}
        return Cell(self.workload, size, mode, **(own | others))

    def digest(self, python: str, conditions: str, outline: Outline) -> str:
        """A name for the question: the same for the same question, Python, torch, conditions
        (`series.conditions_here`), code of the model, and model: its code may read a file.

        Precision and budget are no part of it, so that a second run can improve the answer.
        """
        question = msgspec.structs.replace(self, precision=0.0, budget_s=0.0, total_s=None)
        built = msgspec.structs.replace(outline, gpu="")
        parts = [msgspec.json.encode((question, python, conditions, built))]
        if self.target is not None and self.target.kind == "hf":
            parts.append(Path(self.target.where, "config.json").read_bytes())
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
        f"with {inputs}; PyTorch {outline.torch} on {trial.device}, "
        f"{outline.threads} thread{'s' * (outline.threads != 1)}"
    )


def combinations(trial: Trial, outline: Outline) -> list[Cell]:
    """The cells of every combination, whatever the question.

    Raises TrialError if a stream of requests has one batch size only.
    """
    if trial.dynamic and trial.target is not None and len(trial.batch_sizes) < 2:
        raise TrialError(
            "--dynamic calls the model with several batch sizes in turn; name at least two: "
            "--batch-size 1 --batch-size 8"
        )
    sizes = trial.batch_sizes or (batch(trial, outline),)
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
        if backend != "inductor" and mode != EAGER:
            mode = "default"  # only Inductor has modes
        made.append(trial.cell(size, mode, shapes=shapes, backend=backend, allocator=allocator))
    made = list(dict.fromkeys(made))
    # `api.compare` has one answer, so it has no cell for the user's own compile.
    copied = trial.target is not None and trial.target.kind == "pickle"
    if outline.compiled and not (copied or trial.dynamic or trial.question):
        # Once for each size: the user's code decides on mode and backend.
        plain = [one for one in made if one.allocator == allocators(trial)[0]]
        given = [msgspec.structs.replace(one, mode="default", backend="inductor") for one in plain]
        made += [msgspec.structs.replace(one, way="as-given") for one in dict.fromkeys(given)]
    return made


def cells(trial: Trial, outline: Outline) -> list[Cell]:
    """The cells to measure: those of the trial's question, if it has one.

    Raises TrialError if the model cannot have these batch sizes, or if the question cannot be asked
    about this model or on this device.
    """
    if trial.batch_sizes and not outline.scales:
        raise TrialError(decides_itself(trial.workload, outline.batch_size))
    if not trial.question:
        return combinations(trial, outline)
    return QUESTIONS[trial.question](trial, outline)


def check(name: str, answers: Iterable[str]) -> None:
    """Raise TrialError if ``try`` cannot ask that question.

    ``answers`` are the names of the questions that recorded results answer.
    """
    if name in QUESTIONS:
        return
    own = f"about a model there are: {', '.join(QUESTIONS)}"
    if name in answers:
        raise TrialError(
            f"the question {name} is not asked about one model; see: torchcompile-suite answers "
            f"{name}; {own}"
        )
    raise TrialError(f"no question {name!r}; {own}")


def asked(text: str, inputs: Sequence[str], trial: Trial, answers: Iterable[str]) -> Trial:
    """The trial of the model that the text names, with those inputs (`target.parse`).

    ``answers``: see `check`. Raises SuiteError for a wrong option, and if the text names no model.
    """
    if trial.question:
        check(trial.question, answers)
        _check_free(trial)
    check_values(trial)
    target = parse(text, inputs)
    if isinstance(target, str):
        trial = msgspec.structs.replace(trial, workload=target)
        changing = trial.dynamic or trial.question in CHANGING_SHAPES
        if not changing or _own_stream(trial):
            return trial
        target = Target(target, "workload", target)
    target = msgspec.structs.replace(target, stream=trial.batch_sizes)
    return msgspec.structs.replace(trial, target=target, workload=target.name)


def check_values(trial: Trial) -> None:
    """Raise TrialError for a mode, a device or a dtype that does not exist."""
    for what, wanted, known in (
        ("mode", trial.modes, MODES),
        ("device", (trial.device,), machine.DEVICES),
        ("dtype", (trial.dtype,), matrix.TRIED_DTYPES),
    ):
        if unknown := set(wanted).difference(known):
            listed = ", ".join(sorted(unknown))
            raise TrialError(f"no {what} {listed}; there are: {', '.join(known)}")
    if trial.dynamic and trial.training:
        raise TrialError("--dynamic calls the model with several shapes, and trains nothing")
    modes = [mode for mode in trial.modes if mode not in ("default", EAGER)]
    if modes and "inductor" not in trial.backends:
        raise TrialError(
            f"only Inductor has the mode {modes[0]}: leave it out, or the backend "
            f"{', '.join(trial.backends)}"
        )


def _own_stream(trial: Trial) -> bool:
    """Whether the trial is about a workload with a stream of shapes. Raises TrialError if the user
    names the requests, too.
    """
    if trial.workload not in workloads.names() or workloads.get(trial.workload).stream is None:
        return False
    if len(trial.batch_sizes) > 1:
        raise TrialError(
            f"{trial.workload} has a stream of shapes of its own: give one --batch-size"
        )
    return True


def _check_free(trial: Trial) -> None:
    """Raise SuiteError if the user chooses, too, what the question chooses."""
    chosen = {
        "--backend": trial.backends != ("inductor",),
        "--allocator": bool(trial.allocators),
        "--dtype": trial.dtype != "float32",
        "--channels-last": trial.layout == CHANNELS_LAST,
        "--training": trial.training,
        "--dynamic": trial.dynamic,
    }
    refuse(chosen, f"the question {trial.question} chooses its cells")


def _plain(trial: Trial, outline: Outline, **changes: object) -> list[Cell]:
    """The cells of the trial with a settled heap, after the changes to the trial."""
    changed = {"allocators": SETTLED, **changes}
    return combinations(msgspec.structs.replace(trial, **changed), outline)


def _training(trial: Trial, outline: Outline) -> list[Cell]:
    """Optimizer steps in both precisions, of the suite's batch size if the model has none."""
    sizes = trial.batch_sizes or ((matrix.TRAINING_BATCH,) if outline.scales else ())
    return [
        cell
        for dtype in matrix.DTYPES
        for cell in _plain(trial, outline, training=True, dtype=dtype, batch_sizes=sizes)
    ]


def _precision(trial: Trial, outline: Outline) -> list[Cell]:
    """Eager and the modes in bfloat16, each against eager in float32."""
    modes = tuple(dict.fromkeys([EAGER, *trial.modes]))
    return [
        msgspec.structs.replace(cell, baseline="eager-float32")
        for cell in _plain(trial, outline, modes=modes, dtype="bfloat16")
    ]


def _quantisation(trial: Trial, outline: Outline) -> list[Cell]:
    """Both quantisations in eager and the modes, against float32 in eager; float32 compiled, too.

    Without float32 compiled nobody knows what is due to int8 and what to the compile.
    """
    modes = tuple(dict.fromkeys([EAGER, *trial.modes]))
    plain = _plain(trial, outline, modes=modes)
    return [
        *(cell for cell in plain if cell.mode != EAGER),
        *(
            msgspec.structs.replace(cell, dtype=dtype, baseline="eager-float32")
            for dtype in QUANTISATIONS
            for cell in plain
        ),
    ]


def _backends(trial: Trial, outline: Outline) -> list[Cell]:
    """Each backend of torch.compile that does a part of the work, and Inductor."""
    return _plain(trial, outline, backends=tuple(matrix.BACKENDS))


def _allocator(trial: Trial, outline: Outline) -> list[Cell]:
    """A settled heap, malloc as a script gets it, and other allocators."""
    if trial.device != "cpu":
        raise TrialError(
            f"the question allocator is about a CPU's malloc, not about {trial.device}: add "
            "--device cpu"
        )
    return _plain(trial, outline, allocators=(*SETTLED, DEFAULT_HEAP, *LIBRARIES))


def _freezing(trial: Trial, outline: Outline) -> list[Cell]:
    """The model compiled plainly and frozen; on a CPU also with the default heap, for memory."""
    plain = _plain(trial, outline, allocators=allocators(trial))
    return _by_ways(plain, matrix.FREEZING_WAYS)


def _regional(trial: Trial, outline: Outline) -> list[Cell]:
    """The model compiled whole, only its repeated block, and whole with the block as a region."""
    return _by_ways(_plain(trial, outline), matrix.REGIONAL_WAYS)


def _by_ways(plain: Iterable[Cell], ways: Sequence[Way]) -> list[Cell]:
    """Each cell compiled in each of the ways; eager has only one."""
    return [
        msgspec.structs.replace(cell, way=way)
        for cell in plain
        for way in (ways if cell.mode != EAGER else ways[:1])
    ]


def _dynamic_shapes(trial: Trial, outline: Outline) -> list[Cell]:
    """All policies for shapes. The batch sizes of the trial are the requests of the stream."""
    streams = _plain(trial, outline, dynamic=True)
    kinds = dict.fromkeys(msgspec.structs.replace(cell, shapes="static") for cell in streams)
    return [
        msgspec.structs.replace(cell, shapes=policy) for cell in kinds for policy in matrix.POLICIES
    ]


def batch(trial: Trial, outline: Outline) -> int:
    """The first batch size that is asked for; else that of the model's own inputs."""
    if trial.batch_sizes:
        return trial.batch_sizes[0]
    # The first dimension of a long vector is no batch.
    return 1 if outline.scales or outline.batch_size > MOST_BATCH else outline.batch_size


def _one_mode(trial: Trial) -> str:
    """The mode of a question about one. Raises TrialError if several are asked for."""
    if len(trial.modes) > 1:
        raise TrialError(f"the question {trial.question} is about one mode: give one --mode")
    return trial.modes[0]


def _starts(trial: Trial, outline: Outline) -> list[Cell]:
    """Every way to start. A process of a user's service builds the model from its factory."""
    if len(trial.batch_sizes) > 1:
        raise TrialError("the question starts is about one batch size: give one --batch-size")
    size = batch(trial, outline)
    return [trial.cell(size, _one_mode(trial), start=start) for start in matrix.STARTS]


def _memory(trial: Trial, outline: Outline) -> list[Cell]:
    """Fixed shapes, those of the first batch size; with several sizes also changing ones."""
    size = batch(trial, outline)
    several = len(trial.batch_sizes) > 1 or _own_stream(trial)
    changing: list[Shapes] = matrix.CHANGING if several else ["static"]
    heap = DEFAULT_HEAP if trial.device == "cpu" else "system"
    many = partial(trial.cell, size, _one_mode(trial), allocator=heap, protocol="many-calls")
    return [many(shapes=shapes) for shapes in changing]


QUESTIONS: dict[str, Callable[[Trial, Outline], list[Cell]]] = {
    "training": _training,
    "precision": _precision,
    "quantisation": _quantisation,
    "backends": _backends,
    "allocator": _allocator,
    "freezing": _freezing,
    "regional": _regional,
    "dynamic_shapes": _dynamic_shapes,
    "starts": _starts,
    "memory": _memory,
}
"""Question -> the cells that answer it for the trial's model. See `cells` for the errors."""

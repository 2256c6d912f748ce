"""What ``try --question`` can ask about one model: the cells of each question.

The answer is that of the question of the same name in `presentation.answers`. It is made of the
trial's own measurements, as it is of the suite's workloads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from .. import matrix
from ..cell import CHANNELS_LAST, DEFAULT_HEAP, MOST_BATCH, QUANTISATIONS, Cell, Shapes, Way
from ..host import machine
from ..host.allocators import LIBRARIES
from ..modes import EAGER, MODES
from . import plan
from .outline import Outline
from .plan import Trial, TrialError
from .target import parse

SETTLED = ("system",)


def cells(trial: Trial, outline: Outline) -> list[Cell]:
    """The cells to measure: those of the trial's question, if it has one.

    Raises TrialError if the question cannot be asked about this model or on this device.
    """
    if not trial.question:
        return plan.cells(trial, outline)
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
    for what, wanted, known in (
        ("mode", trial.modes, MODES),
        ("device", (trial.device,), machine.DEVICES),
        ("dtype", (trial.dtype,), matrix.TRIED_DTYPES),
    ):
        if unknown := set(wanted).difference(known):
            listed = ", ".join(sorted(unknown))
            raise TrialError(f"no {what} {listed}; there are: {', '.join(known)}")
    target = parse(text, inputs)
    if target is None:
        return msgspec.structs.replace(trial, workload=text)
    if trial.dynamic:
        target = msgspec.structs.replace(target, stream=trial.batch_sizes)
    return msgspec.structs.replace(trial, target=target, workload=target.name)


def _check_free(trial: Trial) -> None:
    """Raise TrialError if the user chooses, too, what the question chooses."""
    chosen = {
        "--backend": trial.backends != ("inductor",),
        "--allocator": bool(trial.allocators),
        "--dtype": trial.dtype != "float32",
        "--channels-last": trial.layout == CHANNELS_LAST,
        "--training": trial.training,
        "--dynamic": trial.dynamic,
    }
    if given := ", ".join(name for name, is_given in chosen.items() if is_given):
        raise TrialError(f"the question {trial.question} chooses its cells: leave {given} out")


def _plain(trial: Trial, outline: Outline, **changes: object) -> list[Cell]:
    """The cells of the trial with a settled heap, after the changes to the trial."""
    changed = {"allocators": SETTLED, **changes}
    return plan.cells(msgspec.structs.replace(trial, **changed), outline)


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
    plain = _plain(trial, outline, allocators=plan.allocators(trial))
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
    """Fixed shapes; with ``--dynamic`` also changing ones."""
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

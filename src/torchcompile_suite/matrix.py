"""The questions as axes: which cells there are, and which of them a bare ``asv run`` measures.

Axes are fixed: they never depend on what is installed, and values are only ever added, because ASV
keeps a result under its values. Different questions may share a cell, which is measured once.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import msgspec

from . import workloads
from .cell import Cell
from .modes import EAGER, MODES

COMPILED = [name for name, mode in MODES.items() if mode.compiles]
DTYPES = ["float32", "bfloat16"]
# A training step is measured at this batch: large enough for BatchNorm, small enough for two cores.
TRAINING_BATCH = 4
POLICIES = ["recompile", "automatic", "dynamic", "marked", "buckets"]
BACKENDS = ["eager", "aot_eager", "cudagraphs", "inductor"]
ALLOCATORS = ["libc", "tcmalloc", "jemalloc"]
# "warm-up-mixed" is worked out from the right cell's own first calls.
WARM_UP_MIXED = "warm-up-mixed"
PROTOCOLS = ["right", WARM_UP_MIXED, "data-inside", "no-sync", "grad-on", "train-mode"]
CHANGES = ["repeat", "dtype", "device", "requires_grad", "size", "stride"]


@dataclass(frozen=True, eq=False)
class Question:
    """A benchmark class's axes, the cell at each point, and whether that belongs to the core.

    ``name`` is the class as ASV spells it, ``module.Class``. ``cell`` and ``in_core`` take the
    point's values in the order of the axes.
    """

    name: str
    axes: dict[str, Sequence[Any]]
    cell: Callable[..., Cell]
    in_core: Callable[..., bool]

    @cached_property
    def points(self) -> list[tuple[Any, ...]]:
        """Every point, in ASV's order."""
        return list(itertools.product(*self.axes.values()))


def _inference_core(workload: str, batch_size: int, mode: str) -> bool:
    core = workloads.get(workload).core
    if batch_size == 1:
        return ("inference" if mode == "default" else mode) in core
    return mode in {5: ("max-autotune",), 8: ("default",)}.get(batch_size, ()) and (
        f"batch{batch_size}" in core
    )


def _compiled_core(workload: str, mode: str) -> bool:
    return _inference_core(workload, 1, mode)


def _training_core(workload: str, mode: str, dtype: str, accumulation: int) -> bool:
    core = workloads.get(workload).core
    if mode != "default" or (dtype, accumulation) == ("bfloat16", 4):
        return False
    plain = dtype == "float32" and accumulation == 1
    return ("training" if plain else "training_variants") in core


def _precision_core(workload: str, batch_size: int, mode: str) -> bool:
    wanted = {EAGER: "precision", "default": "precision_compiled"}.get(mode)
    return batch_size == 1 and wanted in workloads.get(workload).core


def _in_core(question: str, *among: str) -> Callable[..., bool]:
    """In the core of the workloads that name it; where ``among`` is given, these values alone of
    the last axis.
    """
    return lambda workload, *point: (
        question in workloads.get(workload).core and (not among or point[-1] in among)
    )


def _default(workload: str, *_: Any) -> Cell:
    return Cell(workload, 1, "default")


def _protocol(workload: str, protocol: str) -> Cell:
    right = protocol == WARM_UP_MIXED
    return Cell(workload, 1, "default", protocol="right" if right else protocol)


def _compiled(name: str) -> Question:
    """A question about the very cells that inference measures at batch 1."""
    return Question(
        name,
        {"workload": workloads.names(), "mode": COMPILED},
        lambda workload, mode: Cell(workload, 1, mode),
        _compiled_core,
    )


INFERENCE = Question(
    "inference.Inference",
    {"workload": workloads.names(), "batch_size": [1, 8, 5], "mode": list(MODES)},
    lambda workload, batch_size, mode: Cell(workload, batch_size, mode),
    _inference_core,
)
COMPILATION = _compiled("compilation.Compilation")
GRAPHS = _compiled("graphs.Graphs")
KERNELS = _compiled("kernels.Kernels")
WARM_UP = _compiled("warm_up.WarmUp")
GUARDS = Question(
    "graphs.Guards",
    {"workload": workloads.answering("guards"), "change": CHANGES},
    _default,
    _in_core("guards"),
)
TRAINING = Question(
    "training.Training",
    {
        "workload": workloads.answering("training"),
        "mode": list(MODES),
        "dtype": DTYPES,
        "accumulation": [1, 4],
    },
    lambda workload, mode, dtype, accumulation: Cell(
        workload,
        TRAINING_BATCH,
        mode,
        phase="training",
        dtype=dtype,
        accumulation=accumulation,
    ),
    _training_core,
)
PRECISION = Question(
    "precision.Precision",
    {"workload": workloads.answering("precision"), "batch_size": [1, 5], "mode": list(MODES)},
    lambda workload, batch_size, mode: Cell(
        workload, batch_size, mode, dtype="bfloat16", baseline="eager-float32"
    ),
    _precision_core,
)
DYNAMIC_SHAPES = Question(
    "dynamic_shapes.DynamicShapes",
    {"workload": workloads.answering("dynamic_shapes"), "policy": POLICIES},
    lambda workload, policy: Cell(workload, 1, "default", shapes=policy),
    # Torch's default beside those that are chosen, and marking instead of asking for all, are for
    # those who ask.
    _in_core("dynamic_shapes", "recompile", "dynamic", "buckets"),
)
BACKEND = Question(
    "backends.Backends",
    {"workload": workloads.answering("backends"), "backend": BACKENDS},
    lambda workload, backend: Cell(workload, 1, "default", backend=backend),
    _in_core("backends"),
)
PROTOCOL = Question(
    "protocol.Protocol",
    {"workload": workloads.answering("protocol"), "protocol": PROTOCOLS},
    _protocol,
    _in_core("protocol"),
)
ALLOCATOR = Question(
    "allocator.Allocator",
    {"workload": workloads.answering("allocator"), "allocator": ALLOCATORS},
    lambda workload, allocator: Cell(workload, 1, "default", allocator=allocator),
    # One of the two others is enough to tell the allocator's share of a gain.
    _in_core("allocator", "libc", "tcmalloc"),
)

QUESTIONS = {
    question.name: question
    for question in (
        INFERENCE,
        COMPILATION,
        GRAPHS,
        GUARDS,
        KERNELS,
        WARM_UP,
        TRAINING,
        PRECISION,
        DYNAMIC_SHAPES,
        BACKEND,
        PROTOCOL,
        ALLOCATOR,
    )
}


# What every release of the published history has: all families, and a minute a cell makes ten.
HISTORY = (
    Cell("resnet18", 1, "default"),
    Cell("vit16x6x384", 1, "default"),
    Cell("operator_stochastic", 1, "default"),
    Cell("relevance_information", 1, "default"),
    Cell("relevance_information", TRAINING_BATCH, "default", phase="training"),
    Cell("softmax_matmul", 1, "default"),
    Cell("pointwise_chain", 1, "default"),
    Cell("branch_on_value", 1, "default"),
    Cell("gpt_decode", 1, "default"),
    Cell("resnet18", 1, EAGER),
)


def find(benchmark: str) -> Question | None:
    """The question that an ASV benchmark (``module.Class.method``) belongs to."""
    return QUESTIONS.get(benchmark.rpartition(".")[0])


def cell_at(benchmark: str, index: int | None) -> Cell | None:
    """The cell at that place of an ASV benchmark's points; None where it is not one of ours."""
    question = find(benchmark)
    if question is None or index is None:
        return None
    return question.cell(*question.points[index])


def core_patterns() -> list[str]:
    """For ``asv run --bench``: regular expressions that match the core's benchmarks and no other.

    ASV matches against ``module.Class.method(repr, repr, ...)``.
    """
    return [
        rf"^{re.escape(question.name)}\.\w+\({points}\)$"
        for question in QUESTIONS.values()
        if (points := _core_points(question))
    ]


def narrowed(benchmark: str) -> str:
    """The same for one benchmark that is named without a point, such as
    ``inference.Inference.track_latency``; any other expression as it is.
    """
    question = find(benchmark)
    if question is None or not benchmark.rpartition(".")[2].isidentifier():
        return benchmark
    return rf"^{re.escape(benchmark)}\({_core_points(question)}\)$"


def _core_points(question: Question) -> str:
    points = [
        re.escape(", ".join(map(repr, point)))
        for point in question.points
        if question.in_core(*point)
    ]
    return f"(?:{'|'.join(points)})" if points else ""


def pattern(cell: Cell) -> str | None:
    """For ``asv run --bench``: the expression that measures just this cell, on any device.

    One benchmark of the first class that asks about it: all metrics come from one measurement.
    None for a cell that no question has, such as one of somebody else's workload.
    """
    plain = msgspec.structs.replace(cell, device=Cell("any", 1, EAGER).device)
    return _patterns().get(plain)


@cache
def _patterns() -> dict[Cell, str]:
    """All cells at once: the site asks for each of its measurements, some thousands of points."""
    found: dict[Cell, str] = {}
    for question in QUESTIONS.values():
        for point in question.points:
            values = ", ".join(re.escape(repr(value)) for value in point)
            found.setdefault(
                question.cell(*point), rf"^{re.escape(question.name)}\.\w+\({values}\)"
            )
    return found


def core_cells() -> list[Cell]:
    """The cells that a bare ``asv run`` measures, each once."""
    return list(
        dict.fromkeys(
            question.cell(*point)
            for question in QUESTIONS.values()
            for point in question.points
            if question.in_core(*point)
        )
    )

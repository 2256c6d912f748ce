"""The questions as axes: which cells exist, and which of them a bare ``asv run`` measures.

These are the core: the most informative values of each question, so that the core of a release
takes an hour on two cores. The others are measured with ``--bench``.

Axes never depend on what is installed, and values are only added, because ASV keeps a result under
its values. Two questions may share a cell; it is measured once.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import msgspec

from . import targets, workloads
from .cell import AUTOCAST, DEFAULT_HEAP, QUANTISATIONS, TF32, WEIGHTS, Cell, Shapes, Start, Way
from .modes import EAGER, MODES

COMPILED = [name for name, mode in MODES.items() if mode.compiles]
DTYPES = ["float32", "bfloat16"]
# What `try` can ask: the axes of the benchmarks have the first two.
TRIED_DTYPES = ["float32", *AUTOCAST, *WEIGHTS, TF32]
# The batch size of training steps: large enough for BatchNorm, small enough for two cores.
TRAINING_BATCH = 4
POLICIES: list[Shapes] = [
    *("recompile", "automatic", "dynamic", "marked", "buckets"),
    *("unbacked", "oblivious"),
]
BACKENDS = ["eager", "aot_eager", "cudagraphs", "inductor"]
ALLOCATORS = ["libc", "tcmalloc", "jemalloc", DEFAULT_HEAP]
FREEZING_WAYS: list[Way] = ["whole", "freezing"]
REGIONAL_WAYS: list[Way] = ["whole", "regional", "nested-region"]
# Computed from the first calls of the cell with the right protocol, so it has no cell of its own.
WARM_UP_MIXED = "warm-up-mixed"
# What a process finds when it starts, and how shapes change while the memory is watched.
STARTS: list[Start] = ["uncached", "disk-cache", "carried-cache", "aot-package", "precompile"]
CHANGING: list[Shapes] = ["static", "automatic", "recompile"]
PROTOCOLS = ["right", WARM_UP_MIXED, "data-inside", "no-sync", "grad-on", "train-mode"]
_DEVICE = Cell("any", 1, EAGER).device
CHANGES = ["repeat", "dtype", "device", "requires_grad", "size", "stride"]

# A point of a question, without the workload -> the tag (`workloads.TAGS`) that a workload needs so
# that the point is in its core. A point that is not listed is in no core.
INFERENCE_TAGS = {
    (1, EAGER): "eager",
    (1, "default"): "inference",
    (1, "reduce-overhead"): "reduce-overhead",
    (1, "max-autotune"): "max-autotune",
    (5, "max-autotune"): "batch5",
    (8, "default"): "batch8",
}
COMPILED_TAGS = {
    (mode,): tag for (batch_size, mode), tag in INFERENCE_TAGS.items() if batch_size == 1
}
TRAINING_TAGS = {
    ("default", "float32", 1): "training",
    ("default", "bfloat16", 1): "training_variants",
    ("default", "float32", 4): "training_variants",
}
# What is generated for a GPU that is not here: on the one that most people rent.
GENERATED_TARGET = "cuda:sm90"
GENERATED_TAGS = {
    ("default", GENERATED_TARGET): "inference",
    ("reduce-overhead", GENERATED_TARGET): "inference",
}
GENERATED_TRAINING_TAGS = {("default", GENERATED_TARGET): "training"}
PRECISION_TAGS = {
    (1, EAGER): "precision",
    (1, "default"): "precision_compiled",
}
# Whether int8 gains, and whether the compile makes it gain: both modes answer it together.
QUANTISATION_TAGS = {("int8-dynamic", mode): "quantisation" for mode in (EAGER, "default")}


@dataclass(frozen=True, eq=False)
class Question:
    """The axes of a benchmark class, the cell at each point, and which points are in the core.

    ``name`` is the class as ASV spells it, ``module.Class``. ``cell`` and ``in_core`` take the
    values of a point in the order of the axes.
    """

    name: str
    axes: dict[str, Sequence[Any]]
    cell: Callable[..., Cell]
    in_core: Callable[..., bool]

    @cached_property
    def points(self) -> list[tuple[Any, ...]]:
        """All points, in ASV's order."""
        return list(itertools.product(*self.axes.values()))

    @cached_property
    def by_cell(self) -> dict[Cell, list[tuple[Any, ...]]]:
        """The points of each cell."""
        return self._by_cell(self.points)

    def _by_cell(self, points: Iterable[tuple[Any, ...]]) -> dict[Cell, list[tuple[Any, ...]]]:
        cells: dict[Cell, list[tuple[Any, ...]]] = {}
        for point in points:
            cells.setdefault(self.cell(*point), []).append(point)
        return cells

    def points_of(self, cell: Cell) -> list[tuple[Any, ...]]:
        """The points with that cell, whatever its device; empty if the question has none.

        Also for a workload that the suite does not have, because somebody else has measured it.
        """
        cell = on_any_device(cell)
        here, *others = self.axes.values()
        if cell.workload not in here and cell.workload not in workloads.names():
            return self._by_cell(itertools.product([cell.workload], *others)).get(cell, [])
        return self.by_cell.get(cell, [])


def _by_tag(tags: Mapping[tuple[Any, ...], str]) -> Callable[..., bool]:
    """In the core: the points whose tag is in the workload's core."""
    return lambda workload, *point: tags.get(tuple(point)) in workloads.get(workload).core


def _with_tag(tag: str, *values: str) -> Callable[..., bool]:
    """In the core: the points of workloads with the tag in their core, and of these only the
    ``values`` of the last axis, if any are given.
    """
    return lambda workload, *point: (
        tag in workloads.get(workload).core and (not values or point[-1] in values)
    )


def _allocator_in_core(workload: str, allocator: str) -> bool:
    """In the core: the default heap, and one other allocator to show the allocator's share."""
    core = workloads.get(workload).core
    if allocator == DEFAULT_HEAP:
        return "default_heap" in core
    return "allocator" in core and allocator in ("libc", "tcmalloc")


def _default(workload: str, *_: Any) -> Cell:
    return Cell(workload, 1, "default")


def _protocol(workload: str, protocol: str) -> Cell:
    right = protocol == WARM_UP_MIXED
    return Cell(workload, 1, "default", protocol="right" if right else protocol)  # type: ignore[arg-type]


def _compiled(name: str) -> Question:
    """A question about the cells that `INFERENCE` measures at batch 1."""
    return Question(
        name,
        {"workload": workloads.names(), "mode": COMPILED},
        lambda workload, mode: Cell(workload, 1, mode),
        _by_tag(COMPILED_TAGS),
    )


def _tagged(name: str, tag: str) -> Question:
    """A question about the workloads with a tag, in the cells that `INFERENCE` has at batch 1.

    In the core: mode default.
    """
    return Question(
        name,
        {"workload": workloads.tagged(tag), "mode": COMPILED},
        lambda workload, mode: Cell(workload, 1, mode),
        _by_tag({("default",): tag}),
    )


INFERENCE = Question(
    "inference.Inference",
    {"workload": workloads.names(), "batch_size": [1, 8, 5], "mode": list(MODES)},
    lambda workload, batch_size, mode: Cell(workload, batch_size, mode),
    _by_tag(INFERENCE_TAGS),
)
COMPILATION = _compiled("compilation.Compilation")
GRAPHS = _compiled("graphs.Graphs")
KERNELS = _compiled("kernels.Kernels")
WARM_UP = _compiled("warm_up.WarmUp")
GUARDS = Question(
    "graphs.Guards",
    {"workload": workloads.tagged("guards"), "change": CHANGES},
    _default,
    _with_tag("guards"),
)
TRAINING = Question(
    "training.Training",
    {
        "workload": workloads.tagged("training"),
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
    _by_tag(TRAINING_TAGS),
)
PRECISION = Question(
    "precision.Precision",
    {"workload": workloads.tagged("precision"), "batch_size": [1, 5], "mode": list(MODES)},
    lambda workload, batch_size, mode: Cell(
        workload, batch_size, mode, dtype="bfloat16", baseline="eager-float32"
    ),
    _by_tag(PRECISION_TAGS),
)
DYNAMIC_SHAPES = Question(
    "dynamic_shapes.DynamicShapes",
    {"workload": workloads.tagged("dynamic_shapes"), "policy": POLICIES},
    lambda workload, policy: Cell(workload, 1, "default", shapes=policy),
    _with_tag("dynamic_shapes", "recompile", "dynamic"),
)
BACKEND = Question(
    "backends.Backends",
    {"workload": workloads.tagged("backends"), "backend": BACKENDS},
    lambda workload, backend: Cell(workload, 1, "default", backend=backend),
    _with_tag("backends", "eager", "aot_eager", "inductor"),
)
PROTOCOL = Question(
    "protocol.Protocol",
    {"workload": workloads.tagged("protocol"), "protocol": PROTOCOLS},
    _protocol,
    _with_tag("protocol", "right", WARM_UP_MIXED, "data-inside", "grad-on"),
)
ALLOCATOR = Question(
    "allocator.Allocator",
    {"workload": workloads.names(), "allocator": ALLOCATORS},
    lambda workload, allocator: Cell(workload, 1, "default", allocator=allocator),
    _allocator_in_core,
)
TRAINING_ALLOCATOR = Question(
    "allocator.TrainingAllocator",
    {"workload": workloads.tagged("training"), "allocator": ALLOCATORS},
    lambda workload, allocator: Cell(
        workload, TRAINING_BATCH, "default", phase="training", allocator=allocator
    ),
    _with_tag("training", DEFAULT_HEAP),
)
COLD_START = Question(
    "starts.ColdStart",
    {"workload": workloads.tagged("starts"), "start": STARTS},
    lambda workload, start: Cell(workload, 1, "default", start=start),
    _with_tag("starts"),
)
MEMORY_OVER_TIME = Question(
    "memory.MemoryOverTime",
    {"workload": workloads.tagged("memory_over_time"), "shapes": CHANGING},
    lambda workload, shapes: Cell(
        workload, 1, "default", shapes=shapes, allocator=DEFAULT_HEAP, protocol="many-calls"
    ),
    _with_tag("memory_over_time", "static", "recompile"),
)

OVERHEAD = _tagged("overhead.Overhead", "overhead")
ATTENTION = _tagged("attention.Attention", "attention")
QUANTISATION = Question(
    "quantisation.Quantisation",
    {
        "workload": workloads.tagged("quantisation"),
        "dtype": list(QUANTISATIONS),
        "mode": list(MODES),
    },
    lambda workload, dtype, mode: Cell(workload, 1, mode, dtype=dtype, baseline="eager-float32"),
    _by_tag(QUANTISATION_TAGS),
)

FREEZING = Question(
    "freezing.Freezing",
    {"workload": workloads.tagged("freezing"), "way": FREEZING_WAYS},
    lambda workload, way: Cell(workload, 1, "default", way=way),
    _with_tag("freezing", "freezing"),
)
# Memory on a CPU is measured with the default heap only.
FREEZING_MEMORY = Question(
    "freezing.FreezingMemory",
    {"workload": workloads.tagged("freezing"), "way": FREEZING_WAYS},
    lambda workload, way: Cell(workload, 1, "default", allocator=DEFAULT_HEAP, way=way),
    _with_tag("freezing_memory", "freezing"),
)
REGIONAL = Question(
    "regional.Regional",
    {"workload": workloads.tagged("regional"), "way": REGIONAL_WAYS},
    lambda workload, way: Cell(workload, 1, "default", way=way),
    # `nested-region` is not in the core: older releases lack it.
    _with_tag("regional", "whole", "regional"),
)

CODEGEN = Question(
    "codegen.Codegen",
    {"workload": workloads.names(), "mode": COMPILED, "target": list(targets.read())},
    lambda workload, mode, target: Cell(workload, 1, mode, target=target),
    _by_tag(GENERATED_TAGS),
)
TRAINING_CODEGEN = Question(
    "codegen.TrainingCodegen",
    {
        "workload": workloads.tagged("training"),
        "mode": COMPILED,
        "target": list(targets.read()),
    },
    lambda workload, mode, target: Cell(
        workload, TRAINING_BATCH, mode, phase="training", target=target
    ),
    _by_tag(GENERATED_TRAINING_TAGS),
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
        TRAINING_ALLOCATOR,
        FREEZING,
        FREEZING_MEMORY,
        REGIONAL,
        COLD_START,
        MEMORY_OVER_TIME,
        CODEGEN,
        TRAINING_CODEGEN,
        OVERHEAD,
        ATTENTION,
        QUANTISATION,
    )
}


def made_for(workload: str) -> Question | None:
    """The question that a workload was made for, so that its plain cells belong to it; else None.

    Such a workload is no model: a mean over models leaves it out.
    """
    made = (OVERHEAD, ATTENTION)
    return next((one for one in made if workload in one.axes["workload"]), None)


def find(benchmark: str) -> Question | None:
    """The question of an ASV benchmark (``module.Class.method``); None if there is no such."""
    return QUESTIONS.get(benchmark.rpartition(".")[0])


def cell_at(benchmark: str, index: int | None) -> Cell | None:
    """The cell at that index of an ASV benchmark's points; None for a foreign benchmark."""
    question = find(benchmark)
    if question is None or index is None:
        return None
    return question.cell(*question.points[index])


def core_patterns() -> list[str]:
    """For ``asv run --bench``: regular expressions that match exactly the core's benchmarks.

    ASV matches against ``module.Class.method(repr, repr, ...)``.
    """
    return [
        rf"^{re.escape(question.name)}\.\w+\({points}\)$"
        for question in QUESTIONS.values()
        if (points := _core_points(question))
    ]


def cells_matching(expression: str) -> list[Cell]:
    """The cells of the points whose text the regular expression finds, each once.

    The text is as ASV has it, without the method, because all metrics of a cell are measured
    together: ``inference.Inference('resnet18', 1, 'default')``. Raises re.error.
    """
    wanted = re.compile(expression)
    return list(
        dict.fromkeys(
            question.cell(*point)
            for question in QUESTIONS.values()
            for point in question.points
            if wanted.search(f"{question.name}({', '.join(map(repr, point))})")
        )
    )


def narrowed(benchmark: str) -> str:
    """For ``asv run --bench``: the core's points of one benchmark.

    Any expression that is not the plain name of a benchmark (such as
    ``inference.Inference.track_latency``) is returned unchanged.
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
    """For ``asv run --bench``: the expression that measures only this cell, on any device.

    It selects the benchmarks of the first question that has the cell; all metrics come from one
    measurement. None for a cell that no question has, such as a cell of an unknown workload.
    """
    return _patterns().get(on_any_device(cell))


def on_any_device(cell: Cell) -> Cell:
    """The cell as a question has it: the device belongs to the machine."""
    return msgspec.structs.replace(cell, device=_DEVICE)


@cache
def _patterns() -> dict[Cell, str]:
    """The expressions of all cells. Cached: the site asks for thousands of cells."""
    patterns: dict[Cell, str] = {}
    for question in QUESTIONS.values():
        for point in question.points:
            values = ", ".join(re.escape(repr(value)) for value in point)
            patterns.setdefault(
                question.cell(*point), rf"^{re.escape(question.name)}\.\w+\({values}\)"
            )
    return patterns


def core_cells() -> list[Cell]:
    """The cells that a bare ``asv run`` times, without duplicates."""
    return [cell for cell in _core() if not cell.target]


def core_generated() -> list[Cell]:
    """The cells with a target for which a bare ``asv run`` generates code, without duplicates."""
    return [cell for cell in _core() if cell.target]


def _core() -> list[Cell]:
    return list(
        dict.fromkeys(
            question.cell(*point)
            for question in QUESTIONS.values()
            for point in question.points
            if question.in_core(*point)
        )
    )

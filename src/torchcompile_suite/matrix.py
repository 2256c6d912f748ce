"""The questions as axes: which cells exist, which of them a bare ``asv run`` measures, and of which
the history is published.

A bare run measures the core: the most informative values of each question, so that the core of a
release takes an hour on two cores. The others are measured with ``--bench``.

Axes never depend on what is installed, and values are only added, because ASV keeps a result under
its values. Two questions may share a cell; it is measured once.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import msgspec

from . import targets, workloads
from .cell import AUTOCAST, DEFAULT_HEAP, QUANTISATIONS, TF32, WEIGHTS, Cell, Shapes, Start, Way
from .modes import EAGER, MODES

COMPILED = [name for name in MODES if name != EAGER]
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

# Point of a question, without the workload -> the tag (`workloads.TAGS`) that a workload needs so
# that the point is in its core. A point that is not listed is in no core.
Core = Mapping[tuple[Any, ...], str]
# What is generated for a GPU that is not here: on the one that most people rent.
GENERATED_TARGET = "cuda:sm90"
# Axis -> the field of the cell, where the two have different names. The changes of the inputs that
# cause a recapture are all recorded in one cell.
_FIELDS = {"policy": "shapes", "change": ""}


@dataclass(frozen=True, eq=False)
class Question:
    """The axes of a benchmark class, and which of their points are in the core.

    ``name`` is the class as ASV spells it, ``module.Class``. The first axis is the workload.
    ``fixed``: what the cells have in fields without an axis.
    """

    name: str
    axes: dict[str, Sequence[Any]]
    core: Core
    fixed: Mapping[str, Any]

    def cell(self, *point: Any) -> Cell:
        """The cell at a point: values in the order of the axes."""
        fields: dict[str, Any] = {"batch_size": 1, "mode": "default", **self.fixed}
        for axis, value in zip(self.axes, point, strict=True):
            if field := _FIELDS.get(axis, axis):
                fields[field] = value
        if fields.get("protocol") == WARM_UP_MIXED:
            fields["protocol"] = "right"
        return Cell(**fields)

    def in_core(self, workload: str, *point: Any) -> bool:
        """Whether a bare ``asv run`` measures the point."""
        return self.core.get(point) in workloads.get(workload).core

    @cached_property
    def points(self) -> list[tuple[Any, ...]]:
        """All points, in ASV's order."""
        return list(itertools.product(*self.axes.values()))

    @cached_property
    def by_cell(self) -> dict[Cell, list[tuple[Any, ...]]]:
        """The points of each cell."""
        cells: dict[Cell, list[tuple[Any, ...]]] = {}
        for point in self.points:
            cells.setdefault(self.cell(*point), []).append(point)
        return cells

    def points_of(self, cell: Cell) -> list[tuple[Any, ...]]:
        """The points with that cell, whatever its device; empty if the question has none.

        Also for a workload that the suite does not have, because somebody else has measured it.
        """
        cell = on_any_device(cell)
        here, *others = self.axes.values()
        if cell.workload not in here and cell.workload not in workloads.names():
            points = itertools.product([cell.workload], *others)
            return [point for point in points if self.cell(*point) == cell]
        return self.by_cell.get(cell, [])


QUESTIONS: dict[str, Question] = {}
"""All questions by name. Of several questions with one cell, the first one stands for it."""


def _question(
    name: str, tag: str, axes: Mapping[str, Sequence[Any]], core: Core, **fixed: Any
) -> Question:
    """A question about the workloads with a tag, and its place in `QUESTIONS`."""
    made = Question(name, {"workload": workloads.tagged(tag), **axes}, core, fixed)
    QUESTIONS[name] = made
    return made


def _of_axis(
    name: str, tag: str, axis: str, values: Sequence[Any], core: Sequence[Any], **fixed: Any
) -> Question:
    """A question with one more axis than the workload. ``core``: the values in it."""
    return _question(name, tag, {axis: values}, {(value,): tag for value in core}, **fixed)


_INFERENCE_CORE = {
    (1, EAGER): "eager",
    (1, "default"): "inference",
    (1, "reduce-overhead"): "reduce-overhead",
    (1, "max-autotune"): "max-autotune",
    (5, "max-autotune"): "batch5",
    (8, "default"): "batch8",
}
# Of the cells that `INFERENCE` has at batch 1.
_COMPILED_AXES = {"mode": COMPILED}
_COMPILED_CORE = {(mode,): tag for (size, mode), tag in _INFERENCE_CORE.items() if size == 1}
_GENERATED_AXES = {"mode": COMPILED, "target": list(targets.read())}
_TRAINED = {"phase": "training", "batch_size": TRAINING_BATCH}

INFERENCE = _question(
    "inference.Inference",
    "inference",
    {"batch_size": [1, 8, 5], "mode": list(MODES)},
    _INFERENCE_CORE,
)
COMPILATION = _question("compilation.Compilation", "inference", _COMPILED_AXES, _COMPILED_CORE)
GRAPHS = _question("graphs.Graphs", "inference", _COMPILED_AXES, _COMPILED_CORE)
GUARDS = _of_axis("graphs.Guards", "guards", "change", CHANGES, CHANGES)
KERNELS = _question("kernels.Kernels", "inference", _COMPILED_AXES, _COMPILED_CORE)
WARM_UP = _question("warm_up.WarmUp", "inference", _COMPILED_AXES, _COMPILED_CORE)
TRAINING = _question(
    "training.Training",
    "training",
    {"mode": list(MODES), "dtype": DTYPES, "accumulation": [1, 4]},
    {
        ("default", "float32", 1): "training",
        ("default", "bfloat16", 1): "training_variants",
        ("default", "float32", 4): "training_variants",
    },
    **_TRAINED,
)
PRECISION = _question(
    "precision.Precision",
    "precision",
    {"batch_size": [1, 5], "mode": list(MODES)},
    {(1, EAGER): "precision", (1, "default"): "precision_compiled"},
    dtype="bfloat16",
    baseline="eager-float32",
)
DYNAMIC_SHAPES = _of_axis(
    "dynamic_shapes.DynamicShapes", "dynamic_shapes", "policy", POLICIES, ["recompile", "dynamic"]
)
BACKEND = _of_axis(
    "backends.Backends", "backends", "backend", BACKENDS, ["eager", "aot_eager", "inductor"]
)
PROTOCOL = _of_axis(
    "protocol.Protocol",
    "protocol",
    "protocol",
    PROTOCOLS,
    ["right", WARM_UP_MIXED, "data-inside", "grad-on"],
)
# The default heap, and one other allocator to show the allocator's share. "libc" is in no core: all
# other cells have it.
ALLOCATOR = _question(
    "allocator.Allocator",
    "inference",
    {"allocator": ALLOCATORS},
    {(DEFAULT_HEAP,): "default_heap", ("tcmalloc",): "allocator"},
)
TRAINING_ALLOCATOR = _of_axis(
    "allocator.TrainingAllocator", "training", "allocator", ALLOCATORS, [DEFAULT_HEAP], **_TRAINED
)
FREEZING = _of_axis("freezing.Freezing", "freezing", "way", FREEZING_WAYS, ["freezing"])
# Memory on a CPU is measured with the default heap only.
FREEZING_MEMORY = _question(
    "freezing.FreezingMemory",
    "freezing",
    {"way": FREEZING_WAYS},
    {("freezing",): "freezing_memory"},
    allocator=DEFAULT_HEAP,
)
# `nested-region` is not in the core: older releases lack it.
REGIONAL = _of_axis("regional.Regional", "regional", "way", REGIONAL_WAYS, ["whole", "regional"])
# A start takes minutes. The two that are not in the core are variants of "disk-cache" and of
# "aot-package".
COLD_START = _of_axis(
    "starts.ColdStart", "starts", "start", STARTS, ["uncached", "disk-cache", "aot-package"]
)
MEMORY_OVER_TIME = _of_axis(
    "memory.MemoryOverTime",
    "memory_over_time",
    "shapes",
    CHANGING,
    ["static", "recompile"],
    allocator=DEFAULT_HEAP,
    protocol="many-calls",
)
CODEGEN = _question(
    "codegen.Codegen",
    "inference",
    _GENERATED_AXES,
    {(mode, GENERATED_TARGET): "inference" for mode in ("default", "reduce-overhead")},
)
TRAINING_CODEGEN = _question(
    "codegen.TrainingCodegen",
    "training",
    _GENERATED_AXES,
    {("default", GENERATED_TARGET): "training"},
    **_TRAINED,
)
# In no core: a launch takes half a minute, and most of it is the second compile.
ATTRIBUTION = _question(
    "attribution.Attribution", "inference", _COMPILED_AXES, {}, protocol="divided"
)
TRAINING_ATTRIBUTION = _question(
    "attribution.TrainingAttribution",
    "training",
    _COMPILED_AXES,
    {},
    protocol="divided",
    **_TRAINED,
)
OVERHEAD = _of_axis("overhead.Overhead", "overhead", "mode", COMPILED, ["default"])
ATTENTION = _of_axis("attention.Attention", "attention", "mode", COMPILED, ["default"])
# Whether int8 gains, and whether the compile makes it gain: both modes answer it together.
QUANTISATION = _question(
    "quantisation.Quantisation",
    "quantisation",
    {"dtype": list(QUANTISATIONS), "mode": list(MODES)},
    {("int8-dynamic", mode): "quantisation" for mode in (EAGER, "default")},
    baseline="eager-float32",
)


def find(benchmark: str) -> Question | None:
    """The question of an ASV benchmark (``module.Class.method``); None if there is no such."""
    return QUESTIONS.get(benchmark.rpartition(".")[0])


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
    return _cells(
        lambda question, *point: wanted.search(f"{question.name}({', '.join(map(repr, point))})")
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
        for cell, (point, *_) in question.by_cell.items():
            values = ", ".join(re.escape(repr(value)) for value in point)
            patterns.setdefault(cell, rf"^{re.escape(question.name)}\.\w+\({values}\)")
    return patterns


def core_cells() -> list[Cell]:
    """The cells that a bare ``asv run`` times, without duplicates."""
    return [cell for cell in _cells(Question.in_core) if not cell.target]


def core_generated() -> list[Cell]:
    """The cells with a target for which a bare ``asv run`` generates code, without duplicates."""
    return [cell for cell in _cells(Question.in_core) if cell.target]


def _cells(wanted: Callable[..., object]) -> list[Cell]:
    """The cells of the points for which ``wanted(question, *point)`` is true, each once."""
    return list(
        dict.fromkeys(
            cell
            for question in QUESTIONS.values()
            for cell, points in question.by_cell.items()
            if any(wanted(question, *point) for point in points)
        )
    )


# The published history. First models that people name.
_NAMED = (
    *("resnet50", "efficientnet_b0", "BertForMaskedLM"),
    *("GPT2LMHeadModel", "LlamaForCausalLM", "T5ForConditionalGeneration"),
    *("CLIPModel", "WhisperForConditionalGeneration"),
    *("vit_base_patch16_224", "convnext_tiny", "swin_tiny_patch4_window7_224", "unet_step"),
)
_CONVOLUTION_NETS = ("resnet18", "mobilenetv3_small_100", "mobilenetv2_100", "convnext_atto")
_VISION_TRANSFORMERS = ("vit_tiny_patch16_224", "vit16x6x384")
_MODELS = (
    *_CONVOLUTION_NETS,
    *_VISION_TRANSFORMERS,
    *("gpt_prefill", "gpt_decode"),
    *("operator_stochastic", "operator_deterministic"),
    *("relevance_information", "relevance_salience", "relevance_query"),
    *("softmax_matmul", "pointwise_chain", "branch_on_value"),
)
_TRAINED_MODELS = (
    *("resnet18", "mobilenetv3_small_100", "vit_tiny_patch16_224", "vit16x6x384"),
    *("gpt_prefill", "relevance_information"),
)
# Eager against eager is the noise floor. Two models of different families show it.
_NOISE_FLOOR = ("resnet18", "vit16x6x384")

SERIES = (
    *(Cell(model, 1, "default") for model in (*_NAMED, *_MODELS)),
    # The other batch size, then the other modes: what most readers ask next.
    *(Cell(model, 8, "default") for model in (*_CONVOLUTION_NETS, *_VISION_TRANSFORMERS)),
    # What a call costs beyond its kernels.
    Cell("small_1x1", 1, "default"),
    *(Cell(model, 1, "max-autotune") for model in _MODELS),
    *(Cell(model, TRAINING_BATCH, "default", phase="training") for model in _TRAINED_MODELS),
    *(Cell(model, 1, "default", allocator=DEFAULT_HEAP) for model in _CONVOLUTION_NETS),
    *(Cell(model, 1, "reduce-overhead") for model in _MODELS),
    *(Cell(model, 1, EAGER) for model in _NOISE_FLOOR),
)
"""The cells of the published history, most informative first. Each is measured in turns, in the
newest patch of every minor release, on one machine: a series."""

CORE_OF = ("v2.4", "v2.9", "v2.15")
"""The releases whose whole core is published."""

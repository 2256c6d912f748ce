"""The vocabulary of all other modules: what is measured, in which environment, and how it ended.

Nothing here imports torch or asv, so results can be read on any machine. All types are ``msgspec``
structs. Decoding checks types and bounds: a foreign or damaged file is refused with a reason, and
no half-valid object is made from it.

Units are part of the field names: ``_s`` seconds, ``_bytes`` bytes. Where an attribute has another
name than its JSON field, the JSON field keeps the name under which results are published.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

SCHEMA: Literal[13] = 13
"""Version of the JSON that crosses processes and machines, the ``schema`` field of each struct.
A reader refuses a newer version and reads all older ones: each version added fields with defaults.
Version 13 added what an accelerator says of itself and during a measurement (`Accelerator`,
`DeviceState`), the latency of a single call, allocated memory, and `Environment.adopted`."""

METHOD = 3
"""Version of how pairs are timed, the ``method`` field of a launch. Times of two methods are not
compared. 1: eager and the mode alternate sample by sample; a sample is one call or 10 ms. 2: eager
and the mode take turns in one process; the first calls of a turn do not count. 3: on a CPU, eager
and the mode each have a process of their own and a settled heap (docs/method.md, "One launch")."""

GENERATION = 1
"""Version of how code for a target is generated and counted, the ``generation`` field of a
`Generated`. Counts of two generations are not compared."""

# Patterns end in \Z: a $ also matches before a newline at the end.
Name = Annotated[str, Meta(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]*\Z")]
Text = Annotated[str, Meta(max_length=4000)]
Seconds = Annotated[float, Meta(ge=0, le=1e7)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
# Kept short: the analysis is quadratic.
Samples = Annotated[list[Count], Meta(max_length=200)]
Schema = Literal[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]
Stopped = Literal["", "fixed", "precise", "budget"]
Shapes = Literal[
    "static", "recompile", "automatic", "dynamic", "marked", "buckets", "unbacked", "oblivious"
]
Protocol = Literal["right", "data-inside", "no-sync", "grad-on", "train-mode", "many-calls"]
Way = Literal["whole", "freezing", "regional", "nested-region", "as-given"]
Layout = Literal["contiguous", "channels-last"]
Start = Literal["", "uncached", "disk-cache", "carried-cache", "aot-package", "precompile"]
Side = Literal["eager", "mode"]
Heap = Literal["", "default", "settled"]
# A GPU of `targets`, such as cuda:sm90; empty for the device of the machine.
TargetName = Annotated[str, Meta(max_length=40, pattern=r"^([a-z]+:[a-z0-9]+)?\Z")]

MOST_BATCH = 1_000_000
"""The largest batch size of a cell."""

DEFAULT_HEAP = "default-heap"
"""The value of `Cell.allocator` for the C library's malloc as a script gets it."""

NOT_CHECKED = "accuracy not checked"
"""Begins a note of `Accuracy.notes` on outputs that could not be compared as they should be."""

TOO_BUSY = "this machine is too busy to say"
"""Begins the reason of an outcome if others take the processors, and no repeat is left."""

AUTOCAST = ("bfloat16", "float16")
"""The values of `Cell.dtype` for an autocast region around the call."""

WEIGHTS = {"bfloat16-weights": "bfloat16", "float16-weights": "float16"}
"""The values of `Cell.dtype` for weights and inputs in another dtype, with torch's name of it."""

TF32 = "tf32"
"""The value of `Cell.dtype` for float32 whose products and convolutions a GPU makes in TF32."""

CHANNELS_LAST: Literal["channels-last"] = "channels-last"
"""The value of `Cell.layout` for images whose channels lie beside each other in memory."""

QUANTISATIONS = ("int8-dynamic", "int8-weight-only")
"""The values of `Cell.dtype` for which the weights of linear layers are quantised (torchao). With
the first one, each call also quantises the layers' inputs."""


class Cell(Struct, frozen=True, forbid_unknown_fields=True, cache_hash=True):
    """One point of the matrix: a workload, how it is compiled, and what it is compared with.

    - ``device``: the accelerator's kind as torch spells it (``cpu``, ``cuda``).
    - ``dtype``: float32, the dtype of the autocast region around the call (`AUTOCAST`), of the
      weights (`WEIGHTS`), `TF32`, or a quantisation of the weights (`QUANTISATIONS`).
    - ``shapes``: ``static`` means that the input's shape never changes. The other values call the
      workload's stream of shapes (`torchcompile_suite.launch.subject.ShapeStream`).
    - ``backend``: the backend of torch.compile. Any name: `try` also takes backends of the user's.
    - ``allocator``: the malloc of the processes. ``system``: the C library's, told to keep its
      memory (a settled heap, `torchcompile_suite.host.heap`). `DEFAULT_HEAP`: the C library's with
      its defaults. ``libc``: the same, beside preloaded ones. Else the name of a preloaded one.
    - ``protocol``: ``right``, the timing mistake that the measurement makes on purpose, or
      ``many-calls``: the memory of the process is recorded over thousands of calls.
    - ``baseline``: the other call of each pair, eager in the same dtype or in float32.
    - ``accumulation``: micro-batches of a training step.
    - ``target``: a GPU that is not here (`torchcompile_suite.targets`). Then nothing is timed: the
      compiler generates code for it, which is counted (`Generated`).
    - ``way``: what is compiled: the ``whole`` module; the same with its weights as constants
      (``freezing``); the block that the module repeats, once (``regional``); the whole module with
      the block as a region that is compiled once (``nested-region``); or what the user's code
      compiles, whatever the cell's mode (``as-given``).
    - ``start``: what a process finds when it starts. Then a pair is two whole processes, each from
      its start to its first result. Empty for a cell whose calls are timed.
    - ``layout``: of weights and inputs with four dimensions in memory.

    The fields with defaults are axes. Their defaults are the plain inference cell.
    """

    workload: Name
    batch_size: Annotated[int, Meta(ge=1, le=MOST_BATCH)]
    mode: Name
    phase: Literal["inference", "training"] = "inference"
    dtype: Name = "float32"
    device: Name = "cpu"
    shapes: Shapes = "static"
    backend: Name = "inductor"
    allocator: Name = "system"
    protocol: Protocol = "right"
    baseline: Name = "eager"
    accumulation: Annotated[int, Meta(ge=1, le=1000)] = 1
    target: TargetName = ""
    way: Way = "whole"
    start: Start = ""
    layout: Layout = "contiguous"

    @property
    def quantised(self) -> bool:
        """Whether the weights of the module are quantised."""
        return self.dtype in QUANTISATIONS

    def differs(self) -> frozenset[str]:
        """The axes on which the cell is not the plain inference cell of its mode.

        The device is no such axis: it belongs to the machine.
        """
        return frozenset(name for name, plain in _PLAIN.items() if getattr(self, name) != plain)

    @property
    def variant(self) -> str:
        """How the cell differs from the plain inference cell, in words; empty for the plain one."""
        differs = self.differs()
        return ", ".join(
            f"{self.accumulation} micro-batches"
            if name == "accumulation"
            else str(getattr(self, name))
            for name in _PLAIN
            if name in differs
        )

    def __str__(self) -> str:
        """A short name for people: workload, batch size, mode, and the differences."""
        return ", ".join(
            filter(None, (self.workload, f"batch {self.batch_size}", self.mode, self.variant))
        )


# Axis -> its value in the plain inference cell, in the order of the fields. A new axis is in here
# by itself.
_PLAIN = {
    axis.name: axis.default
    for axis in msgspec.structs.fields(Cell)
    if not axis.required and axis.name != "device"
}


class Status(str, Enum):
    """How a measurement can end. One of these is always recorded."""

    OK = "ok"
    UNSUPPORTED = "unsupported"
    OUT_OF_MEMORY = "out-of-memory"
    TIMEOUT = "timeout"
    COMPILE_ERROR = "compile-error"
    WRONG_RESULT = "wrong-result"
    CRASH = "crash"
    UNSETTLED = "unsettled"


class Outcome(Struct, frozen=True, forbid_unknown_fields=True):
    """How a measurement or a launch ended. ``reason`` is one line; it is empty for ok."""

    status: Status
    reason: Text = ""

    @property
    def ok(self) -> bool:
        """Whether there are numbers to use."""
        return self.status is Status.OK

    @property
    def settled(self) -> bool:
        """Whether a new measurement on the same machine would end in the same way.

        A failure is not settled. The user may install a missing compiler or empty a full disk, so
        the next run with ``--skip-existing`` measures again.
        """
        return self.status in (Status.OK, Status.UNSUPPORTED)

    def __str__(self) -> str:
        """For people: "crash: killed by SIGKILL", or the status alone if there is no reason."""
        return f"{self.status.value}: {self.reason}" if self.reason else self.status.value


OK = Outcome(Status.OK)


class Plan(Struct, frozen=True, forbid_unknown_fields=True):
    """How long one launch works. docs/method.md gives the reasons for the numbers.

    Warm-up ends when the calls are steady (`statistics.is_steady`) or after ``warm_up_limit_s``.
    Eager and the mode take turns. A turn is calls for ``settle_s``, which do not count, then calls
    for ``turn_s``, which count. Two turns are a pair. Timing ends when both minima are met, or
    after ``max_timed_s``.

    With whole processes as turns (`Cell.start`), a launch makes pairs for ``starts_s``, at most
    ``most_starts``. The protocol ``many-calls`` makes ``calls`` calls of each side, or as many as
    take ``calls_limit_s``.
    """

    warm_up_limit_s: Seconds = 6.0
    settle_s: Seconds = 0.02
    turn_s: Seconds = 0.04
    min_pairs: Count = 15
    min_timed_s: Seconds = 4.0
    max_timed_s: Seconds = 8.0
    starts_s: Seconds = 20.0
    most_starts: Annotated[int, Meta(ge=1, le=1000)] = 3
    calls: Annotated[int, Meta(ge=1, le=10**9)] = 10_000
    calls_limit_s: Seconds = 30.0


class Request(Struct, frozen=True, forbid_unknown_fields=True):
    """The task of one measuring process: its first message.

    ``cache_dir`` is the folder of Inductor's and Triton's caches. The caller empties the folder for
    a cold launch and gives the same folder to the warm launches. ``observe``: whether a cold launch
    also records what the compiler did, which takes longer than the timing. ``sides``: which calls
    this process makes. ``heap``: the state that its heap has to have.
    """

    cell: Cell
    kind: Literal["cold", "warm"]
    cache_dir: Text
    plan: Plan = Plan()
    observe: bool = True
    sides: tuple[Side, ...] = ("eager", "mode")
    heap: Heap = "default"
    schema: Schema = SCHEMA


class Accuracy(Struct, frozen=True, forbid_unknown_fields=True):
    """How far the outputs are from the reference: root mean square error over the norm.

    - ``reference``: how eager computed the reference: in ``float64``, in its own dtype
      (``same-dtype``), in ``float32-without-tf32``, or by ``another-draw``.
    - ``eager_error``, ``mode_error``: None if the outputs have different structures, shapes or
      non-finite places, or if ``compared`` is False.
    - ``notes``: what a reader has to know about the comparison, one short sentence each.
    - ``compared``: False if no part of the outputs could be compared.
    - ``float32_error``: of a quantised module in the mode, against the module before it was
      quantised. Quantising changes the result by design, so it is recorded and not judged. None
      for other cells, and where the outputs cannot be compared number by number.
    """

    reference: Name
    eager_error: float | None
    mode_error: float | None
    tolerance: float
    notes: list[Text] = field(default_factory=list)
    compared: bool = True
    float32_error: Annotated[float, Meta(ge=0)] | None = None


class Overlay(Struct, frozen=True, forbid_unknown_fields=True):
    """An upstream commit's Python files over a release's binary.

    - ``base``: the release's version. ``commit``: the full SHA.
    - ``overlaid``: the files of the release that were replaced, added or removed.
    - ``native``: files that differ but are compiled, so they were not replaced.
    - ``refused``: why nothing was overlaid, in one line; empty if the overlay was made.
    """

    base: Text
    commit: Text
    overlaid: list[Text] = field(default_factory=list, name="laid")
    native: list[Text] = field(default_factory=list)
    refused: Text = ""


class Accelerator(Struct, frozen=True, forbid_unknown_fields=True):
    """The accelerator of a measuring process, and its settings.

    None or an empty text: the driver does not say.

    - ``mig``: the profile of a MIG slice, such as ``1g.10gb``; empty for a whole device.
    - ``memory_bytes``: of the device or of the slice. ``capability``: such as ``9.0``.
    - ``libraries``: CUDA, cuDNN and others, with their versions.
    - ``float32``: how precise products and convolutions of float32 are, such as
      ``{"matmul": "highest", "cudnn": "tf32"}``.
    - ``power_limit_w``: the limit that is enforced. ``max_sm_clock_mhz``: the fastest clock.
    - ``ecc``, ``persistence``: whether the mode is on. ``numa_node``: of the host.
    """

    mig: Text = ""
    memory_bytes: Count | None = None
    capability: Text = ""
    libraries: dict[str, Text] = field(default_factory=dict)
    float32: dict[str, Text] = field(default_factory=dict)
    power_limit_w: float | None = None
    max_sm_clock_mhz: Count | None = None
    ecc: bool | None = None
    persistence: bool | None = None
    numa_node: int | None = None


class Environment(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can change a number and is not in the `Cell`.

    ``adopted``: the build of a torch that the user installed, such as ``2.11.0+cu130``; empty if
    the packages are those of the release's lock. ``accelerator``: None on a CPU.
    """

    torch: Text
    torch_git: Text
    python: Text
    packages: dict[str, Text]
    cpu: Text
    device_name: Text
    driver: Text
    threads: Count
    interop_threads: Count
    allocator: Text
    compiler: Text
    kernel: Text
    variables: dict[str, Text]
    load_1min: float
    suite: Text
    overlay: Overlay | None = None
    adopted: Text = ""
    accelerator: Accelerator | None = None


class DeviceState(Struct, frozen=True, forbid_unknown_fields=True):
    """The accelerator while a launch timed its pairs, read between the pairs.

    - ``sm_clock_mhz``: the slowest, the median and the fastest clock of the multiprocessors.
    - ``temperature_c``, ``power_w``: the highest.
    - ``slowed_by``: the driver's reasons for a lower clock, other than that the device was idle.
    - ``others``: the most processes of others that used the device at once.
    """

    sm_clock_mhz: tuple[Count, Count, Count] | None = None
    temperature_c: Count | None = None
    power_w: float | None = None
    slowed_by: list[Text] = field(default_factory=list)
    others: Count | None = None


class Interference(Struct, frozen=True, forbid_unknown_fields=True):
    """Processor time that others used while a launch timed its pairs.

    Both are shares of the processors' time, 0 to 1. ``steal_share``: used by other guests of the
    same host, as the hypervisor reports it. ``others_share``: used by other processes of this
    machine. ``device``: the accelerator; None on a CPU, or if its driver cannot be asked.
    """

    steal_share: float
    others_share: float
    device: DeviceState | None = None


# What a compile writes for each graph: Inductor's file names, without endings.
ARTEFACTS = (
    "fx_graph_readable",
    "fx_graph_runnable",
    "fx_graph_transformed",
    "ir_pre_fusion",
    "ir_post_fusion",
    "output_code",
)


class GraphBreak(Struct, frozen=True, forbid_unknown_fields=True):
    """A graph break or a recompile: Dynamo's reason in one line, and ``file.py:line``."""

    reason: Text
    where: Text


class Paging(Struct, frozen=True, forbid_unknown_fields=True):
    """The kernel's work for a steady call: it hands out memory, and takes it back.

    ``faults``: page faults a call, the median over turns (the lower one of two middle turns): a
    heap that grows once is not a cost of each call. ``kernel_share``: the kernel's share of the
    calls' processor time. Both are of the calls that count, by getrusage(2).
    """

    faults: Annotated[float, Meta(ge=0)]
    kernel_share: Annotated[float, Meta(ge=0, le=1)]


class Profile(Struct, frozen=True, forbid_unknown_fields=True):
    """An accelerator's time line over ``calls`` steady calls (torch.profiler).

    - ``kernel_launches``: what the host started. A CUDA graph counts once, with any number of
      kernels in it.
    - ``kernels``: kernels and copies that ran on the device.
    - ``busy_s``: time in which at least one kernel or copy ran.
    - ``idle_s``: the rest of the time between the first start and the last end.
    - ``largest_gap_s``: the longest idle time in one piece.
    """

    calls: Count
    kernel_launches: Count = field(name="launches")
    kernels: Count
    busy_s: Seconds
    idle_s: Seconds
    largest_gap_s: Seconds


class Compiled(Struct, frozen=True, forbid_unknown_fields=True):
    """What the compiler captured and generated at a cold start.

    None means that this release or device does not report the value. ``unknown`` then gives the
    reason; its keys are JSON field names.

    - ``graphs``: captured until the steady state. ``operators``: calls in these graphs.
    - ``guards``: conditions that Dynamo checks before it reuses the graphs. ``guard_check_s``:
      seconds for these checks in each call.
    - ``recompiles``: captures of code that was captured before. ``recompile_reasons``: the failed
      guard and the function, one for each recompile.
    - ``kernels``: generated by Inductor. ``kernel_launches``: kernels that one call of each graph
      starts, library calls included.
    - ``nodes_before``, ``nodes_after``: the scheduler's nodes before and after fusion.
      ``bytes_before``, ``bytes_after``: what these nodes read and write, as the scheduler counts.
    - ``eager_operators``, ``eager_bytes``: the same call in eager, as the dispatcher counts,
      without views.
    - ``phases_s``: compile time by phase. No phase contains another one.
    - ``cache_bytes``: size of the cache on disk afterwards. ``peak_memory_bytes``: the process's
      peak memory while it compiled.
    - ``recaptures``: captures after one change of the inputs, by change. Of a stream of shapes:
      how many requests need a new capture after the first pass, in a second pass (``tail``), and
      how many of other shapes do at the end (``new shapes``).
    - ``tracing``: the result of other capture methods for a second input, by method.
    - ``artefacts``: those of `ARTEFACTS` that the compile wrote.
    - ``blocks``: the equal blocks that were compiled as one (`Cell.way`); 0 if none were.
    - ``skipped``: code that Dynamo left to eager without a graph break, and why.
      ``captured_share``: of a user's model, the share of a call's operators that is in graphs.
    """

    graphs: Count | None = None
    graph_breaks: list[GraphBreak] = field(default_factory=list)
    operators: Count | None = None
    guards: Count | None = None
    guard_check_s: Seconds | None = None
    recompiles: Count | None = None
    cudagraph_skips: list[Text] = field(default_factory=list)
    kernels: Count | None = None
    kernel_launches: Count | None = field(default=None, name="launches")
    nodes_before: Count | None = None
    nodes_after: Count | None = None
    bytes_before: Count | None = None
    bytes_after: Count | None = None
    eager_operators: Count | None = None
    eager_bytes: Count | None = None
    phases_s: dict[str, Seconds] = field(default_factory=dict)
    cache_bytes: Count | None = None
    peak_memory_bytes: Count | None = None
    recaptures: dict[str, Count] = field(default_factory=dict)
    tracing: dict[str, Text] = field(default_factory=dict)
    artefacts: list[Text] = field(default_factory=list)
    profile: Profile | None = None
    recompile_reasons: list[GraphBreak] = field(default_factory=list)
    unknown: dict[str, Text] = field(default_factory=dict)
    blocks: Count = 0
    skipped: list[GraphBreak] = field(default_factory=list)
    captured_share: Annotated[float, Meta(ge=0, le=1)] | None = None

    def value(self, name: str) -> Any:
        """The value of the JSON field ``name``; None if unknown, and ``unknown[name]`` says why.

        Raises KeyError for a name that is no field.
        """
        return getattr(self, _ATTRIBUTES[name])

    @staticmethod
    def published_name(attribute: str) -> str:
        """The JSON name of an attribute; any other name is returned unchanged."""
        return next((name for name, mine in _ATTRIBUTES.items() if mine == attribute), attribute)


# JSON name of a field of `Compiled` -> its attribute.
_ATTRIBUTES = {field.encode_name: field.name for field in msgspec.structs.fields(Compiled)}


class Kernel(Struct, frozen=True, forbid_unknown_fields=True):
    """A Triton kernel that Inductor generated.

    - ``launches``: launches of it in one call. ``operators``: the ATen operators in it.
    - ``registers``, ``spilled_bytes``, ``shared_bytes``, ``warps``: of a thread, of a thread, of a
      block, and in a block, as ptxas and Triton say. None if the kernel was not assembled.
    - ``occupancy``: the share of the warps that a multiprocessor can hold at once, 0 to 1.
      ``limited_by``: what keeps it below 1 (registers, shared memory, blocks, warps); empty at 1.
    """

    name: Text
    launches: Count
    operators: list[Text] = field(default_factory=list)
    registers: Count | None = None
    spilled_bytes: Count | None = None
    shared_bytes: Count | None = None
    warps: Count | None = None
    occupancy: Annotated[float, Meta(ge=0, le=1)] | None = None
    limited_by: Text = ""


class Chain(Struct, frozen=True, forbid_unknown_fields=True):
    """Triton kernels, each of which reads what the one before has written.

    ``reasons``: why Inductor did not fuse each with the next, in Inductor's words; empty where
    Inductor did not try.
    """

    kernels: list[Text]
    reasons: list[Text]


class Code(Struct, frozen=True, forbid_unknown_fields=True):
    """What Inductor generated for the forward or the backward pass, as sums over graphs.

    - ``triton_kernels``: Triton kernels of all graphs. ``triton_launches``: launches of them in one
      call of each graph. ``library_launches``: calls of libraries (cuBLAS, cuDNN, ATen), each of
      which may launch more than one kernel. ``host_launches``: kernels for the host's processor.
    - ``nodes_before``, ``nodes_after``: the scheduler's nodes before and after fusion.
    - ``bytes_before``, ``bytes_after``: what these nodes read and write, as the scheduler counts.
      ``bytes_after`` is `torch._inductor.metrics.num_bytes_accessed`.
    - ``cuda_graphs``: CUDA graphs that a call launches. ``outside_launches``: launches in a call
      that are in none. Both None in a mode without CUDA graphs.
    - ``source_lines``, ``source_sha256``: of the generated Python code of all graphs.
    - ``kernels``: the Triton kernels. ``chains``: the longest that did not fuse, longest first.
    """

    triton_kernels: Count
    triton_launches: Count
    library_launches: Count
    host_launches: Count
    nodes_before: Count
    nodes_after: Count
    bytes_before: Count
    bytes_after: Count
    cuda_graphs: Count | None
    outside_launches: Count | None
    source_lines: Count
    source_sha256: Text
    kernels: list[Kernel] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)

    @property
    def launches(self) -> int:
        """Launches in a call, without CUDA graphs."""
        return self.triton_launches + self.library_launches + self.host_launches

    @property
    def launches_with_cuda_graphs(self) -> int | None:
        """Launches in a call, a CUDA graph as one; None in a mode without CUDA graphs."""
        if self.cuda_graphs is None or self.outside_launches is None:
            return None
        return self.cuda_graphs + self.outside_launches


class Generated(Struct, frozen=True, forbid_unknown_fields=True):
    """What the compiler captured, and generated for a target that is not here.

    Integers without noise: the same release gives the same ones on any machine.

    - ``graphs``, ``operators``: captured, and the calls in them. ``graph_breaks``: where and why.
    - ``forward``; ``backward`` is None without gradients.
    - ``cudagraph_skips``: why a graph does not run as a CUDA graph, in torch's words.
    - ``assumed``: what a real device would be asked, and what was assumed instead.
    """

    graphs: Count
    operators: Count
    forward: Code
    backward: Code | None = None
    graph_breaks: list[GraphBreak] = field(default_factory=list)
    cudagraph_skips: list[Text] = field(default_factory=list)
    assumed: list[Text] = field(default_factory=list)
    generation: Annotated[int, Meta(ge=1)] = GENERATION

    @property
    def parts(self) -> list[Code]:
        """The code of the forward pass, and of the backward pass if there is one."""
        return [self.forward] if self.backward is None else [self.forward, self.backward]

    def total(self, name: str) -> int | None:
        """The sum over `parts` of a field or property of `Code`; None where a part has none.

        Raises AttributeError for a name that `Code` does not have.
        """
        values = [getattr(part, name) for part in self.parts]
        return None if None in values else sum(values)


class Started(Struct, frozen=True, forbid_unknown_fields=True):
    """What one side of a launch with whole processes as turns did until its first result.

    - ``phases_s``: seconds of each phase, in their order; the median over the processes of the
      launch. No phase contains another one, and a phase ends when its work is done. The first one
      begins with the start of the process, the last one ends with the first result.
    - ``artefact_bytes``: the size of what the process found when it started: the cache folder, the
      carried cache, or the package. None where it found nothing. A package contains the weights.
    - ``loader``: the function of torch that loaded it; empty where none did.
    """

    phases_s: dict[str, Seconds]
    artefact_bytes: Count | None = None
    loader: Text = ""


class Growth(Struct, frozen=True, forbid_unknown_fields=True):
    """The memory of a process over many steady calls of one side, evenly sampled.

    - ``calls``: calls of the module before each sample. The other lists are as long, or empty where
      the value is not known.
    - ``resident_bytes``: the resident set of the process.
    - ``allocated_bytes``, ``reserved_bytes``: what the allocator has handed out, and what it holds.
      On a CPU the C library's malloc (mallinfo2(3)), on an accelerator torch's allocator.
    - ``shapes``: the number of different shapes among the inputs.
    - ``graphs``: graphs that Dynamo had captured at the end; None for eager.
    - ``limit``: how many graphs Dynamo keeps of one function (``recompile_limit``); None for eager.
    - ``at_limit``: what Dynamo said when it reached that limit; empty if it did not.
    """

    calls: Samples
    resident_bytes: Samples
    allocated_bytes: Samples = field(default_factory=list)
    reserved_bytes: Samples = field(default_factory=list)
    shapes: Count = 1
    graphs: Count | None = None
    limit: Count | None = None
    at_limit: Text = ""


class Launch(Struct, frozen=True, forbid_unknown_fields=True):
    """What one launch measured of one cell.

    - ``pairs_s``: one ``[eager, mode]`` couple for each pair of turns, in seconds a call, in the
      order of measuring. ``method``: how they were timed (`METHOD`). ``calls_a_sample``: calls
      between two readings of the clock.
    - ``compiler_import_s``: time to import the compiler; 0 if the first call did that, or if
      nothing was compiled.
    - ``warm_up_s``: the calls in the mode from the first one on, in seconds. ``steady``: whether
      they became steady before the limit.
    - ``peak_memory_bytes``, ``eager_peak_memory_bytes``: the peak memory of a few steady calls in
      the mode and in the baseline. On a CPU: the resident set of the process of that side, and
      None with a settled heap, which holds more by design. On an accelerator: the memory that
      torch's allocator reserved. Until method 2: of the one process.
    - ``stages_s``: seconds of each stage of the process.
    - ``interference``: of the time of the pairs.
    - ``calibration_s``: what the calibration loop (`measuring.calibration`) took on all processors
      at the same time, during the pairs; for an accelerator, on one of them. None in records from
      before schema 7.
    - ``disturbed``: why the pairs do not count, because a neighbour slowed the launch and it was
      repeated; empty for a launch that counts.
    - ``compiled``: for cold launches that compiled. ``eager_paging``, ``paging``: on a CPU, of a
      call in the baseline and in the mode; until method 2 for cold launches only.
    - ``heap``: the state of the heap of the processes, ``settled`` or ``default``; empty in records
      from before schema 9. ``heap_note``: why it is not settled although it should be.
    - ``preloaded``: the workloads' libraries that the process had imported when it was forked; None
      in records from before schema 5.
    - ``series``, ``round``: the series (`measuring.series`) that the launch belongs to, and its
      round in it. Launches of one round were made within minutes of each other. An empty string
      and 0 for other launches, and a round of 0 where an interruption divided the round.
    - ``generated``: for a cell with a target. Such a launch times nothing.
    - ``start``, ``eager_start``: for a cell with a ``start``. There a pair is the time of two whole
      processes, each from its start to its first result, and ``warm_up_s`` has the one call.
    - ``growth``, ``eager_growth``: for the protocol ``many-calls``.
    - ``latency_s``: on an accelerator, one ``[eager, mode]`` couple for each pair: seconds of a
      single call, from the call until the device is done. Calls of ``pairs_s`` follow one another
      without waiting, so these include the time that the host and the device otherwise overlap.
    - ``peak_allocated_bytes``, ``eager_peak_allocated_bytes``: as the peak memory above, on an
      accelerator: of tensors and of the pools of CUDA graphs, without what torch's allocator keeps
      in reserve.
    - ``notes``: what was found out about a user's model, and how it was called therefore.
    """

    kind: Literal["cold", "warm"]
    outcome: Outcome
    pairs_s: list[tuple[Seconds, Seconds]] = field(default_factory=list)
    calls_a_sample: Count = 1
    compiler_import_s: Seconds = 0.0
    warm_up_s: list[Seconds] = field(default_factory=list)
    steady: bool = False
    peak_memory_bytes: Count | None = None
    accuracy: Accuracy | None = None
    environment: Environment | None = None
    stages_s: dict[str, Seconds] = field(default_factory=dict)
    process: Literal["fresh", "forked"] = "fresh"
    interference: Interference | None = None
    calibration_s: Seconds | None = field(default=None, name="yardstick_s")
    disturbed: Text = field(default="", name="set_aside")
    compiled: Compiled | None = None
    eager_paging: Paging | None = None
    paging: Paging | None = None
    preloaded: list[Text] | None = None
    method: Annotated[int, Meta(ge=1, le=METHOD)] = 1
    heap: Heap = ""
    heap_note: Text = ""
    eager_peak_memory_bytes: Count | None = None
    series: Text = ""
    round: Count = 0
    generated: Generated | None = None
    start: Started | None = None
    eager_start: Started | None = None
    growth: Growth | None = None
    eager_growth: Growth | None = None
    latency_s: list[tuple[Seconds, Seconds]] = field(default_factory=list)
    peak_allocated_bytes: Count | None = None
    eager_peak_allocated_bytes: Count | None = None
    notes: list[Text] = field(default_factory=list)
    schema: Schema = SCHEMA

    @property
    def timed(self) -> bool:
        """Whether pairs were timed."""
        return bool(self.pairs_s)

    @property
    def began(self) -> tuple[str, ...]:
        """How the process began: fresh, or forked after the import of some libraries.

        This decides how long importing the compiler takes, because timm imports half of it, and
        which pages of libraries count as the process's memory.
        """
        if self.process == "fresh":
            return ("fresh",)
        # Before schema 5 one server forked all launches. It had imported all workloads' libraries.
        return ("forked", *(["timm"] if self.preloaded is None else self.preloaded))


class Measurement(Struct, frozen=True, forbid_unknown_fields=True):
    """All launches of a cell, and the outcome of the whole.

    ``started_at`` is UTC, ISO 8601. ``stopped`` says why there are no more launches: their number
    was ``fixed``, the ratio's interval was ``precise`` enough, or the ``budget`` was spent. It is
    empty if the measurement failed.
    """

    cell: Cell
    outcome: Outcome
    launches: list[Launch]
    started_at: Text
    duration_s: Seconds
    stopped: Stopped = ""
    schema: Schema = SCHEMA

    @property
    def sequential(self) -> bool:
        """Whether the data decided when to stop. The interval has to allow for that."""
        return self.stopped in ("precise", "budget")

    @property
    def timed_anew(self) -> bool:
        """Whether calls were timed by the newest method (`METHOD`)."""
        return any(launch.method == METHOD and launch.timed for launch in self.launches)

    @property
    def environment(self) -> Environment | None:
        """The environment of the first launch that recorded one: all launches share it."""
        return next((launch.environment for launch in self.launches if launch.environment), None)

    @property
    def compiled(self) -> Compiled | None:
        """What the compiler did at the cold start, or None if nothing was compiled."""
        return next((launch.compiled for launch in self.launches if launch.compiled), None)

    @property
    def generated(self) -> Generated | None:
        """What was generated for the target, or None if the cell has none."""
        return next((launch.generated for launch in self.launches if launch.generated), None)

    @property
    def notes(self) -> list[str]:
        """What a reader has to know: the notes of the launches and of their checks, each once."""
        return list(
            dict.fromkeys(
                note
                for launch in self.launches
                for note in (*launch.notes, *(launch.accuracy.notes if launch.accuracy else ()))
            )
        )

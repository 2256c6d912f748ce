"""The vocabulary every other module speaks: what is measured, by whom, and how it ended.

Nothing here imports torch or asv, so that a result can be read on any machine. All types are
``msgspec`` structs: decoding checks types and bounds, so a foreign or damaged file is refused
with a reason instead of travelling on as a half-valid object.

Units are part of the field names: ``_s`` seconds, ``_bytes`` bytes.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

SCHEMA: Literal[7] = 7
"""Version of the JSON that crosses processes and machines, the ``schema`` field of each struct.
A reader refuses a newer one and reads the older ones: each added fields with defaults."""

METHOD = 2
"""Version of how pairs are timed, the ``method`` field of a launch. Times of two methods are not
compared. 1: eager and mode alternate sample by sample, a sample being one call or 10 ms. 2: they
take turns, whose first calls do not count (docs/method.md, Turns)."""

Name = Annotated[str, Meta(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]*$")]
Text = Annotated[str, Meta(max_length=4000)]
Seconds = Annotated[float, Meta(ge=0, le=1e7)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Schema = Literal[1, 2, 3, 4, 5, 6, 7]
Stopped = Literal["", "fixed", "precise", "budget"]


class Cell(Struct, frozen=True, forbid_unknown_fields=True):
    """One point of the matrix: what is compiled, how, on what, and what it is compared with.

    - ``device``: the accelerator's kind as torch spells it (``cpu``, ``cuda``).
    - ``dtype``: float32, or that of the autocast region the call runs in (``bfloat16``).
    - ``shapes``: ``static`` never changes the input's shape. The others call the workload's stream
      of shapes, and are ways of meeting it (`torchcompile_suite.launch.subject`).
    - ``backend``: that of torch.compile.
    - ``allocator``: the malloc of the process, ``system`` or the name of a preloaded one.
    - ``protocol``: ``right``, or the mistake that the call is timed with.
    - ``baseline``: what the calls are paired with, eager in the same dtype or in float32.
    - ``accumulation``: micro-batches of a training step.
    """

    workload: Name
    batch_size: Annotated[int, Meta(ge=1, le=1_000_000)]
    mode: Name
    phase: Literal["inference", "training"] = "inference"
    dtype: Name = "float32"
    device: Name = "cpu"
    shapes: Name = "static"
    backend: Name = "inductor"
    allocator: Name = "system"
    protocol: Name = "right"
    baseline: Name = "eager"
    accumulation: Annotated[int, Meta(ge=1, le=1000)] = 1

    @property
    def variant(self) -> str:
        """In words, how it differs from the plain inference cell; empty for that one."""
        parts = [
            value
            for value, plain in (
                (self.phase, "inference"),
                (self.dtype, "float32"),
                (self.shapes, "static"),
                (self.backend, "inductor"),
                (self.allocator, "system"),
                (self.protocol, "right"),
                (self.baseline, "eager"),
            )
            if value != plain
        ]
        if self.accumulation > 1:
            parts.append(f"{self.accumulation} micro-batches")
        return ", ".join(parts)

    def __str__(self) -> str:
        """A short name for people: only what differs from the plain inference cell."""
        return ", ".join(
            filter(None, (self.workload, f"batch {self.batch_size}", self.mode, self.variant))
        )


class Status(str, Enum):
    """How a measurement can end. There is no silent gap: one of these is always recorded."""

    OK = "ok"
    UNSUPPORTED = "unsupported"
    OUT_OF_MEMORY = "out-of-memory"
    TIMEOUT = "timeout"
    COMPILE_ERROR = "compile-error"
    WRONG_RESULT = "wrong-result"
    CRASH = "crash"


class Outcome(Struct, frozen=True, forbid_unknown_fields=True):
    """How it ended and, unless it is ok, one line that says why."""

    status: Status
    reason: Text = ""

    @property
    def ok(self) -> bool:
        """Whether there are numbers to use."""
        return self.status is Status.OK

    @property
    def settled(self) -> bool:
        """Whether measuring again on the same machine can only repeat it.

        A failure is not settled: a missing compiler is installed, a disk is emptied, so the next
        run with ``--skip-existing`` tries it again.
        """
        return self.status in (Status.OK, Status.UNSUPPORTED)


OK = Outcome(Status.OK)


class Plan(Struct, frozen=True, forbid_unknown_fields=True):
    """How long one launch works. The reasons for the figures are in docs/method.md.

    Warm-up ends when it is steady (`statistics.is_steady`) or at ``warm_up_limit_s``. Eager and the
    mode take turns: calls for ``settle_s`` that do not count, then calls for ``turn_s`` that do.
    Two turns are a pair, and pairs are taken until both minima are met, or the maximum.
    """

    warm_up_limit_s: Seconds = 6.0
    settle_s: Seconds = 0.02
    turn_s: Seconds = 0.04
    min_pairs: Count = 15
    min_timed_s: Seconds = 4.0
    max_timed_s: Seconds = 8.0


class Request(Struct, frozen=True, forbid_unknown_fields=True):
    """What one measuring process is asked to do (its standard input).

    ``cache_dir`` is where Inductor and Triton keep what they compile; the caller makes it empty
    for a cold launch and hands the same one to the warm launches. Without ``observe`` a cold launch
    is not asked what the compiler saw, which takes longer than the timing does.
    """

    cell: Cell
    kind: Literal["cold", "warm"]
    cache_dir: Text
    plan: Plan = Plan()
    observe: bool = True
    schema: Schema = SCHEMA


class Accuracy(Struct, frozen=True, forbid_unknown_fields=True):
    """How far the outputs lie from the reference: root mean square error over its norm.

    ``reference`` is the dtype in which eager computed the reference.
    """

    reference: Name
    eager_error: float | None
    mode_error: float | None
    tolerance: float


class Overlay(Struct, frozen=True, forbid_unknown_fields=True):
    """An upstream commit's Python files over a release's binary.

    ``base`` is the release's version, ``commit`` the full SHA, ``laid`` the files that differ and
    were laid over (or taken away). ``native`` are files that differ and were not, because they are
    compiled. ``refused`` is empty, or says in one line why nothing was laid.
    """

    base: Text
    commit: Text
    laid: list[Text] = field(default_factory=list)
    native: list[Text] = field(default_factory=list)
    refused: Text = ""


class Environment(Struct, frozen=True, forbid_unknown_fields=True):
    """What a launch ran in: everything that can change a number and is not in the `Cell`."""

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


class Interference(Struct, frozen=True, forbid_unknown_fields=True):
    """What others took from the machine while a launch timed its pairs.

    Shares of the processors' time (0 to 1): ``steal_share`` went to other guests of the same host
    as far as the hypervisor tells, ``others_share`` to other processes of this machine.
    """

    steal_share: float
    others_share: float


# What a compile can be opened to: Inductor's names for the files of each graph, without endings.
ARTEFACTS = (
    "fx_graph_readable",
    "fx_graph_runnable",
    "fx_graph_transformed",
    "ir_pre_fusion",
    "ir_post_fusion",
    "output_code",
)


class GraphBreak(Struct, frozen=True, forbid_unknown_fields=True):
    """Where Dynamo had to leave the graph, or to capture it again: the first line of its reason,
    and ``file.py:line``.
    """

    reason: Text
    where: Text


class Paging(Struct, frozen=True, forbid_unknown_fields=True):
    """What a steady call costs in the kernel, where the C library's malloc gets its memory.

    ``faults``: pages the kernel hands out, a call; ``kernel_share``: of the call's processor time.
    """

    faults: Annotated[float, Meta(ge=0)]
    kernel_share: Annotated[float, Meta(ge=0, le=1)]


class Profile(Struct, frozen=True, forbid_unknown_fields=True):
    """An accelerator's time line over ``calls`` steady calls (torch.profiler).

    ``busy_s`` is the time at least one kernel or copy ran, ``idle_s`` the rest between the first
    start and the last end, ``largest_gap_s`` the longest of its pieces; ``launches`` counts what
    the host started: a CUDA graph is one, however many kernels it holds.
    """

    calls: Count
    launches: Count
    kernels: Count
    busy_s: Seconds
    idle_s: Seconds
    largest_gap_s: Seconds


class Compiled(Struct, frozen=True, forbid_unknown_fields=True):
    """What the compiler saw and made, at a cold start.

    None means that this release or device does not tell, and ``unknown`` says why, by field.

    - ``graphs``: captured up to the steady state; ``operators``: calls in them; ``guards``: checked
      before they are reused, which takes ``guard_check_s`` a call; ``recompiles``: captures of code
      that had been captured before.
    - ``kernels``: generated by Inductor; ``launches``: kernels started by one call of each graph,
      library calls included. ``nodes_before`` and ``nodes_after`` fusion, and the bytes they read
      and write as the scheduler counts them. ``eager_operators`` and ``eager_bytes``: the same call
      in eager, as the dispatcher sees it, views left out.
    - ``phases_s``: where compiling took its time, each part without the others.
    - ``cache_bytes``: on disk afterwards; ``peak_memory_bytes``: of the process while it compiled.
    - ``recaptures``: captures after one change of the inputs, by change.
    - ``tracing``: what other ways of capture make of a second input, by way.
    - ``artefacts``: those of `ARTEFACTS` that a compile could be opened to.
    - ``recompile_reasons``: the guard that failed and the function, one a recompile.
    """

    graphs: Count | None = None
    graph_breaks: list[GraphBreak] = field(default_factory=list)
    operators: Count | None = None
    guards: Count | None = None
    guard_check_s: Seconds | None = None
    recompiles: Count | None = None
    cudagraph_skips: list[Text] = field(default_factory=list)
    kernels: Count | None = None
    launches: Count | None = None
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


class Launch(Struct, frozen=True, forbid_unknown_fields=True):
    """What one process measured of one cell (its standard output).

    ``compiler_import_s`` is what importing the compiler took; 0 where that is part of the first
    call, or nothing was compiled. ``warm_up_s`` are the calls in the mode from the very first one
    on, in seconds; ``steady`` says whether they settled before the limit. ``pairs_s`` holds one
    ``[eager, mode]`` couple a pair of turns, in seconds a call, in the order they were taken, timed
    by ``method`` (`METHOD`), the clock being read every ``calls_a_sample`` calls.
    ``peak_memory_bytes`` is the most memory held while running in the mode in steady state:
    resident set on a CPU, allocated by torch on an accelerator. ``stages_s`` says where the
    process's own time went. ``interference`` covers the pairs, and so does ``yardstick_s``: what a
    fixed piece of work took on all processors at once (`launch.yardstick`), None in records from
    before schema 7. ``set_aside`` is empty, or says why the pairs do not count: the launch was
    disturbed and repeated. ``compiled`` is there for cold launches that compiled, and so are
    ``eager_paging`` and ``paging``, of a call in eager and in the mode, on a CPU. ``preloaded`` are
    the workloads' libraries that the process had imported when it was forked; None in records from
    before schema 5.
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
    yardstick_s: Seconds | None = None
    set_aside: Text = ""
    compiled: Compiled | None = None
    eager_paging: Paging | None = None
    paging: Paging | None = None
    preloaded: list[Text] | None = None
    method: Annotated[int, Meta(ge=1, le=METHOD)] = 1
    schema: Schema = SCHEMA

    @property
    def start(self) -> tuple[str, ...]:
        """What the process had behind it when it began. It decides what importing the compiler
        still costs (timm imports half of it) and which pages of libraries count as its memory.
        """
        if self.process == "fresh":
            return ("fresh",)
        # Before schema 5 every fork came from one server, which imported what any workload needs.
        return ("forked", *(["timm"] if self.preloaded is None else self.preloaded))


class Measurement(Struct, frozen=True, forbid_unknown_fields=True):
    """All launches of a cell, and the outcome of the whole.

    ``started_at`` is UTC, ISO 8601. The environment is that of the first launch that reported
    one: launches of a measurement share it. ``stopped`` says why there are no more launches: their
    number was ``fixed``, the ratio's interval was ``precise`` enough, or the ``budget`` was spent;
    it is empty where the measurement failed.
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
        """Whether the data decided when to stop, which its interval has to allow for."""
        return self.stopped in ("precise", "budget")

    @property
    def environment(self) -> Environment | None:
        """The environment the launches ran in, or None when none got that far."""
        return next((launch.environment for launch in self.launches if launch.environment), None)

    @property
    def compiled(self) -> Compiled | None:
        """What the compiler saw and made at the cold start, or None where nothing was compiled."""
        return next((launch.compiled for launch in self.launches if launch.compiled), None)

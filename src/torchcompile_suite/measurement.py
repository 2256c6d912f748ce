"""A launch and a measurement of a cell: how it ended, its times, its accuracy."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from .attribution import Attribution
from .cell import Cell
from .compiled import Compiled
from .conditions import Environment, Interference, Paging
from .fields import SCHEMA, Count, Name, Samples, Schema, Seconds, Text
from .generated import Generated
from .request import Heap

METHOD = 3
"""Version of how pairs are timed, the ``method`` field of a launch. Times of two methods are not
compared. 1: eager and the mode alternate sample by sample; a sample is one call or 10 ms. 2: eager
and the mode take turns in one process; the first calls of a turn do not count. 3: on a CPU, eager
and the mode each have a process of their own and a settled heap (docs/method.md, "One launch")."""
Stopped = Literal["", "fixed", "precise", "budget"]
NOT_CHECKED = "accuracy not checked"
"""Begins a note of `Accuracy.notes` on outputs that could not be compared as they should be."""
CALLED_UNDER = "called under "
"""Begins a note of `Launch.notes` on the context that a model needs, if it is not the usual one."""
TOO_BUSY = "this machine is too busy to say"
"""Begins the reason of an outcome if others take the processors, and no repeat is left."""


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
        the next run with ``--skip-existing`` measures again; also where the reason names what to
        install.
        """
        return self.ok or (self.status is Status.UNSUPPORTED and "install" not in self.reason)

    def __str__(self) -> str:
        """For people: "crash: killed by SIGKILL", or the status alone if there is no reason."""
        return f"{self.status.value}: {self.reason}" if self.reason else self.status.value


OK = Outcome(Status.OK)


class Accuracy(Struct, frozen=True, forbid_unknown_fields=True):
    """How far the outputs are from the reference: root mean square error over the norm.

    - ``reference``: how eager computed the reference: in ``float64``, in its own dtype
      (``same-dtype``), in ``float32-without-tf32``, or by ``another-draw``. ``slopes``: eager's own
      gradients are wrong, and the slope of the loss is the reference.
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
      in the mode between two readings of the clock; eager has its own number of them.
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
    - ``calibration_s``: what the calibration loop (`engine.calibration`) took on all processors
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
    - ``series``, ``round``: the series (`engine.series`) that the launch belongs to, and its
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
    - ``attribution``: for the protocol ``divided``. Such a launch times no pairs.
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
    attribution: Attribution | None = None
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
    def method(self) -> int:
        """The newest method by which calls were timed (`METHOD`); 0 where none was."""
        return max((launch.method for launch in self.launches if launch.timed), default=0)

    @property
    def timed_anew(self) -> bool:
        """Whether calls were timed by the newest method."""
        return self.method == METHOD

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

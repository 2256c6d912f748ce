"""The measuring protocol: one cell, or one side of it, in one process, from start to end.

`_Steps.make` shows the order of the steps; docs/method.md gives the reasons. `subject` says what a
call is, `timing` how calls are timed, `inspect` what a cold launch asks the compiler.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .. import workloads
from ..analysis import statistics
from ..cell import DEFAULT_HEAP, Cell
from ..host import heap
from ..measurement import OK, Launch
from ..modes import EAGER, MODES
from ..request import Request, Side
from . import checks, device, failures, foreign, messages, original, progress, timing
from .build import build
from .inspect import Inspection
from .messages import Asked, Ready, Said
from .progress import Stages, rounded
from .subject import Call, Subject

if TYPE_CHECKING:
    from .inspect.dynamo import Captures

# Between two turns, so many objects that a collector could look at are worth a collection. Calls
# without cycles leave none, and are never interrupted.
MOST_GARBAGE = 1000
NO_TUNED_PRODUCTS = (
    "max-autotune times no Triton matrix products here: torch says that the GPU has not enough "
    "multiprocessors"
)


def measure(
    request: Request,
    say: Callable[[Said], None],
    hear: Callable[[], Asked],
    heap_note: str = "",
) -> Launch:
    """Measure the request's sides in this process, and talk with the driver (`messages`).

    Returns what this process knows of the launch. Never raises for what the cell does: a failure is
    the launch's outcome. ``heap_note``: why this process's heap is not as the request asks.
    """
    steps = _Steps(request, heap_note)
    try:
        steps.make(say, hear)
        outcome = OK
    except Exception as error:
        failed_in = steps.stages.now
        outcome = failures.outcome(error, failed_in)
        outcome = foreign.explained(request.cell, outcome, failed_in)
    seconds = steps.stages.seconds
    return Launch(kind=request.kind, outcome=outcome, stages_s=seconds, **steps.fields)


class _Steps:
    """The steps of one process. Each of them is one stage.

    ``fields``: the launch's fields, as they become known.
    """

    on: device.Device
    clock: device.Device
    usable = False
    compiles = False
    captures: Captures | None = None
    given: original.AsGiven | None = None

    def __init__(self, request: Request, heap_note: str) -> None:
        self.request = request
        self.stages = Stages(str(request.cell), "" if "mode" in request.sides else "eager ")
        self.fields: dict[str, Any] = {
            "heap": "default" if heap_note else request.heap,
            "heap_note": heap_note,
            "preloaded": [name for name in workloads.imports() if name in sys.modules],
        }
        self.load = os.getloadavg()[0]

    def make(self, say: Callable[[Said], None], hear: Callable[[], Asked]) -> None:
        """Make all steps.

        Those before the turns do only what a user's script does. All that allocates memory for
        other purposes comes after the turns: it would change the state of the heap.
        """
        sides = self.request.sides
        try:
            self.prepare()
            subject = self.build()
            calls: dict[Side, Call] = {}
            steady_s: dict[Side, float] = {}
            with subject.context():
                if "eager" in sides:
                    calls["eager"] = subject.baseline
                    steady_s["eager"] = self.eager(subject)
                    self.many_calls("eager", subject, subject.baseline)
                if "mode" in sides:
                    inspection = self.import_compiler()
                    call, forward, first_call_s = self.compile(subject, inspection)
                    calls["mode"] = call
                    steady_s["mode"] = self.warm_up(subject, call, first_call_s)
                    self.many_calls("mode", subject, call)
                say(Ready(steady_s, torch.get_num_threads()))
                self.turns(calls, say, hear)
                if "mode" in sides:
                    inspection.after_turns(subject, call, forward, self.on)
                    self.check_accuracy(subject, call, inspection)
                    self.note_mode()
                    inspection.after_check(subject, forward)
            if "mode" in sides:
                inspection.at_end()
        finally:
            self.describe()

    def prepare(self) -> None:
        """Check that this process can measure the cell."""
        cell = self.request.cell
        with self.stages("prepare"):
            self.on = device.get(cell.device)
            # An unsynchronised clock times everything in the same way, but does not wait for the
            # device.
            self.clock = device.unsynchronised(self.on) if cell.protocol == "no-sync" else self.on
            self.on.need()
            self.usable = True
            if reason := _unsupported(cell):
                raise failures.Unsupported(reason)
            self.compiles = cell.mode != EAGER

    def describe(self) -> None:
        """Record the environment. It is read last, because that takes memory and processes."""
        if self.usable:
            self.fields["environment"] = device.describe(self.on, self.load)

    def build(self) -> Subject:
        """Build the module, its inputs and its calls."""
        with self.stages("build"):
            subject = build(self.request.cell)
            self.on.synchronize()
        if workloads.get(self.request.cell.workload).foreign:
            with self.stages("eager"):
                # One look is enough, and a user's compiled process has no eager calls.
                steady = "eager" in self.request.sides
                self.fields["notes"] = foreign.learn(subject, steady)
        return subject

    def eager(self, subject: Subject) -> float:
        """Warm the baseline up, and measure its memory. Returns seconds of a steady call."""
        with self.stages("eager"):
            calls_s, _ = timing.warm_up(subject.baseline, self.on, self.request.plan)
            call_s = statistics.steady_call(calls_s)
            if self.request.kind == "cold":
                text = f"eager takes {statistics.formatted(call_s * 1e3, '.3g')} ms a call"
                progress.note("learned", str(self.request.cell), text)
            self._peak_memory("eager", subject, subject.baseline)
        return call_s

    def import_compiler(self) -> Inspection:
        """Import the compiler, which the launch records apart from compiling.

        torch imports Inductor at the first compiled call, which takes three seconds in each process
        of a user. They are part of the compile cost.
        """
        if not self.compiles:
            return Inspection()
        with self.stages("compiler"):
            start = time.perf_counter()
            importlib.import_module("torch._inductor.compile_fx")
            self.fields["compiler_import_s"] = round(time.perf_counter() - start, 4)
            if self.request.cell.protocol == "many-calls":
                from .inspect import dynamo

                self.captures = dynamo.Captures()
        # What is compiled as given is the user's: it is timed and checked.
        own = self.request.cell.way != "as-given"
        if self.request.kind == "cold" and self.request.observe and own:
            from .inspect.observe import Observer

            return Observer(self.request.cell, self.request.cache_dir, self.stages, self.fields)
        return Inspection()

    def compile(self, subject: Subject, inspection: Inspection) -> tuple[Call, Any, float]:
        """The call in the mode, the compiled module, and the seconds of the first call."""
        inspection.before_compile(self.on)
        on = self.on
        if self.request.cell.way == "as-given":
            self.given = original.as_given(subject.module)
        # The pool of a CUDA graph cannot use what eager's calls have left in the allocator.
        on.release()
        with self.stages("compile"):
            # FlexAttention captures some in eager.
            before = progress.captures() if self.compiles else 0
            # The clock starts before torch.compile itself: setting it up is part of its cost.
            start = time.perf_counter()
            call, forward = subject.compile()
            first_call_s = time.perf_counter() - start
            first_call_s += timing.timed(call, on)
            if self.compiles and progress.captures() == before:
                from .inspect import dynamo

                reasons = dynamo.why_uncaptured(call)
                raise failures.Unsupported(f"{dynamo.NO_GRAPH}, because {reasons}")
        inspection.after_compile(subject, forward, on, first_call_s)
        return call, forward, first_call_s

    def warm_up(self, subject: Subject, call: Call, first_call_s: float) -> float:
        """Warm the mode up, and measure its memory. Returns seconds of a steady call."""
        with self.stages("warm-up"):
            calls_s, steady = timing.warm_up(call, self.clock, self.request.plan)
            self.fields["warm_up_s"] = [rounded(s) for s in (first_call_s, *calls_s)]
            self.fields["steady"] = steady
        with self.stages("memory"):
            self._peak_memory("mode", subject, call)
        return statistics.steady_call(calls_s)

    def many_calls(self, side: Side, subject: Subject, call: Call) -> None:
        """Watch the memory over many calls, if the cell asks for that. No other process works."""
        if self.request.cell.protocol != "many-calls":
            return
        name = "eager_growth" if side == "eager" else "growth"
        with self.stages("eager calls" if side == "eager" else "calls"):
            self.fields[name] = timing.watch_memory(
                subject,
                call,
                self.on,
                self.request.plan,
                self.captures if side == "mode" else None,
            )

    def _peak_memory(self, side: Side, subject: Subject, call: Call) -> None:
        """Measure the peak memory of steady calls, unless the heap keeps more by design, or the
        model of the other side is there as well.
        """
        if self.fields["heap"] == "settled":
            return
        with subject.alone(side) as alone:
            if alone:
                whole, allocated = timing.peak_memory_bytes(call, self.on)
                before = "eager_" if side == "eager" else ""
                self.fields[f"{before}peak_memory_bytes"] = whole
                self.fields[f"{before}peak_allocated_bytes"] = allocated

    def turns(
        self, calls: dict[Side, Call], say: Callable[[Said], None], hear: Callable[[], Asked]
    ) -> None:
        """Make the turns that the driver asks for, until it asks for no more."""
        # Without a clock that waits there is no single call.
        single = self.on.kind != "cpu" and self.clock is self.on
        with self.stages("turns"):
            if self.fields["heap"] == "settled":
                heap.touch()
            with timing.without_collections():
                asked = hear()
                # Until now the other side was perhaps not ready.
                progress.entered("turns")
                while isinstance(asked, messages.Turn):
                    # FlexAttention in eager leaves 43 KB of cycles a call. Without a collection the
                    # heap grows for ever, and no other call gives back what it could use again.
                    if gc.get_count()[0] > MOST_GARBAGE:
                        gc.collect()
                    if self.given is not None and len(calls) > 1:
                        self.given.put(compiled=asked.side == "mode")
                    say(timing.turn(calls[asked.side], self.clock, asked, single))
                    asked = hear()

    def check_accuracy(self, subject: Subject, call: Call, inspection: Inspection) -> None:
        """Raise `failures.WrongResult` if the mode's output is too far from the expected one."""
        try:
            self._check(subject, call, inspection)
        except Exception as error:
            # The outputs of several calls are kept. What was timed counts without the check.
            if self.on.kind == "cpu" or not failures.is_out_of_memory(error):
                raise
            self.fields["accuracy"] = checks.not_checked(
                subject, "the outputs of several calls do not fit into the device's memory"
            )
        # Here, because the error held what the failed call had made.
        gc.collect()
        self.on.release()

    def _check(self, subject: Subject, call: Call, inspection: Inspection) -> None:
        if self.given is not None:
            call = self.given.only_in(call)
        judged = checks.check(subject, call, self.stages)
        if judged.reason and judged.values and judged.expected.random:
            with inspection.drawing(subject) as (drawing, why):
                judged = checks.check_random(subject, judged, drawing, why, self.stages)
        checked = judged.checked
        if self.request.cell.quantised:
            with self.stages("accuracy"):
                subject.reset()
                float32 = subject.baseline()
                checked = checks.with_float32(checked, judged.mode.outputs[0], float32)
        self.fields["accuracy"] = checked
        if judged.reason:
            raise failures.WrongResult(judged.reason)

    def note_mode(self) -> None:
        """Note where the mode is less than its name says."""
        cell = self.request.cell
        if cell.device == "cpu" or cell.mode != "max-autotune" or cell.backend != "inductor":
            return
        from .inspect import inductor

        if not inductor.times_products():
            self.fields["accuracy"] = checks.noted(self.fields["accuracy"], NO_TUNED_PRODUCTS)


def _unsupported(cell: Cell) -> str:
    """Why this process cannot measure the cell, or the empty string."""
    if cell.protocol == "no-sync" and cell.device == "cpu":
        return "a call on a CPU returns when it is done: there is nothing to forget to wait for"
    # The malloc that cells of this protocol have on every device.
    usual = DEFAULT_HEAP if cell.protocol == "many-calls" else "system"
    if cell.device != "cpu" and cell.allocator not in ("system", usual):
        return (
            f"malloc {cell.allocator} is for tensors of the host: on {cell.device} torch's own "
            "allocator has them"
        )
    # Not looked up for the C library's: to read the list of libraries takes memory.
    if heap.preloaded(cell.allocator) and heap.allocator() != cell.allocator:
        return heap.preload(cell.allocator)[1] or f"{cell.allocator} was not loaded"
    if cell.mode not in MODES:
        return f"no mode {cell.mode!r}; there are: {', '.join(MODES)}"
    return ""

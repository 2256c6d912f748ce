"""The measuring protocol: one cell, in one process, from start to end.

`_measure` shows the order of the steps; docs/method.md gives the reasons. `subject` says what a
call is, `timing` how calls are timed, `inspect.steps` what a cold launch asks the compiler.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Literal

import torch

from .. import workloads
from ..analysis import statistics
from ..cell import METHOD, OK, Cell, Environment, Launch, Request
from ..host import allocators
from ..modes import MODES, Mode
from . import accuracy, device, environment, failures, interference, progress, timing
from . import subject as subjects
from .calibration import CalibrationLoop
from .inspect.steps import Inspection, Observed, Unobserved
from .stages import Stages
from .subject import Call, Subject


def measure(request: Request, process: Literal["fresh", "forked"] = "fresh") -> Launch:
    """Measure the request's cell in this process.

    Never raises for what the cell does: a failure is the launch's outcome. ``process`` says how
    this process was started; the launch records it.
    """
    stages = Stages(str(request.cell))
    fields: dict[str, Any] = {}
    try:
        fields["preloaded"] = [name for name in workloads.imports() if name in sys.modules]
        _measure(request, stages, fields)
        outcome = OK
    except Exception as error:
        outcome = failures.outcome(error, stages.now)
    return Launch(
        kind=request.kind, outcome=outcome, stages_s=stages.seconds, process=process, **fields
    )


def _measure(request: Request, stages: Stages, fields: dict[str, Any]) -> None:
    """Run all steps. ``fields`` gets the launch's fields as they become known."""
    steps = _Steps(request, stages, fields)
    mode = steps.prepare()
    subject = steps.build()
    with subject.context():
        eager_s, eager_output = steps.eager(subject)
        expected, reference_name = steps.reference(subject)
        inspection = steps.import_compiler(mode)
        call, forward, output, first_call_s = steps.compile(subject, inspection)
        steps.check_accuracy(subject, eager_output, output, expected, reference_name)
        del expected, eager_output, output
        calls_s = steps.warm_up(call, first_call_s)
        steps.peak_memory(call)
        steps.pairs(subject, call, eager_s, calls_s)
        inspection.after_pairs(subject, call, forward, steps.on)
    inspection.at_end()


class _Steps:
    """The steps of one launch. Each of them is one stage."""

    on: device.Device
    clock: device.Device

    def __init__(self, request: Request, stages: Stages, fields: dict[str, Any]) -> None:
        self.request = request
        self.stages = stages
        self.fields = fields

    def prepare(self) -> Mode:
        """Check that this process can measure the cell, and record the environment."""
        cell = self.request.cell
        with self.stages("prepare"):
            self.on = device.get(cell.device)
            # An unsynchronised clock times everything in the same way, but does not wait for the
            # device.
            self.clock = device.Unsynchronised(self.on) if cell.protocol == "no-sync" else self.on
            if reason := self.on.unavailable():
                raise failures.Unsupported(reason)
            mode = _mode(cell.mode)
            self.fields["environment"] = environment.describe(self.on)
            if reason := _unsupported(cell, self.fields["environment"]):
                raise failures.Unsupported(reason)
        return mode

    def build(self) -> Subject:
        """Build the module, its inputs and its calls."""
        with self.stages("build"):
            subject = subjects.build(self.request.cell)
            self.on.synchronize()
        return subject

    def eager(self, subject: Subject) -> tuple[list[float], Any]:
        """Warm eager up. Returns the seconds of each call, and an output to compare."""
        with self.stages("eager"):
            eager_s, _ = timing.warm_up(subject.baseline, self.on, self.request.plan)
            if self.request.kind == "cold":
                call_s = statistics.steady_call(eager_s)
                progress.learned(
                    str(self.request.cell), f"eager takes {call_s * 1e3:.3g} ms a call"
                )
            subject.reset()
            return eager_s, subject.outputs(subject.eager())

    def reference(self, subject: Subject) -> tuple[Any, str]:
        """The expected output, and the dtype in which it was computed."""
        with self.stages("reference"):
            return subject.reference()

    def import_compiler(self, mode: Mode) -> Inspection:
        """Import the compiler, which the launch records apart from compiling."""
        if not mode.compiles:
            return Unobserved()
        with self.stages("compiler"):
            from . import compiler

            self.fields["compiler_import_s"] = compiler.IMPORT_S
        if self.request.kind == "cold" and self.request.observe:
            return Observed(self.request.cell, self.request.cache_dir, self.stages, self.fields)
        return Unobserved()

    def compile(self, subject: Subject, inspection: Inspection) -> tuple[Call, Any, Any, float]:
        """The call in the mode, the compiled module, the first call's output and its seconds."""
        subject.reset()
        inspection.before_compile(self.on)
        on = self.on
        with self.stages("compile"):
            # The clock starts before torch.compile itself: setting it up is part of its cost.
            start = time.perf_counter()
            call, forward = subject.compile()
            output = call()
            on.synchronize()
            first_call_s = time.perf_counter() - start
        inspection.after_compile(on, first_call_s)
        return call, forward, output, first_call_s

    def check_accuracy(
        self, subject: Subject, eager_output: Any, output: Any, expected: Any, reference_name: str
    ) -> None:
        """Raise `failures.WrongResult` if the mode's output is too far from the expected one."""
        with self.stages("accuracy"):
            checked = accuracy.compare(
                eager_output,
                subject.outputs(output),
                expected,
                reference_name,
                self.request.cell.dtype,
                subject.random,
            )
            self.fields["accuracy"] = checked
            if reason := accuracy.wrong(checked):
                raise failures.WrongResult(reason)

    def warm_up(self, call: Call, first_call_s: float) -> list[float]:
        """Warm the mode up. Returns the seconds of each call after the first."""
        with self.stages("warm-up"):
            calls_s, steady = timing.warm_up(call, self.clock, self.request.plan)
            self.fields["warm_up_s"] = [timing.rounded(s) for s in (first_call_s, *calls_s)]
            self.fields["steady"] = steady
        return calls_s

    def peak_memory(self, call: Call) -> None:
        """Measure the peak memory of steady calls in the mode."""
        with self.stages("memory"):
            self.fields["peak_memory_bytes"] = timing.peak_memory_bytes(call, self.on)

    def pairs(
        self, subject: Subject, call: Call, eager_s: list[float], calls_s: list[float]
    ) -> None:
        """Time eager and the mode in turns, and watch what others take from the machine."""
        plan = self.request.plan
        with self.stages("pairs"):
            steady_s = [statistics.steady_call(seconds) for seconds in (eager_s, calls_s)]
            turn = timing.Turn(self.clock, plan, min(steady_s), max(steady_s))
            self.fields["method"] = METHOD
            self.fields["calls_a_sample"] = turn.count
            watch = interference.Watch()
            with CalibrationLoop(torch.get_num_threads()) as calibration:
                self.fields["pairs_s"] = timing.pairs(
                    subject.baseline, call, turn, plan, calibration
                )
            self.fields["interference"] = watch.shares()
            seconds = calibration.seconds
            self.fields["calibration_s"] = seconds and timing.rounded(seconds)


def _unsupported(cell: Cell, here: Environment) -> str:
    """Why this process cannot measure the cell, or the empty string."""
    if cell.protocol == "no-sync" and cell.device == "cpu":
        return "a call on a CPU returns when it is done: there is nothing to forget to wait for"
    if cell.allocator not in ("system", allocators.LIBC) and here.allocator != cell.allocator:
        return allocators.preload(cell.allocator)[1] or f"{cell.allocator} was not loaded"
    return ""


def _mode(name: str) -> Mode:
    mode = MODES.get(name)
    if mode is None:
        raise failures.Unsupported(f"no mode {name!r}; there are: {', '.join(MODES)}")
    since = ".".join(map(str, mode.since))
    # A TorchVersion, which compares with version texts. A nightly counts as its release.
    if torch.__version__ < f"{since}.dev0":
        raise failures.Unsupported(f"mode {name!r} came with torch {since}")
    return mode

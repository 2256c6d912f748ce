"""The measuring protocol: one cell, one process, start to end.

Seed, build, eager warm-up, first compiled call timed alone, correctness, warm-up until steady,
peak memory, then eager and compiled calls in turns; a cold launch then asks what the compiler
saw. docs/method.md gives the reasons. What a call is, `subject` knows.
"""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from .. import workloads
from ..analysis import statistics
from ..cell import METHOD, OK, Cell, Environment, Launch, Plan, Request
from ..host import allocators
from ..modes import MODES, Mode
from . import accuracy, device, environment, failures, interference, progress
from . import subject as subjects
from .calibration import Yardstick
from .paging import paging
from .subject import Call

# Calls over which the peak memory is taken: the second one meets a warm allocator. Where one takes
# seconds the warm-up has seen to that, and one is enough.
MEMORY_CALLS = 3
MEMORY_LIMIT_S = 3.0
# Between two looks at the clock: a single short call would be mostly the clock and the interpreter.
SAMPLE_S = 0.01
# Of a call that takes so many times the settling time, what the other mode left behind is less
# than a hundredth, and a call that does not count would double the time.
LONG_CALL = 10


class Stages:
    """Where the process's time goes, and in which stage it was when something was raised."""

    def __init__(self, cell: str) -> None:
        """Start outside any stage, of a launch of the cell of that name."""
        self._cell = cell
        self.now = "start"
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Run the body as the stage of that name; after an error `now` still names it."""
        self.now = name
        progress.stage(self._cell, name)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(time.perf_counter() - start, 4)


def measure(request: Request, process: str = "fresh") -> Launch:
    """Measure the request's cell in this process.

    Never raises for what the cell does: every failure is the launch's outcome. ``process`` says
    how this process came to be and is recorded.
    """
    stages = Stages(str(request.cell))
    found: dict[str, Any] = {}
    try:
        found["preloaded"] = [name for name in workloads.imports() if name in sys.modules]
        _measure(request, stages, found)
        outcome = OK
    except Exception as error:
        outcome = failures.outcome(error, stages.now)
    return Launch(
        kind=request.kind,
        outcome=outcome,
        stages_s=stages.seconds,
        process=process,  # type: ignore[arg-type]
        **found,
    )


def _measure(request: Request, stages: Stages, found: dict[str, Any]) -> None:
    """Fill ``found`` with the launch's fields as they become known."""
    cell, plan = request.cell, request.plan
    with stages("prepare"):
        on = device.get(cell.device)
        if reason := on.unavailable():
            raise failures.Unsupported(reason)
        mode = _mode(cell.mode)
        found["environment"] = environment.describe(on)
        if reason := _unsupported(cell, found["environment"]):
            raise failures.Unsupported(reason)

    with stages("build"):
        subject = subjects.build(cell)
        on.synchronize()

    with subject.context():
        with stages("eager"):
            eager_s, _ = _warm_up(subject.baseline, on, plan)
            if request.kind == "cold":
                first_look = statistics.steady_call(eager_s)
                progress.learned(str(cell), f"eager takes {first_look * 1e3:.3g} ms a call")
            subject.reset()
            eager_output = subject.outputs(subject.eager())
        with stages("reference"):
            expected, reference_name = subject.reference()

        observer = None
        if mode.compiles:
            with stages("compiler"):
                from . import compiler

                found["compiler_import_s"] = compiler.IMPORT_S
            if request.kind == "cold" and request.observe:
                from .inspect.observe import Observer

                observer = Observer(cell, Path(request.cache_dir))

        subject.reset()
        if observer:
            on.reset_peak_memory()
        with stages("compile"):
            # The clock starts before torch.compile itself: setting it up is part of its cost.
            start = time.perf_counter()
            call, forward = subject.compile()
            output = call()
            on.synchronize()
            first_call_s = time.perf_counter() - start
        if observer:
            observer.compiled_once(on.peak_memory_bytes())

        if observer:
            progress.learned(str(cell), f"the first compiled call took {first_call_s:.3g} s")

        with stages("accuracy"):
            output = subject.outputs(output)
            checked = accuracy.compare(
                eager_output, output, expected, reference_name, cell.dtype, subject.random
            )
            found["accuracy"] = checked
            if reason := accuracy.wrong(checked):
                raise failures.WrongResult(reason)
        del expected, eager_output, output

        # What an unsynchronised clock sees is timed like anything else, only the device is not
        # waited for.
        clock = device.Unsynchronised(on) if cell.protocol == "no-sync" else on
        with stages("warm-up"):
            calls_s, steady = _warm_up(call, clock, plan)
            found["warm_up_s"] = [_round(s) for s in (first_call_s, *calls_s)]
            found["steady"] = steady

        with stages("memory"):
            found["peak_memory_bytes"] = _peak_memory(call, on)

        with stages("pairs"):
            steady_s = [statistics.steady_call(each) for each in (eager_s, calls_s)]
            turn = Turn(clock, plan, min(steady_s), max(steady_s))
            found["method"] = METHOD
            found["calls_a_sample"] = turn.count
            watch = interference.Watch()
            with Yardstick(torch.get_num_threads()) as yardstick:
                found["pairs_s"] = _pairs(subject.baseline, call, turn, plan, yardstick)
            found["interference"] = watch.seen()
            found["yardstick_s"] = yardstick.seconds and _round(yardstick.seconds)

        if observer:
            from .inspect import capture

            workload = workloads.get(cell.workload)
            with stages("observe"):
                observer.ran(subject, call, on)
                if on.kind == "cpu":
                    found["eager_paging"] = paging(subject.eager)
                    found["paging"] = paging(call)
            with stages("cases"):
                cases = workload.cases(cell.batch_size) if workload.cases else []
                capture.check_cases(forward, subject.module, cases, cell.device)
                if workload.random and cell.backend == "inductor":
                    capture.check_draws(subject)
    if observer:
        with stages("recapture"):
            found["compiled"] = observer.last(workload)


def _unsupported(cell: Cell, here: Environment) -> str:
    """Why this process cannot be what the cell asks for, or the empty string."""
    if cell.protocol == "no-sync" and cell.device == "cpu":
        return "a call on a CPU returns when it is done: there is nothing to forget to wait for"
    if cell.allocator not in ("system", allocators.LIBC) and here.allocator != cell.allocator:
        return allocators.preload(cell.allocator)[1] or f"{cell.allocator} was not loaded"
    return ""


def _mode(name: str) -> Mode:
    mode = MODES.get(name)
    if mode is None:
        raise failures.Unsupported(f"no mode {name!r}; there are: {', '.join(MODES)}")
    release = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if release < mode.since:
        raise failures.Unsupported(f"mode {name!r} came with torch {mode.since[0]}.{mode.since[1]}")
    return mode


def _timed(call: Call, on: device.Device, count: int = 1) -> float:
    """Seconds a call over ``count`` calls, the device idle at both ends of the clock."""
    on.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        call()
    on.synchronize()
    return (time.perf_counter() - start) / count


def _warm_up(call: Call, on: device.Device, plan: Plan) -> tuple[list[float], bool]:
    """Call until steady or until the plan's limit; each call's seconds, and whether it settled."""
    calls_s: list[float] = []
    deadline = time.perf_counter() + plan.warm_up_limit_s
    while True:
        calls_s.append(_timed(call, on))
        if statistics.is_steady(calls_s):
            return calls_s, True
        if time.perf_counter() > deadline:
            return calls_s, False


def _peak_memory(call: Call, on: device.Device) -> int | None:
    """The most memory held over a few steady calls in the mode."""
    gc.collect()
    on.reset_peak_memory()
    deadline = time.perf_counter() + MEMORY_LIMIT_S
    for _ in range(MEMORY_CALLS):
        call()
        on.synchronize()
        if time.perf_counter() > deadline:
            break
    return on.peak_memory_bytes()


class Turn:
    """Calls of one of the two, between turns of the other.

    The first calls pay for what the other left behind in caches and predictors, which who runs
    only one of them never does: a convolution net's compiled calls were 10 % slower call by call.
    So they do not count.
    """

    def __init__(self, on: device.Device, plan: Plan, shorter_s: float, longer_s: float) -> None:
        """On a device; the two take so many seconds a call."""
        self._on = on
        self._turn_s = plan.turn_s
        self._settle_s = plan.settle_s if longer_s < LONG_CALL * plan.settle_s else 0.0
        self.count = max(1, math.ceil(SAMPLE_S / shorter_s))

    def __call__(self, call: Call) -> float:
        """Seconds a call: the mean of those that count."""
        self._samples(call, self._settle_s)
        return _round(fmean(self._samples(call, self._turn_s)))

    def _samples(self, call: Call, seconds: float) -> list[float]:
        """Seconds a call in each sample, until they have lasted so long."""
        samples: list[float] = []
        while self.count * math.fsum(samples) < seconds:
            samples.append(_timed(call, self._on, self.count))
        return samples


def _pairs(
    eager: Call, mode: Call, turn: Turn, plan: Plan, yardstick: Yardstick
) -> list[tuple[float, float]]:
    """Turns of both, the order alternating, until the plan is met; the yardstick before each."""
    pairs: list[tuple[float, float]] = []
    # As timeit does: a collection that starts in one of the two would be charged to it.
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        while True:
            yardstick()
            if len(pairs) % 2:
                mode_s = turn(mode)
                pairs.append((turn(eager), mode_s))
            else:
                eager_s = turn(eager)
                pairs.append((eager_s, turn(mode)))
            spent = time.perf_counter() - start
            enough = len(pairs) >= plan.min_pairs and spent >= plan.min_timed_s
            if enough or spent >= plan.max_timed_s:
                return pairs
    finally:
        gc.enable()


def _round(seconds: float) -> float:
    """Six significant digits: far below any clock's noise, and half the bytes in a record."""
    return float(f"{seconds:.6g}")

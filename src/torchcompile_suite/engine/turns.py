"""One launch: eager and the mode take turns, each in a process of its own on a CPU.

`launch` drives processes that stay for the whole launch; in `starts` a whole process is a turn.
Both take turns by `alternate`.

A user's process runs only one of them. In one process, each side would find the heap as the other
side left it: eager was up to 10 % faster, and up to 6 % slower, beside compiled calls than alone.
On an accelerator both sides are in one process. There torch's allocator keeps the memory, and a
second process would need the device's memory for a second model.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median_low
from typing import Any, Protocol, TypeVar

import msgspec

from ..analysis import statistics
from ..analysis.ends import unsettled
from ..conditions import Paging
from ..host.probes import Probes
from ..launch.messages import Asked, Ended, Finish, Go, Imported, Ready, Said, Timed, Turn
from ..measurement import METHOD, OK, Launch, Outcome, Status
from ..request import Request, Side
from .calibration import CalibrationLoop, threads_for
from .interference import Watch, of_processes, on_device

# Time between two readings of the clock. One short call alone would measure mostly the clock and
# the interpreter.
SAMPLE_S = 0.01
# Calls of at least this many times `Plan.settle_s` need no settling: what the other side left in
# the caches is under 1 % of their time, and calls that do not count would double the time.
LONG_CALL = 10
# What a process may take to import torch and what the model needs.
IMPORT_LIMIT_S = 300.0

# Begins the reason where only the process with compiled code ended.
COMPILED = "compiled, while eager runs: "

# The calibration loop on so many threads.
Calibrate = Callable[[int], CalibrationLoop]


class TimedOut(Exception):
    """A process has not said anything before the deadline. Its argument says how far it came."""


class Lost(Exception):
    """A process has ended without saying so."""

    def __init__(self, outcome: Outcome, pid: int = 0) -> None:
        """``outcome``: of the launch. ``pid``: of the process; 0 if it has not started."""
        self.outcome = outcome
        self.pid = pid


class Process(Protocol):
    """A measuring process."""

    pid: int

    def say(self, asked: Asked | Request) -> None:
        """Send a message. Raises `Lost`."""

    def hear(self, deadline: float) -> Said:
        """The next message. Raises `Lost`, and `TimedOut` at ``deadline`` (monotonic seconds)."""

    def end(self) -> None:
        """End the process with its group, and wait until it is gone."""


class Failed(Exception):
    """A process has ended with an outcome that is not ok; its argument is its launch."""


_Message = TypeVar("_Message", bound=Said)
_Taken = TypeVar("_Taken")


def launch(
    start: Callable[[Path], Process],
    request: Request,
    workspace: Path,
    limit_s: float,
    calibrate: Calibrate = CalibrationLoop,
) -> Launch:
    """Measure the request's cell in new processes, at most for ``limit_s`` seconds.

    ``start`` starts a process whose output goes to the file that it gets, in ``workspace``.
    ``calibrate``: the loop on so many threads. Nothing is raised for what the cell does: a failure
    is the outcome of the launch.
    """
    deadline = time.monotonic() + limit_s
    hosted: list[tuple[Side, ...]] = [("eager",), ("mode",)]
    if request.cell.device != "cpu":
        hosted = [("eager", "mode")]
    processes: dict[tuple[Side, ...], Process] = {}

    def make() -> Launch:
        for sides in hosted:
            processes[sides] = start(workspace / f"{sides[-1]}.log")
            processes[sides].say(msgspec.structs.replace(request, sides=sides))
        ready: dict[Side, float] = {}
        try:
            return _launch(processes, ready, request, deadline, calibrate)
        except Lost as lost:
            compiled = processes.get(("mode",))
            if "eager" in ready and compiled is not None and lost.pid == compiled.pid:
                reason = f"{COMPILED}{lost.outcome.reason}"
                raise Lost(Outcome(lost.outcome.status, reason)) from None
            raise

    try:
        return guarded(make, request, limit_s)
    finally:
        for process in processes.values():
            process.end()


def whole(process: Process, request: Request, deadline: float) -> Launch:
    """What a process answers that does the whole request by itself. Raises as `expect`."""
    try:
        process.say(request)
        begun(process, deadline)
        process.say(Go())
        return expect(process, Ended, deadline).launch
    finally:
        process.end()


def how_far(late: TimedOut) -> str:
    """How far a process came, as the end of a reason; empty if it was not seen."""
    return "".join(f": {text}" for text in late.args if text)


def guarded(make: Callable[[], Launch], request: Request, limit_s: float) -> Launch:
    """What ``make`` returns; where it raises `TimedOut`, `Lost` or `Failed`, a launch that says
    so.
    """
    try:
        return make()
    except TimedOut as late:
        reason = f"a {request.kind} launch took more than {limit_s:.0f} s{how_far(late)}"
        return Launch(request.kind, Outcome(Status.TIMEOUT, reason))
    except Lost as lost:
        return Launch(request.kind, lost.outcome)
    except Failed as failed:
        return failed.args[0]  # type: ignore[no-any-return]


def _launch(
    processes: dict[tuple[Side, ...], Process],
    ready: dict[Side, float],
    request: Request,
    deadline: float,
    calibrate: Calibrate,
) -> Launch:
    """``ready`` gets seconds a call of each side that is warm, and is empty after the turns."""
    # Fresh processes import at the same time. Then each warms up alone.
    for process in processes.values():
        begun(process, deadline)
    threads = 1
    for process in processes.values():
        process.say(Go())
        said = expect(process, Ready, deadline)
        ready |= said.steady_s
        threads = said.threads
    sides = {side: process for hosted, process in processes.items() for side in hosted}
    start = time.perf_counter()
    timed = _take_turns(sides, request, ready, threads, deadline, calibrate)
    turns_s = round(time.perf_counter() - start, 4)
    ready.clear()  # from now on the compiled side's process runs eager as well, for the check
    ended: dict[Side, Launch] = {}
    for hosted, process in processes.items():
        process.say(Finish())
        ended |= dict.fromkeys(hosted, expect(process, Ended, deadline).launch)
        if "mode" not in hosted:
            process.end()  # its memory is free while the compiled module is checked
    eager, mode = ended["eager"], ended["mode"]
    stages_s = {**mode.stages_s, "turns": turns_s}
    if eager is not mode:
        own_s = math.fsum(s for name, s in eager.stages_s.items() if name != "turns")
        stages_s = {"eager": round(own_s, 4), **stages_s}
    made = msgspec.structs.replace(
        mode,
        stages_s=stages_s,
        eager_peak_memory_bytes=eager.eager_peak_memory_bytes,
        eager_growth=eager.eager_growth,
        notes=list(dict.fromkeys([*mode.notes, *eager.notes])),
        method=METHOD,
        **timed,
    )
    if (
        made.heap == "settled"
        and made.eager_paging
        and made.paging
        and (reason := unsettled(made.eager_paging.faults, made.paging.faults))
    ):
        return msgspec.structs.replace(made, outcome=Outcome(Status.UNSETTLED, reason), pairs_s=[])
    return made


def begun(process: Process, deadline: float) -> None:
    """Wait until the process has imported torch. Raises as `expect`; and `Lost` if its Python hangs
    at its start.
    """
    now = time.monotonic()
    within_s = max(IMPORT_LIMIT_S, (deadline - now) / 3)
    soon = now + within_s
    try:
        expect(process, Imported, min(deadline, soon))
    except TimedOut:
        if deadline <= soon:
            raise
        reason = f"its Python did not import torch within {within_s:.0f} s"
        raise Lost(Outcome(Status.TIMEOUT, reason)) from None


def expect(process: Process, kind: type[_Message], deadline: float) -> _Message:
    """The next message, which has to be of that kind. Raises `Failed` if the process failed."""
    said = process.hear(deadline)
    if isinstance(said, Ended) and said.launch.outcome != OK:
        raise Failed(said.launch)
    if not isinstance(said, kind):
        raise TypeError(f"a measuring process said {said} and not {kind.__name__}")
    return said


def alternate(
    turn: Callable[[Side], _Taken],
    enough: Callable[[dict[Side, list[_Taken]], float], bool],
    calibration: CalibrationLoop,
    first: Side = "eager",
    probe: Callable[[], None] = lambda: None,
) -> dict[Side, list[_Taken]]:
    """Pairs of turns, what ``turn`` returns of each side; a calibration before each pair, and
    ``probe`` before each turn and after the last one.

    The order alternates from pair to pair. ``first`` has the first turn of all. ``enough`` is asked
    after each pair, with the turns and the seconds so far.
    """
    taken: dict[Side, list[_Taken]] = {"eager": [], "mode": []}
    order: list[Side] = ["eager", "mode"] if first == "eager" else ["mode", "eager"]
    start = time.perf_counter()
    while True:
        calibration()
        for side in order:
            probe()
            taken[side].append(turn(side))
        order.reverse()
        if enough(taken, time.perf_counter() - start):
            probe()
            return taken


def _take_turns(
    sides: dict[Side, Process],
    request: Request,
    steady_s: dict[Side, float],
    threads: int,
    deadline: float,
    calibrate: Calibrate,
) -> dict[str, Any]:
    """Turns of both sides until the plan is met. Returns fields of the launch."""
    plan, kind = request.plan, request.cell.device
    # With a device of its own, this process may be a notebook's, which uses it.
    measured = {process.pid for process in sides.values()} | {os.getpid()}
    # The fastest ones so far: the warm-up may have ended with a call that compiled.
    call_s = dict(steady_s)

    def count(side: Side) -> int:
        return max(1, math.ceil(SAMPLE_S / call_s[side]))

    def turn(side: Side) -> Timed:
        settle_s = plan.settle_s if max(call_s.values()) < LONG_CALL * plan.settle_s else 0.0
        sides[side].say(Turn(side, count(side), settle_s, plan.turn_s))
        timed = expect(sides[side], Timed, deadline)
        call_s[side] = min(call_s[side], timed.call_s)
        return timed

    def enough(taken: dict[Side, list[Timed]], spent_s: float) -> bool:
        device.read(measured)
        if spent_s >= plan.max_timed_s:
            return True
        pairs_s = _calls_s(taken)
        if spent_s < plan.min_timed_s or not probes.enough(len(pairs_s), plan.min_pairs):
            return False
        counted = list(itertools.compress(pairs_s, probes.counting(len(pairs_s))))
        # The error decides, never the ratio.
        return statistics.launch_error(counted) <= plan.error

    with calibrate(threads_for(kind, threads)) as calibration, on_device(kind) as device:
        own_s = functools.partial(of_processes, measured | calibration.pids)
        # A host's threads wait for an accelerator, and not for each other.
        watch, probes = Watch(), Probes(kind == "cpu")
        watch.begin(own_s)
        timed = alternate(turn, enough, calibration, probe=probes)
        # While all processes are there: one that is gone has no times.
        watch.end(own_s)
    all_turns = list(zip(timed["eager"], timed["mode"], strict=True))
    # A turn at another place of the host than its counterpart is no pair.
    turns = list(itertools.compress(all_turns, probes.counting(len(all_turns))))
    host = probes.state(_calls_s(timed))
    on_cpu = kind == "cpu"
    return {
        "pairs_s": [(eager.call_s, mode.call_s) for eager, mode in turns],
        "calls_a_sample": count("mode"),
        "eager_paging": _paging(timed["eager"]) if on_cpu else None,
        "paging": _paging(timed["mode"]) if on_cpu else None,
        "latency_s": [
            (eager.single_s, mode.single_s)
            for eager, mode in turns
            if eager.single_s is not None and mode.single_s is not None
        ],
        "interference": watch.shares(device.state(), host),
        "calibration_s": calibration.seconds,
    }


def _calls_s(taken: dict[Side, list[Timed]]) -> list[tuple[float, float]]:
    """Seconds a call of both sides, of each pair."""
    return [
        (eager.call_s, mode.call_s)
        for eager, mode in zip(taken["eager"], taken["mode"], strict=True)
    ]


def _paging(turns: list[Timed]) -> Paging:
    cpu_s = math.fsum(turn.cpu_s for turn in turns)
    kernel_s = math.fsum(turn.kernel_s for turn in turns)
    return Paging(
        # The lower one of two middle turns: where calls are so long that there are only two turns,
        # the heap may have grown in one of them, and is settled.
        faults=float(f"{median_low(turn.faults / turn.calls for turn in turns):.4g}"),
        kernel_share=round(min(1.0, kernel_s / cpu_s), 4) if cpu_s > 0 else 0.0,
    )

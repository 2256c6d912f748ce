"""Where the time of a call goes: the launch of a cell whose calls are divided.

One process makes four calls in turns: eager and the mode, each as a user makes it and with marks
around its parts (`inspect.marks`). The calls with marks say how a call divides. The compiled call
without marks says whether its parts add up to it; of eager's call, what the operators leave is
Python's.
"""

from __future__ import annotations

import gc
import os
import resource
import time
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from .. import workloads
from ..attribution import Attribution, Place, Split, Step
from ..cell import Cell
from ..host import heap
from ..measurement import METHOD, OK, Launch
from ..request import Request
from .progress import Stages, rounded

if TYPE_CHECKING:
    from .inspect.marks import Marked
    from .subject import Call, Subject

# A turn is calls for so long, at least and at most so many. One call before does not count.
TURN_S = 0.15
FEWEST_CALLS, MOST_CALLS = 3, 200
# The turns go on for so long, with at least so many of each call.
TURNS_S = 8.0
FEWEST_TURNS = 4
# The name under which torch.compile knows the backend that marks graphs.
_BACKEND = "torchcompile_suite_marked"


class _Calls(NamedTuple):
    """One call, again and again: nanoseconds when it began and ended, with the marks between."""

    samples: list[tuple[int, list[tuple[int, int]], int]]
    faults: list[float]


def attribute(request: Request, heap_note: str = "") -> Launch:
    """Divide the calls of the request's cell. Never raises for what the cell does: a failure is the
    launch's outcome. ``heap_note``: why this process's heap is not as the request asks.
    """
    from . import device, failures

    load = os.getloadavg()[0]
    stages = Stages(str(request.cell), "")
    made = environment = None
    outcome = OK
    try:
        with stages("prepare"):
            on = device.get(request.cell.device)
            on.need()
        try:
            made = _attribute(request.cell, stages)
        finally:
            environment = device.describe(on, load)
    except Exception as error:
        outcome = failures.outcome(error, stages.now)
    if made is not None and request.kind == "warm":
        made = msgspec.structs.replace(made, code={})
    return Launch(
        request.kind,
        outcome,
        environment=environment,
        stages_s=stages.seconds,
        method=METHOD,
        heap="default" if heap_note else request.heap,
        heap_note=heap_note,
        attribution=made,
    )


def _attribute(cell: Cell, stages: Stages) -> Attribution:
    from . import failures, foreign
    from .build import build
    from .inspect import dynamo, marks, observe

    if cell.device != "cpu" or cell.backend != "inductor" or cell.start or cell.shapes != "static":
        raise failures.Unsupported("only Inductor's code for a CPU and fixed shapes is divided")
    with stages("build"):
        subject = build(cell)
    with stages("eager"):
        if workloads.get(cell.workload).foreign:
            foreign.learn(subject, steady=False)
    with subject.context():
        with stages("eager"):
            for _ in range(FEWEST_CALLS):
                subject.eager()
        with stages("compile"):
            mode, forward = subject.compile()
            mode()
            graphs = dynamo.captures()
            if not graphs:
                raise failures.Unsupported(dynamo.NO_GRAPH)
            writer = marks.Writer()
            # What has marks is compiled beside it, and counts for the same limit.
            with writer.writing(), dynamo.more_captures(3):
                marked_mode, _ = subject.compile()
                marked_mode()
        operators: list[Marked] = []
        with stages("eager"), dynamo.more_captures(3):
            marked_eager = _marked_eager(subject, operators)
        if dynamo.captures() != 3 * graphs:
            raise failures.Unsupported("with marks, Dynamo captures other graphs than without")
        calls = {
            "eager": subject.eager,
            "marked eager": marked_eager,
            "mode": mode,
            "marked mode": marked_mode,
        }
        with stages("turns"):
            made = _turns(calls)
        with stages("observe"):
            mark_s = marks.cost_s()
            guards_s = observe.guard_check_s(cell, getattr(forward, "_orig_mod", forward), subject)
    graph_operators = [each for step in operators for each in step.operators]
    steps = writer.resolved(graph_operators)
    known = list(dict.fromkeys(each for step in (*operators, *steps) for each in step.operators))
    place = {each: at for at, each in enumerate(known)}
    return Attribution(
        operators=known,
        eager=_split(made["eager"], made["marked eager"], operators, place, mark_s, None),
        mode=_split(made["mode"], made["marked mode"], steps, place, mark_s, guards_s or 0.0),
        code=writer.code,
    )


def _marked_eager(subject: Subject, operators: list[Marked]) -> Call:
    """A call of the captured graphs in eager, with marks; adds what they enclose."""
    import torch._dynamo

    from .inspect import marks

    torch._dynamo.register_backend(marks.in_graphs(operators), name=_BACKEND)
    cell = subject.cell
    subject.cell = msgspec.structs.replace(cell, backend=_BACKEND, mode="default", way="whole")
    call, _ = subject.compile()
    call()
    subject.cell = cell
    return call


def _turns(calls: Mapping[str, Call]) -> dict[str, _Calls]:
    """Make the calls in turns."""
    from .inspect import marks

    made = {name: _Calls([], []) for name in calls}
    heap.touch()
    gc.collect()
    gc.disable()
    gc.freeze()
    try:
        begun = time.perf_counter()
        turns = 0
        while turns < FEWEST_TURNS or time.perf_counter() - begun < TURNS_S:
            for name, call in calls.items():
                _turn(call, marks.stamps, made[name])
            turns += 1
    finally:
        gc.unfreeze()
        gc.enable()
    return made


def _turn(call: Call, stamps: list[tuple[int, int]], made: _Calls) -> None:
    call()
    stamps.clear()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    deadline = time.perf_counter() + TURN_S
    count = 0
    while count < FEWEST_CALLS or (count < MOST_CALLS and time.perf_counter() < deadline):
        made.samples.append(_sample(call, stamps))
        count += 1
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    made.faults.append(faults / count)


def _sample(call: Call, stamps: list[tuple[int, int]]) -> tuple[int, list[tuple[int, int]], int]:
    """One call. One that puts its inputs back does so outside the clock."""
    from .values import Restoring

    inner = call.inner if isinstance(call, Restoring) else call
    stamps.clear()
    begun = time.perf_counter_ns()
    inner()
    ended = time.perf_counter_ns()
    found = list(stamps)
    if isinstance(call, Restoring):
        call.restore()
    return begun, found, ended


def _middle(samples: Sequence[Any]) -> list[Any]:
    """The half of the calls around the median: an interrupted call is no call of a user's."""
    ordered = sorted(samples, key=lambda sample: sample[2] - sample[0])
    quarter = len(ordered) // 4
    return ordered[quarter : len(ordered) - quarter]


def _split(
    plain: _Calls,
    marked: _Calls,
    steps: Sequence[Marked],
    place: Mapping[Any, int],
    mark_s: float,
    guards_s: float | None,
) -> Split:
    """How the call divides. ``guards_s``: None for eager, whose rest is all in Python."""
    call_s = fmean((ended - begun) / 1e9 for begun, _, ended in _middle(plain.samples))
    middle = _middle(marked.samples)
    seconds = [0.0] * len(steps)
    rest: dict[Place, float] = dict.fromkeys(("entry", "buffers", "python", "exit"), 0.0)
    marks = 0
    for begun, stamps, ended in middle:
        marks += len(stamps)
        before, at_ns = None, begun
        for number, read_ns in stamps:
            taken = (read_ns - at_ns) / 1e9 - mark_s
            if number % 2:
                seconds[number // 2] += taken
            else:
                rest[_place(steps, before, number // 2)] += taken
            before, at_ns = number // 2, read_ns
        rest["exit"] += (ended - at_ns) / 1e9
    calls = len(middle)
    seconds = [each / calls for each in seconds]
    if guards_s is None:
        rest_s: dict[Place, float] = {"python": call_s - sum(seconds)}
    else:
        rest_s = {name: each / calls for name, each in rest.items()}
        rest_s = {"guards": guards_s, **rest_s, "entry": rest_s["entry"] - guards_s}
    return Split(
        call_s=rounded(call_s),
        faults=rounded(fmean(plain.faults)),
        steps=[_step(*each, place) for each in zip(steps, seconds, strict=True)],
        rest_s={name: rounded(each) for name, each in rest_s.items()},
        marks_s=rounded(mark_s * marks / calls),
    )


def _place(steps: Sequence[Marked], before: int | None, step: int) -> Place:
    if before is None:
        return "entry"
    one, other = steps[before], steps[step]
    # A graph that runs twice in a row begins again.
    return "buffers" if one.graph == other.graph and step > before else "python"


def _step(marked: Marked, seconds: float, place: Mapping[Any, int]) -> Step:
    return Step(
        marked.name,
        marked.kind,
        [place[each] for each in marked.operators],
        rounded(seconds),
        marked.graph,
        marked.direction,
        marked.weights,
    )

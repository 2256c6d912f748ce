"""Where the time of a call goes: the launch of a cell whose calls are divided.

One process makes four calls in turns: eager and the mode, each as a user makes it and with marks
around its parts (`inspect.marks`). The calls with marks say how a call divides. The compiled call
without marks says whether its parts add up to it; of eager's call, what the operators leave is
Python's. On an accelerator the calls with marks are made under torch's profiler, after the turns:
the parts are what the device does, and the time in which it does nothing.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median_low
from typing import Any, NamedTuple

import msgspec
import torch
import torch._dynamo

from .. import workloads
from ..analysis.ends import unsettled
from ..attribution import Attribution, Place, Split, Step
from ..cell import Cell
from ..host import heap
from ..measurement import METHOD, Launch
from ..request import Request
from . import device, failures, foreign
from .build import build
from .inspect import dynamo, marks, observe, profiler
from .inspect.marks import Marked
from .inspect.writer import Writer
from .progress import Stages, rounded
from .subject import Call, Subject
from .timing import without_collections
from .values import Restoring

# A turn is calls for so long, at least and at most so many. One call before does not count.
TURN_S = 0.15
FEWEST_CALLS, MOST_CALLS = 3, 200
# The turns go on for so long, with at least so many of each call.
TURNS_S = 8.0
FEWEST_TURNS = 4
# The name under which torch.compile knows the backend that marks graphs.
_BACKEND = "torchcompile_suite_marked"
# Higher-order operators whose bodies AOTAutograd makes a part of the graph around them.
_INLINED = {"autograd_function_apply", "tag_activation_checkpoint", "wrap"}


# A replay of a CUDA graph runs no marks.
_WITHOUT_GRAPHS = {"reduce-overhead": "default", "max-autotune": "max-autotune-no-cudagraphs"}


class _Calls(NamedTuple):
    """One call, again and again: nanoseconds when it began and ended, with the marks between."""

    samples: list[tuple[int, list[tuple[int, int]], int]]
    faults: list[float]


class _Parts(NamedTuple):
    """Seconds of a call: of each step, of the rest by place, and of the marks themselves."""

    seconds: list[float]
    rest_s: dict[Place, float]
    marks_s: float


def attribute(request: Request, heap_note: str = "") -> Launch:
    """Divide the calls of the request's cell. Never raises for what the cell does: a failure is the
    launch's outcome. ``heap_note``: why this process's heap is not as the request asks.
    """
    heap_now = "default" if heap_note else request.heap

    def work(on: device.Device, stages: Stages) -> dict[str, Any]:
        made, notes = _attribute(request.cell, on, stages)
        if heap_now == "settled" and (why := unsettled(made.eager.faults, made.mode.faults)):
            raise failures.Unsettled(why)
        if request.kind == "warm":
            made = msgspec.structs.replace(made, code={})
        return {"attribution": made, "notes": notes}

    return device.launched(request, "", work, method=METHOD, heap=heap_now, heap_note=heap_note)


def _attribute(cell: Cell, on: device.Device, stages: Stages) -> tuple[Attribution, list[str]]:
    """The parts of the calls, and notes on how the model is called."""
    if cell.backend != "inductor" or cell.start or cell.shapes != "static":
        raise failures.Unsupported("only Inductor's code for fixed shapes is divided")
    with stages("build"):
        subject = build(cell)
    with stages("eager"):
        foreign_model = workloads.get(cell.workload).foreign
        notes = foreign.learn(subject, steady=False) if foreign_model else []
    if cell.device != "cpu" and subject.fresh_inputs:
        raise failures.Unsupported(
            "on an accelerator the copies that put changed inputs back would be counted"
        )
    with subject.context():
        with stages("eager"):
            for _ in range(FEWEST_CALLS):
                subject.eager()
        with stages("compile"):
            dynamo.start_counting()  # FlexAttention captures graphs in eager, too
            mode, forward = subject.compile()
            for _ in range(FEWEST_CALLS):  # a CUDA graph is recorded in the second one
                mode()
            graphs = dynamo.captures()
            if not graphs:
                raise failures.Unsupported(dynamo.NO_GRAPH)
        marked, writer, operators = _marked(subject, stages, graphs)
        calls = {"eager": subject.eager, "mode": mode}
        if cell.device == "cpu":
            calls |= {f"marked {side}": call for side, call in marked.items()}
        with stages("turns"):
            made = _turns(calls, on.synchronize)
        graph_operators = [each for step in operators for each in step.operators]
        steps = {"eager": operators, "mode": writer.resolved(graph_operators)}
        call_s = {side: _call_s(made[side]) for side in steps}
        with stages("observe"):
            if cell.device == "cpu":
                guards_s = observe.guard_check_s(forward, subject)
                parts = _of_both_on_host(made, steps, call_s["eager"], guards_s)
            else:
                parts = {
                    side: _on_device(call, len(steps[side]), call_s[side], on.synchronize)
                    for side, call in marked.items()
                }
    known = list(
        dict.fromkeys(each for side in steps.values() for step in side for each in step.operators)
    )
    place = {each: at for at, each in enumerate(known)}
    eager, compiled_call = (
        _split(made[side], call_s[side], steps[side], parts[side], place) for side in steps
    )
    divided = Attribution(operators=known, eager=eager, mode=compiled_call, code=writer.code)
    return divided, notes


def _marked(
    subject: Subject, stages: Stages, graphs: int
) -> tuple[dict[str, Call], Writer, list[Marked]]:
    """The calls with marks; what wrote the compiled one's code; the steps of eager's.

    ``graphs``: those of the mode without marks.
    """
    writer = Writer()
    mode = subject.cell.mode
    # What has marks is compiled beside the mode, and counts for the same limit.
    with stages("compile"), writer.writing(), dynamo.more_captures(3):
        marked_mode = _compiled(subject, mode=_WITHOUT_GRAPHS.get(mode, mode))
    operators: list[Marked] = []
    torch._dynamo.register_backend(marks.in_graphs(operators), name=_BACKEND)
    with stages("eager"), dynamo.more_captures(3):
        marked_eager = _compiled(subject, backend=_BACKEND, mode="default", way="whole")
    if dynamo.captures() != 3 * graphs:
        raise failures.Unsupported(
            "Dynamo does not capture the same graphs again: a call captures more than the one "
            "before, or the marks change what is captured"
        )
    called = {each.called for step in operators for each in step.operators}
    if inlined := sorted(called & _INLINED):
        raise failures.Unsupported(
            f"{inlined[0]} is one operator in eager's graph, and compiled code has the operators "
            "in it: the two do not compare"
        )
    return {"eager": marked_eager, "mode": marked_mode}, writer, operators


def _compiled(subject: Subject, **settings: Any) -> Call:
    """A call of the module compiled with these settings of the cell; it is compiled now."""
    cell = subject.cell
    subject.cell = msgspec.structs.replace(cell, **settings)
    call, _ = subject.compile()
    # A thread of autograd's own does not see the settings of this one (since 2.12), and would take
    # the backward pass from a cache, without marks.
    with torch.autograd.set_multithreading_enabled(False):
        call()
    subject.cell = cell
    return call


def _turns(calls: Mapping[str, Call], synchronize: Callable[[], None]) -> dict[str, _Calls]:
    """Make the calls in turns."""
    made = {name: _Calls([], []) for name in calls}
    heap.touch()
    with without_collections():
        begun = time.perf_counter()
        turns = 0
        while turns < FEWEST_TURNS or time.perf_counter() - begun < TURNS_S:
            for name, call in calls.items():
                _turn(call, synchronize, marks.stamps, made[name])
            turns += 1
    return made


def _turn(
    call: Call, synchronize: Callable[[], None], stamps: list[tuple[int, int]], made: _Calls
) -> None:
    call()
    stamps.clear()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    deadline = time.perf_counter() + TURN_S
    count = 0
    while count < FEWEST_CALLS or (count < MOST_CALLS and time.perf_counter() < deadline):
        made.samples.append(_sample(call, synchronize, stamps))
        count += 1
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    made.faults.append(faults / count)


def _sample(
    call: Call, synchronize: Callable[[], None], stamps: list[tuple[int, int]]
) -> tuple[int, list[tuple[int, int]], int]:
    """One call. One that puts its inputs back does so outside the clock."""
    inner = call.inner if isinstance(call, Restoring) else call
    stamps.clear()
    synchronize()
    begun = time.perf_counter_ns()
    inner()
    synchronize()
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


def _call_s(made: _Calls) -> float:
    return fmean((ended - begun) / 1e9 for begun, _, ended in _middle(made.samples))


def _of_both_on_host(
    made: Mapping[str, _Calls],
    steps: Mapping[str, Sequence[Marked]],
    eager_s: float,
    guards_s: float | None,
) -> dict[str, _Parts]:
    """The parts of both calls. The guards are checked before the generated code is entered."""
    mark_s = marks.cost_s()
    parts = {side: _on_host(made[f"marked {side}"], len(steps[side]), mark_s) for side in steps}
    rest_s = parts["mode"].rest_s
    if guards_s is not None:  # else it is a part of the entry
        rest_s |= {"guards": guards_s, "entry": rest_s["entry"] - guards_s}
    python_s = eager_s - sum(parts["eager"].seconds)
    parts["eager"] = parts["eager"]._replace(rest_s={"python": python_s})
    return parts


def _on_host(marked: _Calls, steps: int, mark_s: float) -> _Parts:
    """The parts of a call by the clock of the host, without what the marks take."""
    seconds = [0.0] * steps
    rest: dict[Place, float] = dict.fromkeys(("entry", "buffers", "python", "exit"), 0.0)
    middle = _middle(marked.samples)
    for begun, stamps, ended in middle:
        last, at_ns = None, begun
        for number, read_ns in stamps:
            taken = (read_ns - at_ns) / 1e9 - mark_s
            if number == marks.BEGIN:
                rest["entry" if last is None else "python"] += taken
            elif number % 2:
                seconds[number // 2] += taken
            else:
                rest["buffers"] += taken
            last, at_ns = number, read_ns
        rest["exit"] += (ended - at_ns) / 1e9
    calls = len(middle)
    read = sum(len(stamps) for _, stamps, _ in middle)
    return _Parts(
        [each / calls for each in seconds],
        {name: each / calls for name, each in rest.items()},
        mark_s * read / calls,
    )


def _on_device(call: Call, steps: int, call_s: float, synchronize: Callable[[], None]) -> _Parts:
    """The parts of a call that takes ``call_s``, by what the device does for each of them.

    In a call with CUDA graphs the device runs the same kernels as in the one without.
    """
    with marks.ranges():
        call()
        busy_s, within = profiler.device_s(call, synchronize)
    seconds = [0.0] * steps
    for name, found_s in within.items():
        if (step := marks.step_of(name)) is not None:
            seconds[step] += found_s
    return _Parts(seconds, {"python": busy_s - sum(seconds), "idle": call_s - busy_s}, 0.0)


def _split(
    made: _Calls, call_s: float, steps: Sequence[Marked], parts: _Parts, place: Mapping[Any, int]
) -> Split:
    return Split(
        call_s=rounded(call_s),
        # Of a turn in the middle: the heap may grow in the first one, and is settled then.
        faults=rounded(median_low(made.faults)),
        steps=[_step(*each, place) for each in zip(steps, parts.seconds, strict=True)],
        rest_s={name: rounded(each) for name, each in parts.rest_s.items()},
        marks_s=rounded(parts.marks_s),
    )


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

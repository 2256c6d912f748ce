"""How calls are timed: one by one in warm-up, then in turns; and their memory over many calls."""

from __future__ import annotations

import contextlib
import gc
import math
import time
from collections.abc import Iterator
from statistics import fmean
from typing import TYPE_CHECKING

from ..analysis import statistics
from ..measurement import Growth
from ..request import Plan
from .device import Device
from .messages import Timed, Turn
from .progress import rounded
from .subject import Call, Subject
from .values import Restoring, Used, used

if TYPE_CHECKING:
    from .inspect.dynamo import Captures

# Calls for the peak memory: the second one meets a warm allocator. If the first takes longer than
# the limit, it is the only one: the warm-up has run before.
MEMORY_CALLS = 3
MEMORY_LIMIT_S = 3.0
# Single calls of a turn take this share of the time of those that follow one another.
SINGLE_SHARE = 0.25
# So many times as long as its calls a turn may take with all that is not timed.
MOST_OUTSIDE = 20.0
# Looks at the memory over many calls.
LOOKS = 50


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """A context without garbage collections, as in timeit: one would count against the call in
    which it starts.
    """
    gc.collect()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.enable()


def timed(call: Call, on: Device, count: int = 1) -> float:
    """Seconds a call, over ``count`` calls. The device is idle at both readings of the clock."""
    if isinstance(call, Restoring):
        return call.timed(on, count)
    on.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        call()
    on.synchronize()
    return (time.perf_counter() - start) / count


def warm_up(call: Call, on: Device, plan: Plan) -> tuple[list[float], bool]:
    """Call until steady or until the plan's limit. Returns the seconds of each call, and whether
    the calls became steady.
    """
    calls_s: list[float] = []
    deadline = time.perf_counter() + plan.warm_up_limit_s
    while True:
        calls_s.append(timed(call, on))
        if statistics.is_steady(calls_s):
            return calls_s, True
        if time.perf_counter() > deadline:
            return calls_s, False


def peak_memory_bytes(call: Call, on: Device) -> tuple[int | None, int | None]:
    """The peak memory of a few steady calls: in all, and without the allocator's reserve.

    None where only the peak since the process began can be known.
    """
    gc.collect()
    if not on.reset_peak_memory():
        return None, None
    deadline = time.perf_counter() + MEMORY_LIMIT_S
    for _ in range(MEMORY_CALLS):
        call()
        on.synchronize()
        if time.perf_counter() > deadline:
            break
    return on.peak_memory_bytes(), on.peak_allocated_bytes()


def turn(call: Call, on: Device, asked: Turn, single: bool = False) -> Timed:
    """Call, and time the calls that count. ``single``: then time calls that are each waited for.

    The first calls of a turn do not count: they run on caches and branch predictors that the other
    side has filled, which does not happen to a user who runs only one of them. Without settling,
    the compiled calls of a convolutional network were 10 % slower.
    """
    # What is followed by a copy of its inputs is timed alone in any case.
    count = 1 if isinstance(call, Restoring) else asked.count
    _samples(call, on, count, asked.settle_s)
    before = _used(call)
    samples = _samples(call, on, count, asked.turn_s)
    after = _used(call)
    kernel_s = after.kernel_s - before.kernel_s
    if single and count > 1:
        singles = _samples(call, on, 1, SINGLE_SHARE * asked.turn_s)
    else:
        singles = samples  # each of them is one call
    return Timed(
        call_s=rounded(fmean(samples)),
        calls=count * len(samples),
        faults=after.faults - before.faults,
        kernel_s=kernel_s,
        cpu_s=kernel_s + after.user_s - before.user_s,
        single_s=rounded(fmean(singles)) if single else None,
    )


def _used(call: Call) -> Used:
    """What calls have used so far. A copy of their inputs is the suite's, and does not count."""
    return call.used if isinstance(call, Restoring) else used()


def _samples(call: Call, on: Device, count: int, seconds: float) -> list[float]:
    """Seconds a call in each sample, until the samples have taken that many seconds, or with what
    is outside the clock many times as many: a call may be short and a copy of its inputs long.
    """
    samples: list[float] = []
    deadline = time.perf_counter() + MOST_OUTSIDE * seconds
    while count * math.fsum(samples) < seconds:
        samples.append(timed(call, on, count))
        if time.perf_counter() > deadline:
            break
    return samples


def watch_memory(
    subject: Subject, call: Call, on: Device, plan: Plan, captures: Captures | None
) -> Growth:
    """Make the plan's calls, as far as its time allows, and look at the memory in between.

    Samples are evenly spaced in calls or in time, whichever limit is reached first: short calls end
    with their number, and long ones with the time. ``captures``: None for eager. A garbage
    collection runs when Python wants it, as in a user's process.
    """
    wanted = math.ceil(plan.calls / subject.module_calls)
    step, step_s = math.ceil(wanted / LOOKS), plan.calls_limit_s / LOOKS
    start = time.perf_counter()
    seen = [(0, _resident_bytes(), on.held_bytes())]
    made, spent_s = 0, 0.0
    while made < wanted and spent_s < plan.calls_limit_s:
        place, until_s = min(wanted, made + step), spent_s + step_s
        while made < place and spent_s < until_s:
            call()
            made += 1
            spent_s = time.perf_counter() - start
        on.synchronize()
        seen.append((made * subject.module_calls, _resident_bytes(), on.held_bytes()))
    held = [each for _, _, each in seen if each is not None]
    return Growth(
        calls=[calls for calls, _, _ in seen],
        resident_bytes=[resident for _, resident, _ in seen],
        allocated_bytes=[allocated for allocated, _ in held],
        reserved_bytes=[reserved for _, reserved in held],
        shapes=subject.shapes,
        **(captures.fields() if captures else {}),
    )


def _resident_bytes() -> int:
    import psutil

    return int(psutil.Process().memory_info().rss)

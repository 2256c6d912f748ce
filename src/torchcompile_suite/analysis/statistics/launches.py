"""The figures of one launch: times, ratio, compile cost, and when its calls became steady.

The functions that take a launch also take a condensed one (`CondensedLaunch`).

All times are seconds. ``pairs_s`` holds ``(eager, mode)`` couples; ``warm_up_s`` holds the calls in
the mode from the first one on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median

from ...cell import Launch
from .condensed import CondensedLaunch, Figures

STEADY_WINDOW = 5
STEADY_TOLERANCE = 0.03
# The number of calls that a naive benchmark may average.
MIXED_CALLS = 10


def is_steady(calls_s: Sequence[float]) -> bool:
    """Whether the last calls no longer get faster or slower.

    Compares the medians of the last two windows of `STEADY_WINDOW` calls each. A fixed number of
    warm-up calls is too many for some models and too few for others: CUDA graphs are recorded on
    later calls, and clocks and allocators need time to settle.
    """
    if len(calls_s) < 2 * STEADY_WINDOW:
        return False
    before = median(calls_s[-2 * STEADY_WINDOW : -STEADY_WINDOW])
    after = median(calls_s[-STEADY_WINDOW:])
    return abs(after - before) <= STEADY_TOLERANCE * before


def steady_call(calls_s: Sequence[float]) -> float:
    """Seconds of a steady call: the median of the last two windows of calls that have settled."""
    return median(calls_s[-2 * STEADY_WINDOW :])


def launch_ratio(pairs_s: Sequence[tuple[float, float]]) -> float:
    """The mode/eager time ratio of one launch: the median over pairs, on the log scale.

    The two times of a pair are measured one after the other, so a drift of the machine's speed
    cancels within the pair.
    """
    return math.exp(median(math.log(mode / eager) for eager, mode in pairs_s))


def launch_latency(pairs_s: Sequence[tuple[float, float]]) -> float:
    """Seconds a call in the mode, for one launch: the median over its pairs."""
    return median(mode for _, mode in pairs_s)


def launch_eager_latency(pairs_s: Sequence[tuple[float, float]]) -> float:
    """Seconds a call in eager, for one launch: the median over its pairs."""
    return median(eager for eager, _ in pairs_s)


def compile_cost(warm_up_s: Sequence[float], compiler_import_s: float = 0.0) -> float:
    """Seconds lost to compiling: the compiler's import, and the calls that compiled something.

    The last two windows of ``warm_up_s`` give the time of a steady call. A call of more than twice
    that time has compiled, recompiled or recorded a CUDA graph. This sum is what the user has to
    earn back. The first call's time alone would miss the cost of later calls; the sum of all calls
    would include the drift of a busy machine.
    """
    steady_s = steady_call(warm_up_s)
    calls_s = math.fsum(call_s - steady_s for call_s in warm_up_s if call_s > 2 * steady_s)
    return compiler_import_s + calls_s


def compile_costs(launches: Iterable[Launch], kind: str) -> list[float]:
    """The `compile_cost` in seconds of each launch of that kind, "cold" or "warm".

    Launches of whole processes have none: their pairs contain it.
    """
    return [
        compile_cost_of(launch)
        for launch in launches
        if launch.kind == kind and launch.start is None
    ]


def figures(launch: Launch) -> Figures:
    """All figures of a launch that was timed."""
    return Figures(
        ratio=ratio_of(launch),
        latency_s=latency_of(launch),
        eager_latency_s=eager_latency_of(launch),
        compile_cost_s=compile_cost_of(launch),
        calls_until_steady=calls_until_steady_of(launch),
        seconds_until_steady=seconds_until_steady_of(launch),
        first_call_s=first_call_of(launch),
        warm_up_mixed_ratio=warm_up_mixed_ratio(launch),
        single_call_s=single_call_of(launch),
    )


def ratio_of(launch: Launch) -> float:
    """The `launch_ratio` of a launch."""
    known = _known(launch)
    return known.ratio if known else launch_ratio(launch.pairs_s)


def latency_of(launch: Launch) -> float:
    """The `launch_latency` of a launch, in seconds."""
    known = _known(launch)
    return known.latency_s if known else launch_latency(launch.pairs_s)


def eager_latency_of(launch: Launch) -> float:
    """The `launch_eager_latency` of a launch, in seconds."""
    known = _known(launch)
    return known.eager_latency_s if known else launch_eager_latency(launch.pairs_s)


def single_call_of(launch: Launch) -> tuple[float, float] | None:
    """Seconds of a call that is waited for, in eager and in the mode: the medians over pairs.

    None where no such calls were timed: on a CPU each call is waited for.
    """
    known = _known(launch)
    if known or not launch.latency_s:
        return known.single_call_s if known else None
    return launch_eager_latency(launch.latency_s), launch_latency(launch.latency_s)


def compile_cost_of(launch: Launch) -> float:
    """The `compile_cost` of a launch, in seconds."""
    known = _known(launch)
    if known:
        return known.compile_cost_s
    return compile_cost(launch.warm_up_s, launch.compiler_import_s)


def calls_until_steady_of(launch: Launch) -> int:
    """The `calls_until_steady` of a launch."""
    known = _known(launch)
    return known.calls_until_steady if known else calls_until_steady(launch.warm_up_s)


def seconds_until_steady_of(launch: Launch) -> float:
    """The `seconds_until_steady` of a launch."""
    known = _known(launch)
    return known.seconds_until_steady if known else seconds_until_steady(launch.warm_up_s)


def first_call_of(launch: Launch) -> float:
    """Seconds of the first call in the mode."""
    known = _known(launch)
    return known.first_call_s if known else launch.warm_up_s[0]


def _known(launch: Launch) -> Figures | None:
    """The figures of a condensed launch."""
    return launch.figures if isinstance(launch, CondensedLaunch) else None


def calls_to_break_even(compile_cost_s: float, eager_s: float, ratio: float) -> float:
    """The number of calls after which compiling has paid for itself; infinite if it never does.

    ``ratio`` is mode over eager, from pairs. The difference of two latencies that were measured
    apart would mostly be the machine's drift.
    """
    gain_s = eager_s * (1 - ratio)
    return math.ceil(compile_cost_s / gain_s) if gain_s > 0 else math.inf


def calls_until_steady(warm_up_s: Sequence[float]) -> int:
    """The number of calls before the first window that is as fast as the steady ones.

    Uses the median of each window, so one slow call among steady ones does not count. A first call
    that compiles counts as one call.
    """
    limit = steady_call(warm_up_s) * (1 + STEADY_TOLERANCE)
    for start in range(len(warm_up_s)):
        window = warm_up_s[start : start + STEADY_WINDOW]
        if median(window) <= limit and window[0] <= 2 * limit:
            return start
    return len(warm_up_s)


def seconds_until_steady(warm_up_s: Sequence[float]) -> float:
    """The total seconds of the calls that `calls_until_steady` counts."""
    return math.fsum(warm_up_s[: calls_until_steady(warm_up_s)])


def warm_up_mixed_ratio(launch: Launch) -> float:
    """The mode/eager ratio of a benchmark that averages the first calls, compiling included."""
    known = _known(launch)
    if known:
        return known.warm_up_mixed_ratio
    calls_s = launch.warm_up_s[:MIXED_CALLS]
    return math.fsum(calls_s) / len(calls_s) / launch_eager_latency(launch.pairs_s)

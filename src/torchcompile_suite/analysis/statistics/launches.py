"""The figures of all launches of a measurement, with their intervals, and the stopping rule.

All times are seconds. The functions also take condensed launches (`CondensedLaunch`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ...measurement import Launch
from .disturbances import FIRST_LOOK, at_best_place, counted, undisturbed
from .intervals import T_LEVEL, T_LEVEL_LATER, Interval, geometric_interval, half_width
from .one_launch import compile_cost_of, eager_latency_of, latency_of, ratio_of, single_call_of

# Measured again, cold compiles of one cell differ by 7 % and warm ones by 10 %. A measurement has
# one cold launch, so its compile time has no interval: a smaller difference is not claimed.
COMPILE_MARGIN = 0.10
# The same as the half-width of the log of a cold compile's seconds.
COLD_SPREAD = math.log1p(COMPILE_MARGIN)


def compile_costs(launches: Iterable[Launch], kind: str, every: bool = False) -> list[float]:
    """The `compile_cost` in seconds of each undisturbed launch of that kind, "cold" or "warm".

    ``every``: of disturbed launches, too. Launches of whole processes have none: their pairs
    contain it.
    """
    return [
        compile_cost_of(launch)
        for launch in (launches if every else undisturbed(launches))
        if launch.kind == kind and launch.start is None
    ]


def calls_to_break_even(compile_cost_s: float, eager_s: float, ratio: float) -> float:
    """The number of calls after which compiling has paid for itself; infinite if it never does.

    ``ratio`` is mode over eager, from pairs. The difference of two latencies that were measured
    apart would mostly be the machine's drift.
    """
    gain_s = eager_s * (1 - ratio)
    return math.ceil(compile_cost_s / gain_s) if gain_s > 0 else math.inf


def sequential_interval(values: Sequence[float]) -> Interval:
    """`geometric_interval` for launches that went on until the interval was narrow enough.

    It covers the true value in about 95 % of measurements, although the data decided when to stop.
    """
    return geometric_interval(values, T_LEVEL if len(values) <= FIRST_LOOK else T_LEVEL_LATER)


def precise(launches: Sequence[Launch], target: float) -> bool:
    """Whether the interval of the ratio reaches at most ``target`` (relative) to either side.

    This is the stopping rule. It is checked after each launch, and is never true before
    `FIRST_LOOK` launches count, nor before as many were near, if some were and others were not.
    """
    return at_best_place(launches) >= FIRST_LOOK and half_width(measured_ratio(launches)) <= target


def measured_ratio(launches: Sequence[Launch], sequential: bool = True) -> Interval:
    """The mode/eager time ratio of a measurement with its 95 % interval.

    ``sequential``: the launches went on until the ratio was precise enough.
    """
    ratios = [ratio_of(launch) for launch in counted(launches)]
    return sequential_interval(ratios) if sequential else geometric_interval(ratios)


def measured_eager(launches: Sequence[Launch]) -> Interval:
    """Seconds a call in eager, with the 95 % interval."""
    return geometric_interval([eager_latency_of(launch) for launch in counted(launches)])


def measured_single_calls(launches: Sequence[Launch]) -> tuple[Interval, Interval] | None:
    """Seconds of a call that is waited for, in eager and in the mode, with 95 % intervals.

    None where a launch has not timed any.
    """
    single = [single_call_of(launch) for launch in counted(launches)]
    known = [both for both in single if both is not None and min(both) > 0]
    if not known or len(known) != len(single):
        return None
    eager_s, mode_s = zip(*known, strict=True)
    return geometric_interval(eager_s), geometric_interval(mode_s)


def measured_latency(launches: Sequence[Launch]) -> Interval:
    """Seconds a call in the mode, with the 95 % interval."""
    return geometric_interval([latency_of(launch) for launch in counted(launches)])

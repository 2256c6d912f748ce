"""The figures of a measurement with their intervals, and the rule that ends it."""

from __future__ import annotations

from collections.abc import Sequence

from ...cell import Launch
from .disturbance import counted
from .intervals import T_LEVEL, T_LEVEL_LATER, Interval, geometric_interval, half_width
from .launches import eager_latency_of, latency_of, ratio_of, single_call_of

# The stopping rule looks first after this many launches. With fewer, t gives no useful interval.
FIRST_LOOK = 3


def sequential_interval(values: Sequence[float]) -> Interval:
    """`geometric_interval` for launches that went on until the interval was narrow enough.

    It covers the true value in about 95 % of measurements, although the data decided when to stop.
    """
    return geometric_interval(values, T_LEVEL if len(values) <= FIRST_LOOK else T_LEVEL_LATER)


def precise(launches: Sequence[Launch], target: float) -> bool:
    """Whether the interval of the ratio reaches at most ``target`` (relative) to either side.

    This is the stopping rule. It is checked after each launch, and is never true before
    `FIRST_LOOK` launches count.
    """
    return len(counted(launches)) >= FIRST_LOOK and half_width(measured_ratio(launches)) <= target


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

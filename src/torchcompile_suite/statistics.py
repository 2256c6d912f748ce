"""Pure statistics over numbers somebody else measured. NumPy and SciPy only.

The unit is the launch, not the call: calls of one process share its memory layout, its code
addresses and its neighbours, so their spread says little about the next process. Within
mobilenetv2_100 at batch 4 one process puts the ratio within 1-2 %; between processes it moved by
4.5 %. See Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

from .cell import Launch


class Interval(NamedTuple):
    """An estimate with its confidence interval; ``low`` and ``high`` are NaN when unknown."""

    value: float
    low: float
    high: float


STEADY_WINDOW = 5
STEADY_TOLERANCE = 0.03


def is_steady(calls_s: Sequence[float]) -> bool:
    """Whether the last calls no longer get faster or slower.

    Compares the medians of the last two windows of `STEADY_WINDOW` calls each. A fixed count of
    warm-up calls is either wasted on a model that settles at once or too short for one that does
    not (CUDA graphs record on later calls, clocks and allocators settle late).
    """
    if len(calls_s) < 2 * STEADY_WINDOW:
        return False
    before = median(calls_s[-2 * STEADY_WINDOW : -STEADY_WINDOW])
    after = median(calls_s[-STEADY_WINDOW:])
    return abs(after - before) <= STEADY_TOLERANCE * before


def launch_ratio(pairs_s: Sequence[tuple[float, float]]) -> float:
    """One launch's mode/eager time ratio: the median over pairs, taken on the log scale.

    Pairs are neighbours in time, so a drift of the machine's speed cancels within each.
    """
    return math.exp(median(math.log(mode / eager) for eager, mode in pairs_s))


def launch_latency(pairs_s: Sequence[tuple[float, float]]) -> float:
    """One launch's seconds a call in the mode: the median over its samples."""
    return median(mode for _, mode in pairs_s)


def launch_eager_latency(pairs_s: Sequence[tuple[float, float]]) -> float:
    """One launch's seconds a call in eager: the median over its samples."""
    return median(eager for eager, _ in pairs_s)


def compile_cost(warm_up_s: Sequence[float]) -> float:
    """Seconds that the calls which compiled something took beyond steady ones.

    ``warm_up_s`` are all calls from the first on; its last two windows say what a steady call
    takes, and a call of more than twice that has compiled, recompiled or recorded a CUDA graph.
    This is the price a user pays and has to earn back: the first call's time alone would miss
    what later ones cost, and summing every call would add up the drift of a busy machine.
    """
    steady_s = median(warm_up_s[-2 * STEADY_WINDOW :])
    return math.fsum(call_s - steady_s for call_s in warm_up_s if call_s > 2 * steady_s)


def compile_costs(launches: Iterable[Launch], kind: str) -> list[float]:
    """The `compile_cost` of each launch of that kind, cold or warm."""
    return [compile_cost(launch.warm_up_s) for launch in launches if launch.kind == kind]


def geometric_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Geometric mean over launches with Student's t interval of the logs.

    ``values`` are positive, one a launch. Times and ratios vary by factors, so their logs are the
    closer to normal; with the three launches of a default measurement nothing less than t's
    heavy tails is honest. With fewer than two values the interval is unknown (NaN).
    """
    if not values:
        return Interval(math.nan, math.nan, math.nan)
    logs = [math.log(value) for value in values]
    n = len(logs)
    mean = math.fsum(logs) / n
    if n < 2:
        return Interval(math.exp(mean), math.nan, math.nan)
    # Imported here: a look-up in a benchmark process must not pay for SciPy.
    from scipy.stats import t

    variance = math.fsum((log - mean) ** 2 for log in logs) / (n - 1)
    half = float(t.ppf((1 + confidence) / 2, n - 1)) * math.sqrt(variance / n)
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def calls_to_break_even(compile_cost_s: float, eager_s: float, ratio: float) -> float:
    """Calls after which compiling has paid for itself; infinite when it never does.

    ``ratio`` is mode over eager, from pairs: the difference of two latencies measured apart would
    mostly be the machine's drift.
    """
    gain_s = eager_s * (1 - ratio)
    return math.ceil(compile_cost_s / gain_s) if gain_s > 0 else math.inf

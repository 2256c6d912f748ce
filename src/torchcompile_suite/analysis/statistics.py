"""Pure statistics over numbers somebody else measured. NumPy and SciPy only.

The unit is the launch, not the call: calls of one process share its memory layout, its code
addresses and its neighbours, so their spread says little about the next process. Within
mobilenetv2_100 at batch 4 one process puts the ratio within 1-2 %; between processes it moved by
4.5 %. See Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from statistics import median
from typing import NamedTuple

from ..cell import Launch


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


def steady_call(calls_s: Sequence[float]) -> float:
    """Seconds of a steady call, of calls that have settled: the median of the last two windows."""
    return median(calls_s[-2 * STEADY_WINDOW :])


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


def compile_cost(warm_up_s: Sequence[float], compiler_import_s: float = 0.0) -> float:
    """Seconds lost to compiling: importing the compiler, and the calls that compiled something.

    ``warm_up_s`` are all calls from the first on; its last two windows say what a steady call
    takes, and a call of more than twice that has compiled, recompiled or recorded a CUDA graph.
    This is the price a user pays and has to earn back: the first call's time alone would miss
    what later ones cost, and summing every call would add up the drift of a busy machine.
    """
    steady_s = steady_call(warm_up_s)
    calls_s = math.fsum(call_s - steady_s for call_s in warm_up_s if call_s > 2 * steady_s)
    return compiler_import_s + calls_s


def calls_until_steady(warm_up_s: Sequence[float]) -> int:
    """Calls before the first window that is no slower than the steady ones.

    ``warm_up_s`` are all calls from the first on. A window's median, so that one slow call among
    steady ones counts for nothing; a first call that compiles counts as one.
    """
    limit = steady_call(warm_up_s) * (1 + STEADY_TOLERANCE)
    for start in range(len(warm_up_s)):
        window = warm_up_s[start : start + STEADY_WINDOW]
        if median(window) <= limit and window[0] <= 2 * limit:
            return start
    return len(warm_up_s)


def seconds_until_steady(warm_up_s: Sequence[float]) -> float:
    """What these calls took in all."""
    return math.fsum(warm_up_s[: calls_until_steady(warm_up_s)])


# As many as a naive benchmark may average.
MIXED_CALLS = 10


def warm_up_mixed_ratio(launch: Launch) -> float:
    """The mode/eager ratio of somebody who averages the first calls, compiling included."""
    calls_s = launch.warm_up_s[:MIXED_CALLS]
    return math.fsum(calls_s) / len(calls_s) / launch_eager_latency(launch.pairs_s)


def counted(launches: Iterable[Launch]) -> list[Launch]:
    """The launches whose pairs count: all but those set aside as disturbed."""
    return [launch for launch in launches if not launch.set_aside]


# Shares of the processors' time, while pairs were timed, beyond which a launch is made again.
MOST_STEAL = 0.05
MOST_OTHERS = 0.10
# Of the quietest yardstick. In quiet hours it moves by some per cent, on a shared core by 40.
MOST_SLOWDOWN = 1.2


def disturbed(launch: Launch, quiet_s: float | None = None) -> str:
    """Why the launch should be made again, or the empty string.

    ``quiet_s`` is what the yardstick takes on the machine when it is quiet, None if nobody knows.
    Only what others took counts, never the launch's own times: setting a launch aside because its
    result looks odd would make intervals too narrow.
    """
    seen = launch.interference
    if seen is not None and seen.steal_share > MOST_STEAL:
        return f"disturbed: other guests of the host took {seen.steal_share:.0%} of the processors"
    if seen is not None and seen.others_share > MOST_OTHERS:
        return f"disturbed: other processes took {seen.others_share:.0%} of the processors"
    slower = slowdown([launch], quiet_s)
    if slower > MOST_SLOWDOWN:
        return f"disturbed: {neighbour(slower)}"
    return ""


def neighbour(slower: float) -> str:
    """In words, that the processors were so many times as slow as in quiet hours."""
    return f"a neighbour made the processors {slower:.2f} times as slow"


def yardstick(launches: Iterable[Launch]) -> float | None:
    """Seconds that the yardstick took in the launches that count, their median; None if unknown."""
    known = [each.yardstick_s for each in counted(launches) if each.yardstick_s]
    return median(known) if known else None


def slowdown(launches: Iterable[Launch], quiet_s: float | None) -> float:
    """How many times as slow as in quiet hours the processors were; 1 if unknown."""
    taken_s = yardstick(launches)
    return taken_s / quiet_s if taken_s and quiet_s else 1.0


def quietest(launches: Iterable[Launch], *known: float | None) -> float | None:
    """The least seconds that the yardstick took, in any launch or as far as ``known``."""
    found = [*(each.yardstick_s for each in launches), *known]
    return min((each for each in found if each), default=None)


def compile_costs(launches: Iterable[Launch], kind: str) -> list[float]:
    """The `compile_cost` of each launch of that kind, cold or warm."""
    return [
        compile_cost(launch.warm_up_s, launch.compiler_import_s)
        for launch in launches
        if launch.kind == kind
    ]


# What an interval promises: to hold the truth in this share of measurements.
CONFIDENCE = 0.95
# What Student's t has to be asked for to keep it. Real launches are not normal: some have two
# speeds, some are slow now and then, and three of them may well agree with each other and not with
# the rest. Asked for 95 %, t keeps 91-95 % on real launches; asked for this, 94-97 %. Chosen by
# evidence/coverage.py, which also shows what other methods keep.
ASKED = 0.97
# The same for the looks after the first. Stopping at the first interval that is narrow enough
# favours those that are narrow by luck (Chow and Robbins, Annals of Mathematical Statistics 36,
# 1965; Armitage, McPherson and Rowe, JRSS A 132, 1969).
ASKED_LATER = 0.98
# Where the first look is taken: the fewest launches from which t gives an interval of any use.
FIRST_LOOK = 3


def geometric_interval(values: Sequence[float], asked: float = ASKED) -> Interval:
    """Geometric mean over launches with its 95 % interval.

    ``values`` are positive, one a launch. Times and ratios vary by factors, so their logs are the
    closer to normal; with the three launches of a default measurement nothing less than Student's
    heavy tails is honest. ``asked`` is the confidence that t is asked for: more than 95 %, because
    launches are not normal. With fewer than two values the interval is unknown (NaN).
    """
    if not values:
        return Interval(math.nan, math.nan, math.nan)
    n = len(values)
    mean = log_mean(values)
    if n < 2:
        return Interval(math.exp(mean), math.nan, math.nan)
    half = t_quantile((1 + asked) / 2, n - 1) * math.sqrt(log_variance(values) / n)
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def sequential_interval(values: Sequence[float]) -> Interval:
    """`geometric_interval` for launches that went on until it was narrow enough.

    Holds the truth in about 95 % of measurements although the data decided when to stop.
    """
    return geometric_interval(values, ASKED if len(values) <= FIRST_LOOK else ASKED_LATER)


def precise(launches: Sequence[Launch], target: float) -> bool:
    """Whether the ratio's interval reaches at most ``target`` (relative) to either side.

    The stopping rule, asked after each launch: never before `FIRST_LOOK` of them.
    """
    return len(counted(launches)) >= FIRST_LOOK and half_width(measured_ratio(launches)) <= target


def measured_ratio(launches: Sequence[Launch], sequential: bool = True) -> Interval:
    """The mode/eager time ratio of a measurement with its 95 % interval.

    ``sequential`` says that the launches went on until it was precise enough.
    """
    ratios = [launch_ratio(launch.pairs_s) for launch in counted(launches)]
    return sequential_interval(ratios) if sequential else geometric_interval(ratios)


def measured_eager(launches: Sequence[Launch]) -> Interval:
    """Eager's seconds a call in a measurement, with the 95 % interval."""
    return geometric_interval(
        [launch_eager_latency(launch.pairs_s) for launch in counted(launches)]
    )


def half_width(interval: Interval) -> float:
    """How far the interval reaches to either side of its value, relative to it; NaN if unknown.

    Intervals are symmetric on the log scale, so 0.03 means from 1/1.03 to 1.03 times the value.
    """
    return math.sqrt(interval.high / interval.low) - 1


def inverse(ratio: Interval) -> Interval:
    """Mode over eager as a speedup."""
    return Interval(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)


def quotient(one: Interval, other: Interval, *, more: float = 0.0) -> Interval:
    """One over another, measured independently: half-widths of the logs add as squares, ``more``
    being that of what neither interval knows.
    """
    return _around(one.value / other.value, math.hypot(_reach(one), _reach(other), more))


def geometric_mean(intervals: Sequence[Interval]) -> Interval:
    """The geometric mean of independent figures."""
    value = math.exp(math.fsum(math.log(each.value) for each in intervals) / len(intervals))
    reach = math.sqrt(math.fsum(_reach(each) ** 2 for each in intervals)) / len(intervals)
    return _around(value, reach)


def widened(interval: Interval, more: float) -> Interval:
    """With the half-width (of the log) of what the interval does not know, added as squares."""
    return _around(interval.value, math.hypot(_reach(interval), more))


def _around(value: float, reach: float) -> Interval:
    return Interval(value, value * math.exp(-reach), value * math.exp(reach))


def _reach(interval: Interval) -> float:
    return math.log(interval.high / interval.low) / 2


def log_mean(values: Sequence[float]) -> float:
    """Mean of the values' logs, at least one: the log of their geometric mean."""
    return math.fsum(map(math.log, values)) / len(values)


def log_variance(values: Sequence[float]) -> float:
    """Variance of the values' logs over launches (n - 1 in the denominator), at least two."""
    mean = log_mean(values)
    return math.fsum((math.log(value) - mean) ** 2 for value in values) / (len(values) - 1)


@cache
def t_quantile(probability: float, degrees: float) -> float:
    """Student's t: what it stays below with that probability."""
    # Imported here: a look-up in a benchmark process must not pay for SciPy. This is what
    # scipy.stats.t.ppf calls, without the five seconds that importing all distributions takes.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


class Prior(NamedTuple):
    """What a machine's cells say together of the spread between launches.

    ``variance`` is that of one launch's log, ``degrees`` how many launches' worth of knowledge it
    is: infinite where all cells spread alike, small where they differ.
    """

    variance: float
    degrees: float


def prior_spread(variances: Sequence[float], degrees: Sequence[float]) -> Prior | None:
    """The common spread of many cells, from each one's own variance and its degrees of freedom.

    The moment estimator of Smyth, "Linear models and empirical Bayes methods", Statistical
    Applications in Genetics and Molecular Biology 3 (2004), section 6.2: a few launches a cell say
    little about that cell's spread, all cells of a machine together a lot. None when there are
    fewer than two usable variances.
    """
    import numpy as np
    from scipy.special import digamma, polygamma

    known = [(v, d) for v, d in zip(variances, degrees, strict=True) if d > 0 and v > 0]
    if len(known) < 2:
        return None
    v, d = np.array(known, dtype=float).T
    e = np.log(v) - digamma(d / 2) + np.log(d / 2)
    excess = float(np.var(e, ddof=1) - np.mean(polygamma(1, d / 2)))
    if excess <= 0:
        return Prior(float(np.exp(np.mean(e))), math.inf)
    half = _inverse_trigamma(excess)
    return Prior(
        float(np.exp(np.mean(e) + digamma(half) - np.log(half))),
        2 * half,
    )


def _inverse_trigamma(value: float) -> float:
    """The y with trigamma(y) = value, value > 0."""
    from scipy.optimize import brentq
    from scipy.special import polygamma

    # trigamma falls from infinity to 0 as 1/y at large y and 1/y**2 at small y.
    return float(
        brentq(
            lambda y: polygamma(1, y) - value,
            0.5 * min(value**-0.5, 1 / value),
            2 + 2 * max(value**-0.5, 1 / value),
        )
    )


def moderated(variance: float, degrees: float, prior: Prior | None) -> tuple[float, float]:
    """One cell's variance drawn towards its machine's, and the degrees of freedom of the result.

    Smyth's posterior: the weighted mean of both. ``degrees`` may be 0 (a single launch), where the
    prior is all there is. Without a prior the cell's own variance stands. Returns (variance,
    degrees); the variance is NaN when nothing is known.
    """
    if prior is None:
        return (variance, degrees) if degrees > 0 else (math.nan, 0.0)
    if math.isinf(prior.degrees):
        return prior.variance, math.inf
    own = variance * degrees if degrees > 0 else 0.0
    total = prior.degrees + degrees
    return (prior.variance * prior.degrees + own) / total, total


def calls_to_break_even(compile_cost_s: float, eager_s: float, ratio: float) -> float:
    """Calls after which compiling has paid for itself; infinite when it never does.

    ``ratio`` is mode over eager, from pairs: the difference of two latencies measured apart would
    mostly be the machine's drift.
    """
    gain_s = eager_s * (1 - ratio)
    return math.ceil(compile_cost_s / gain_s) if gain_s > 0 else math.inf

"""Confidence intervals of times and ratios, arithmetic with them, and the spread behind them.

The spread of one cell is estimated with all cells of its machine (`prior_spread`).

The quantiles of Student's t are all that measuring needs of SciPy, which takes 115 MB with NumPy:
too much for the environment of a user's own model. So `t_quantile` does without. A test compares
the quantiles with SciPy's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from statistics import NormalDist
from typing import NamedTuple

# The share of measurements in which a 95 % interval must hold the true value.
CONFIDENCE = 0.95
# Nominal level of Student's t that gives 95 % coverage. Real launches are not normal: some have two
# speeds, some are slow now and then, and three of them may agree with each other and not with the
# rest. On real launches of cells with one speed, t covers 90-95 % at a nominal 95 %, and 94-98 % at
# these levels. evidence/coverage.py shows this, and the coverage of other methods.
T_LEVEL = 0.97
# The nominal level for looks after the first one. To stop at the first interval that is narrow
# enough favours intervals that are narrow by luck (Chow and Robbins, Annals of Mathematical
# Statistics 36, 1965; Armitage, McPherson and Rowe, JRSS A 132, 1969).
T_LEVEL_LATER = 0.98
# Of a figure or a bound: e to this power is 1e130. Nothing that was measured comes near it.
MOST_LOG = 300.0

_STEPS = 1000


class Interval(NamedTuple):
    """An estimate with its confidence interval; ``low`` and ``high`` are NaN when unknown.

    As text, ``f"{interval:.2f}"`` is "0.75 [0.70, 0.80]", or "0.75" where the bounds are unknown.
    The format applies to each number. Without a format, the interval is that of a ratio: two
    decimals, and for a bound up to four, until the text shows on which side of 1 the bound lies.
    """

    value: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there are bounds: one launch alone gives none."""
        return not math.isnan(self.low)

    def scaled(self, factor: float) -> Interval:
        """The interval in another unit: all three numbers times the factor."""
        return Interval(*(factor * number for number in self))

    def per(self, divisor: float) -> Interval:
        """The interval of a part: all three numbers over the divisor."""
        return Interval(*(number / divisor for number in self))

    def __format__(self, spec: str) -> str:
        """The text, each number in the format ``spec``."""
        value = formatted(self.value, spec or ".2f")
        if not self.known:
            return value
        low, high = (formatted(bound, spec) if spec else _beside_one(bound) for bound in self[1:])
        return f"{value} [{low}, {high}]"

    def __str__(self) -> str:
        """The text of a ratio."""
        return format(self)


def _beside_one(bound: float) -> str:
    """A ratio's bound; 0.996 and not 1.00, because "faster" depends on the side of 1."""
    texts = [f"{bound:.{digits}f}" for digits in (2, 3, 4)]
    return next((text for text in texts if float(text) != 1), texts[0])


def formatted(number: float, spec: str) -> str:
    """As ``format``, but ``.3g`` writes 1,234 and not 1.23e+03."""
    return format(number, ",.0f" if spec == ".3g" and abs(number) >= 999.5 else spec)


def geometric_interval(values: Sequence[float], level: float = T_LEVEL) -> Interval:
    """Geometric mean over launches with its 95 % interval.

    ``values`` are positive, one a launch. Times and ratios vary by factors, so their logs are
    closer to normal. A default measurement has three launches, so the interval uses Student's t.
    ``level`` is the nominal level of t: above 95 %, because launches are not normal. With fewer
    than two values the bounds are NaN; without any value the estimate is NaN too.
    """
    return Interval(*map(power, mean_interval([math.log(value) for value in values], level)))


def mean_interval(values: Sequence[float], level: float = T_LEVEL) -> Interval:
    """Mean over launches with its 95 % interval, of values that may be zero or negative.

    Otherwise as `geometric_interval`.
    """
    n = len(values)
    if not n:
        return Interval(math.nan, math.nan, math.nan)
    mean = math.fsum(values) / n
    if n < 2:
        return Interval(mean, math.nan, math.nan)
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    half = t_quantile((1 + level) / 2, n - 1) * math.sqrt(variance / n)
    return Interval(mean, mean - half, mean + half)


def half_width(interval: Interval) -> float:
    """How far the interval reaches to either side of its value, relative to it; NaN if unknown.

    Intervals are symmetric on the log scale, so 0.03 means from 1/1.03 to 1.03 times the value.
    """
    return math.sqrt(interval.high / interval.low) - 1


def inverse(ratio: Interval) -> Interval:
    """The speedup, from the time ratio (mode over eager)."""
    return Interval(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)


def quotient(one: Interval, other: Interval, *, more: float = 0.0) -> Interval:
    """One figure over another that was measured independently.

    The half-widths of the logs add as squares. ``more`` is a third half-width (of the log): that
    of a source of error that neither interval includes.
    """
    return _around(one.value / other.value, math.hypot(reach(one), reach(other), more))


def geometric_mean(intervals: Sequence[Interval]) -> Interval:
    """The geometric mean of independent figures, at least one."""
    value = power(math.fsum(math.log(interval.value) for interval in intervals) / len(intervals))
    total = math.sqrt(math.fsum(reach(interval) ** 2 for interval in intervals))
    return _around(value, total / len(intervals))


def having(intervals: Iterable[Interval]) -> list[Interval]:
    """Those whose bounds are known; all if none is. One launch gives none, and would hide those of
    a mean.
    """
    every = list(intervals)
    return [one for one in every if one.known] or every


def widened(interval: Interval, more: float) -> Interval:
    """The interval with a further half-width (of the log) added as squares."""
    return _around(interval.value, math.hypot(reach(interval), more))


def _around(value: float, reach: float) -> Interval:
    return Interval(value, value * power(-reach), value * power(reach))


def reach(interval: Interval) -> float:
    """Half-width of the interval of the log."""
    return math.log(interval.high / interval.low) / 2


def power(log: float) -> float:
    """The number with this log, between the powers of `MOST_LOG`; NaN of NaN.

    The times of a stranger may differ by any factor. No figure of them becomes 0 or infinite.
    """
    return math.exp(max(min(log, MOST_LOG), -MOST_LOG))


def log_mean(values: Sequence[float]) -> float:
    """Mean of the logs of at least one value: the log of their geometric mean."""
    return math.fsum(map(math.log, values)) / len(values)


def log_variance(values: Sequence[float]) -> float:
    """Variance of the logs of at least two values, with n - 1 in the denominator."""
    mean = log_mean(values)
    return math.fsum((math.log(value) - mean) ** 2 for value in values) / (len(values) - 1)


def pooled(samples: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """The variance that samples have in common, and its degrees of freedom.

    ``samples``: the variance and the degrees of freedom of each. NaN and 0 if none has any.
    """
    known = [(variance, degrees) for variance, degrees in samples if degrees > 0]
    total = sum(degrees for _, degrees in known)
    squares = math.fsum(variance * degrees for variance, degrees in known)
    return (squares / total if total else math.nan), total


class Prior(NamedTuple):
    """The spread between launches that all cells of a machine show together.

    ``variance`` is that of the log of one launch's figure. ``degrees`` is the weight of this
    knowledge, in degrees of freedom: infinite where all cells spread alike, small where they
    differ.
    """

    variance: float
    degrees: float


def prior_spread(variances: Sequence[float], degrees: Sequence[float]) -> Prior | None:
    """The common spread of many cells, from the variance and degrees of freedom of each.

    The moment estimator of Smyth, "Linear models and empirical Bayes methods", Statistical
    Applications in Genetics and Molecular Biology 3 (2004), section 6.2. A few launches say little
    about the spread of one cell; all cells of a machine together say a lot. None when fewer than
    two variances are usable.
    """
    import numpy as np
    from scipy.special import digamma, zeta

    known = [(v, d) for v, d in zip(variances, degrees, strict=True) if d > 0 and v > 0]
    if len(known) < 2:
        return None
    v, d = np.array(known, dtype=float).T
    e = np.log(v) - digamma(d / 2) + np.log(d / 2)
    excess = float(np.var(e, ddof=1) - np.mean(zeta(2, d / 2)))
    if excess <= 0:
        return Prior(float(np.exp(np.mean(e))), math.inf)
    half = _inverse_trigamma(excess)
    return Prior(
        float(np.exp(np.mean(e) + digamma(half) - np.log(half))),
        2 * half,
    )


def _inverse_trigamma(value: float) -> float:
    """The y with trigamma(y) = value, value > 0.

    Newton's method as in the appendix of Smyth's paper; trigamma(y) is zeta(2, y).
    """
    from scipy.special import zeta

    # 1 / trigamma is convex, and this start lies above the solution, so all steps go down.
    y = 0.5 + 1 / value
    if value < 1e-9:
        return y  # the solution, but for value / 12
    for _ in range(_STEPS):
        trigamma = float(zeta(2, y))
        step = trigamma * (1 - trigamma / value) / (-2 * float(zeta(3, y)))
        y += step
        if abs(step) <= 1e-12 * y:
            break
    return y


def moderated(variance: float, degrees: float, prior: Prior | None) -> tuple[float, float]:
    """The variance of one cell moved towards that of its machine.

    Returns Smyth's posterior, the weighted mean of both, and its degrees of freedom. ``degrees``
    may be 0 (a single launch); the result is then the prior. Without a prior the cell's own
    variance is the result. The variance is NaN when nothing is known.
    """
    if prior is None:
        return (variance, degrees) if degrees > 0 else (math.nan, 0.0)
    if math.isinf(prior.degrees):
        return prior.variance, math.inf
    own = variance * degrees if degrees > 0 else 0.0
    total = prior.degrees + degrees
    return (prior.variance * prior.degrees + own) / total, total


@cache
def t_quantile(probability: float, degrees: int) -> float:
    """Quantile of Student's t distribution with that many degrees of freedom, more than 0.

    The relative error is below 1e-11 at the levels of this package.
    """
    if probability == 0.5 or degrees < 1:
        return 0.0 if degrees >= 1 else math.nan
    if probability < 0.5:
        return -t_quantile(1 - probability, degrees)
    # The tail is convex, and this start lies below the quantile, so Newton's steps all go up.
    t = NormalDist().inv_cdf(probability)
    for _ in range(_STEPS):
        step = (_tail(t, degrees) - (1 - probability)) / _density(t, degrees)
        t += step
        # Newton's method doubles the digits, so the next step would change none.
        if abs(step) <= 1e-9 * t:
            break
    return t


def _density(t: float, degrees: int) -> float:
    log = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)
    log -= (degrees + 1) / 2 * math.log1p(t * t / degrees)
    return math.exp(log) / math.sqrt(degrees * math.pi)


def _tail(t: float, degrees: int) -> float:
    """The probability of more than ``t``: Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(degrees))
    odd = degrees % 2
    term, terms = math.cos(angle) if odd else 1.0, []
    for number in range(2 + odd, degrees + 1, 2):
        terms.append(term)
        term *= math.cos(angle) ** 2 * (number - 1) / number
    within = math.sin(angle) * math.fsum(terms)
    return (1 - (2 / math.pi * (angle + within) if odd else within)) / 2

"""Quantiles of Student's t distribution, without SciPy.

This is all that measuring needs of SciPy, which takes 115 MB with NumPy: too much for the
environment of a user's own model. A test compares the quantiles with SciPy's.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

# From here on the expansion for many degrees of freedom is exact to the last digits.
_MANY = 1e4
# Up to here math.gamma does not overflow.
_GAMMA_MAX = 170.0
_STEPS = 1000
_EPSILON = 1e-16


@cache
def t_quantile(probability: float, degrees: float) -> float:
    """Quantile of Student's t distribution with that many degrees of freedom, more than 0.

    The relative error is below 1e-12. ``degrees`` may be infinite.
    """
    if probability == 0.5 or not degrees > 0:
        return 0.0 if degrees > 0 else math.nan
    if probability < 0.5:
        return -t_quantile(1 - probability, degrees)
    normal = NormalDist().inv_cdf(probability)
    if degrees >= _MANY:
        return _for_many(normal, 1 / degrees)
    # The tail is convex, and this start lies below the quantile, so Newton's steps all go up.
    t = normal
    for _ in range(_STEPS):
        step = (_tail(t, degrees) - (1 - probability)) / _density(t, degrees)
        t += step
        # Newton's method doubles the digits, so the next step would change none.
        if abs(step) <= 1e-12 * t:
            break
    return t


def _for_many(z: float, inverse: float) -> float:
    """Abramowitz and Stegun, 26.7.5. ``inverse``: of the degrees of freedom."""
    return (
        z
        + inverse * (z**3 + z) / 4
        + inverse**2 * (5 * z**5 + 16 * z**3 + 3 * z) / 96
        + inverse**3 * (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    )


def _density(t: float, degrees: float) -> float:
    power = math.exp(-(degrees + 1) / 2 * math.log1p(t * t / degrees))
    return _gamma_ratio(degrees / 2) / math.sqrt(degrees * math.pi) * power


def _tail(t: float, degrees: float) -> float:
    """The probability of more than ``t``, which is at least 0."""
    a, b = degrees / 2, 0.5
    x, y = degrees / (degrees + t * t), t * t / (degrees + t * t)
    # The regularised incomplete beta function I_x(a, b), where its fraction converges fast.
    front = math.exp(-a * math.log1p(t * t / degrees)) * math.sqrt(y)
    front *= _gamma_ratio(a) / math.sqrt(math.pi)
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(x, a, b) / a / 2
    return 0.5 - front * _beta_fraction(y, b, a) / b / 2


def _gamma_ratio(x: float) -> float:
    """gamma(x + 1/2) / gamma(x)."""
    if x <= _GAMMA_MAX:
        return math.gamma(x + 0.5) / math.gamma(x)
    inverse = 1 / x
    series = (1, -1 / 8, 1 / 128, 5 / 1024, -21 / 32768, -399 / 262144)
    return math.sqrt(x) * math.fsum(factor * inverse**power for power, factor in enumerate(series))


def _beta_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method.

    Press et al., "Numerical Recipes" (2007), section 6.4.
    """
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for factor in (even, odd):
            d = 1 / (1 + factor * d)
            c = 1 + factor / c
            value *= c * d
        if abs(c * d - 1) <= _EPSILON:
            break
    return value

"""How much launches differ: the spread of one cell, estimated with all cells of its machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


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

    # trigamma falls from infinity to 0: as 1/y at large y, as 1/y**2 at small y.
    return float(
        brentq(
            lambda y: polygamma(1, y) - value,
            0.5 * min(value**-0.5, 1 / value),
            2 + 2 * max(value**-0.5, 1 / value),
        )
    )


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

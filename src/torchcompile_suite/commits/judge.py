"""Do two commits differ, and to which of the two does a third one belong?

All values are compared as logarithms. All commits of a search run the same cell on the same machine
within minutes. They share one variance between launches, so every launch of any commit improves the
estimate for every decision.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from enum import Enum

from ..analysis import statistics
from ..analysis.statistics import Interval

# Nominal risk of a wrong answer at one step: one-sided, by Student's t. A search has about twelve
# steps, and several looks at each step. More than 9 of 10 searches are right: evidence/bisection.py
# counts them.
RISK = 0.005
# Smallest relative difference of good and bad for a search: a step must see half of it.
SMALLEST = 0.01


class Side(str, Enum):
    """The side to which a commit belongs."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "cannot tell"


def spread(samples: Collection[Sequence[float]]) -> tuple[float, int]:
    """The pooled variance of a launch's logarithm, and its degrees of freedom.

    ``samples``: for each commit one value a launch, all above 0. Returns NaN and 0 if no commit has
    two launches.
    """
    known = [values for values in samples if len(values) > 1]
    parts = [(statistics.log_variance(values), len(values) - 1) for values in known]
    variance, degrees = statistics.pooled(parts)
    return variance, int(degrees)


def factor(
    good: Sequence[float], bad: Sequence[float], everything: Collection[Sequence[float]]
) -> Interval:
    """Bad over good, with its 95 % interval. ``everything``: the values of all commits."""
    variance, degrees = spread(everything)
    difference = statistics.log_mean(bad) - statistics.log_mean(good)
    error = math.sqrt(variance * (1 / len(good) + 1 / len(bad)))
    reach = statistics.t_quantile((1 + statistics.CONFIDENCE) / 2, degrees) * error
    return Interval(*(math.exp(difference + by) for by in (0.0, -reach, reach)))


def differ(
    good: Sequence[float],
    bad: Sequence[float],
    everything: Collection[Sequence[float]],
    times: float = 1.0,
) -> bool:
    """Whether good and bad differ beyond the risk.

    With ``times`` 2, half of the difference would be enough to tell them apart.
    """
    variance, degrees = spread(everything)
    distance = abs(statistics.log_mean(bad) - statistics.log_mean(good))
    if not degrees or distance < math.log1p(SMALLEST):
        return False
    error = math.sqrt(variance * (1 / len(good) + 1 / len(bad)))
    return distance > times * statistics.t_quantile(1 - RISK, degrees) * error


def side(
    values: Sequence[float],
    good: Sequence[float],
    bad: Sequence[float],
    everything: Collection[Sequence[float]],
) -> Side:
    """The side of the commit with these values; unknown if it is too near to the middle.

    The middle lies half way between good and bad, on the log scale.
    """
    variance, degrees = spread(everything)
    if not values or not degrees:
        return Side.UNKNOWN
    at, low, high = map(statistics.log_mean, (values, good, bad))
    beyond = (at - (low + high) / 2) * math.copysign(1, high - low)
    error = math.sqrt(variance * (1 / len(values) + (1 / len(good) + 1 / len(bad)) / 4))
    if abs(beyond) <= statistics.t_quantile(1 - RISK, degrees) * error:
        return Side.UNKNOWN
    return Side.BAD if beyond > 0 else Side.GOOD

"""Do two commits differ, and to which of the two does a third belong? Pure, on the log scale.

All commits of a search run the same cell on the same machine minutes apart, so they share one
variance between launches, and each launch of any of them makes every decision surer.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from enum import Enum

from ..analysis import statistics
from ..analysis.statistics import Interval

# The risk of a wrong answer at one step, one-sided, as Student's t sees it: with a dozen steps, and
# several looks at each, a search is right in more than 9 of 10. evidence/bisection.py counts.
RISK = 0.005
# Below this a difference of good and bad is not worth a search: no step could see half of it.
SMALLEST = 0.01


class Side(str, Enum):
    """Where a commit belongs."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "cannot tell"


def spread(samples: Collection[Sequence[float]]) -> tuple[float, int]:
    """The commits' common variance of one launch's log, and its degrees of freedom.

    ``samples`` hold one value a launch, all above 0. NaN and 0 where no commit has two launches.
    """
    known = [values for values in samples if len(values) > 1]
    degrees = sum(len(values) - 1 for values in known)
    if not degrees:
        return math.nan, 0
    squares = math.fsum(statistics.log_variance(values) * (len(values) - 1) for values in known)
    return squares / degrees, degrees


def factor(
    good: Sequence[float], bad: Sequence[float], everything: Collection[Sequence[float]]
) -> Interval:
    """Bad over good, with its 95 % interval. ``everything`` are the launches of all commits."""
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
    """Whether good and bad surely differ; with ``times`` 2 so surely that half of it would do."""
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
    """Whether a commit belongs to good or to bad: surely beyond the middle between them, or not
    yet known.
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

"""Which differences of two releases count as changes, with false discoveries controlled.

What the machine's drift is in is compared round by round. In a round each release gets one launch,
within minutes. What slows the whole machine for longer slows both, so it cancels in the difference
of a round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from msgspec import Struct, field

from ...cell import Cell
from ...measurement import Launch
from .. import statistics
from ..statistics import Interval, Prior
from .quantities import QUANTITIES, Logs, Round, by_round, values

FALSE_DISCOVERY_RATE = 0.05
# "Not changed" means: the whole interval lies within this of no change (relative).
MARGIN = 0.05
# Two neighbouring releases of a series are measured until each of these figures differs for certain
# or surely differs by less than this (relative).
SMALLEST_TOLD: Mapping[str, float] = {
    "time ratio": 0.03,
    "eager": 0.03,
    "compiled": 0.03,
    "warm compile": 0.10,
}
# The level of the interval that tells two releases apart. It is looked at after each round, and a
# comparison judges hundreds of figures: a difference that such an interval shows is still one then.
TOLD_LEVEL = 0.999

Key = tuple[Cell, str]
"""A figure of a cell: a quantity of `QUANTITIES`."""


class Difference(str, Enum):
    """The difference of one quantity of one cell between two releases."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "not changed"
    UNKNOWN = "cannot tell"

    @property
    def changed(self) -> bool:
        """Whether it is a change beyond noise."""
        return self in (Difference.WORSE, Difference.BETTER)


class Effect(Struct, frozen=True):
    """After over before, with its 95 % interval. Above 1 is slower, or more memory.

    ``p`` is the two-sided probability of such a factor if nothing changed. ``q`` is the false
    discovery rate at which it would count as a change. ``paired``: compared round by round. In
    JSON, the difference is the ``verdict``.
    """

    factor: Interval
    p: float
    q: float
    difference: Difference = field(name="verdict")
    paired: bool = False


class LogChange(NamedTuple):
    """Difference of means of logs (after minus before), its standard error, its degrees of
    freedom, and whether it was compared round by round, where drift cancels.
    """

    mean: float
    error: float
    degrees: float
    paired: bool = False


def log_change(before: Logs, after: Logs, prior: Prior | None) -> LogChange | None:
    """The change of one quantity of one cell, from its logs over the launches.

    None where neither the launches nor the prior give a variance.
    """
    sides = (before, after)
    own = statistics.pooled((side.variance, side.number - 1) for side in sides)
    variance, freedom = statistics.moderated(*own, prior)
    if math.isnan(variance):
        return None
    error = math.sqrt(variance * math.fsum(1 / side.number for side in sides))
    return LogChange(after.mean - before.mean, error, freedom)


def factors(before: Mapping[Round, float], after: Mapping[Round, float]) -> list[float]:
    """After over before in each round that both have."""
    return [
        statistics.power(math.log(after[key]) - math.log(before[key]))
        for key in before
        if key in after
    ]


def paired_change(factors: Sequence[float], prior: Prior | None) -> LogChange | None:
    """The change of one quantity of one cell, from its factor in each round.

    ``prior`` is the spread of such factors. None where neither the factors nor the prior give a
    variance.
    """
    logs = Logs.of(factors)
    if logs is None:
        return None
    variance, freedom = statistics.moderated(logs.variance, logs.number - 1, prior)
    if math.isnan(variance):
        return None
    return LogChange(logs.mean, math.sqrt(variance / logs.number), freedom, paired=True)


def effects(changes: Mapping[Key, LogChange]) -> dict[Key, Effect]:
    """Judge all changes of a comparison together, under the same keys."""
    import numpy as np

    # scipy.stats takes a second to import.
    from scipy.special import stdtr, stdtrit

    if not changes:
        return {}
    mean, error, degrees = np.array([change[:3] for change in changes.values()]).T
    p_values = np.where(mean == 0, 1.0, 0.0)
    unsure = error > 0
    size = np.abs(mean[unsure]) / error[unsure]
    p_values[unsure] = 2 * stdtr(degrees[unsure], -size)
    q_values = _false_discovery_rates(p_values)
    reach = stdtrit(degrees, (1 + statistics.CONFIDENCE) / 2) * error
    logs = np.clip([mean, mean - reach, mean + reach], -statistics.MOST_LOG, statistics.MOST_LOG)
    bounds = np.exp(logs).T.tolist()
    judged = {}
    for key, bound, p, q in zip(changes, bounds, p_values.tolist(), q_values.tolist(), strict=True):
        factor = Interval(*bound)
        difference = _difference(factor, q <= FALSE_DISCOVERY_RATE, QUANTITIES[key[1]].smallest)
        judged[key] = Effect(factor, p, q, difference, changes[key].paired)
    return judged


def _false_discovery_rates(p_values: Any) -> Any:
    """The rate at which each value would count as a discovery: Benjamini and Hochberg, 1995."""
    import numpy as np

    order = np.argsort(p_values)
    number = len(p_values)
    scaled = p_values[order] * (number / np.arange(1, number + 1))
    rates = np.empty(number)
    rates[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return rates


def _difference(factor: Interval, surely: bool, smallest: float) -> Difference:
    """``surely``: that the factor is not 1."""
    if surely and abs(math.log(factor.value)) > math.log1p(smallest):
        return Difference.WORSE if factor.value > 1 else Difference.BETTER
    same = factor.low >= 1 / (1 + MARGIN) and factor.high <= 1 + MARGIN
    return Difference.SAME if same else Difference.UNKNOWN


def mean_difference(name: str, mean: Interval) -> Difference:
    """What the interval of a mean factor of a quantity says.

    A mean is one figure: no rate of false findings, and no larger margin for a single cold start.
    """
    smallest = min(QUANTITIES[name].smallest, MARGIN)
    return _difference(mean, mean.low > 1 or mean.high < 1, smallest)


def mean_factor(changes: Sequence[LogChange]) -> Interval:
    """Geometric mean of the factors of many cells, at least one, with its 95 % interval.

    The variances of independent changes add. The degrees of freedom of the sum are those of
    Satterthwaite, Biometrics Bulletin 2, 1946.
    """
    from scipy.special import stdtrit

    total = math.fsum(change.error**2 for change in changes)
    weight = math.fsum(change.error**4 / change.degrees for change in changes)
    degrees = total**2 / weight if weight else math.inf
    centre = math.fsum(change.mean for change in changes) / len(changes)
    error = math.sqrt(total) / len(changes)
    reach = float(stdtrit(degrees, (1 + statistics.CONFIDENCE) / 2)) * error
    return Interval(*(statistics.power(centre + by) for by in (0.0, -reach, reach)))


def told(cell: Cell, before: Sequence[Launch], after: Sequence[Launch]) -> bool:
    """Whether further rounds of two releases of a cell would tell nothing new.

    That is: of each figure that the cell has, the interval of the change excludes "no change", or
    all of it is smaller than `SMALLEST_TOLD`.
    """
    return all(
        _told(factors(by_round(name, before), by_round(name, after)), smallest)
        for name, smallest in SMALLEST_TOLD.items()
        if QUANTITIES[name].concerns(cell) and all(values(name, side) for side in (before, after))
    )


def _told(of_rounds: Sequence[float], smallest: float) -> bool:
    if len(of_rounds) < statistics.FIRST_LOOK:
        return False
    near = statistics.sequential_interval(of_rounds)
    if near.low >= 1 / (1 + smallest) and near.high <= 1 + smallest:
        return True
    far = statistics.geometric_interval(of_rounds, TOLD_LEVEL)
    return far.low > 1 or far.high < 1

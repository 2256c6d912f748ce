"""Two releases whose launches were made in turns: compared round by round.

In a round each release gets one launch, within minutes. What slows the whole machine for longer
slows both, so it cancels in the difference of a round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ...cell import Cell, Launch
from .. import statistics
from ..statistics import Prior
from .discovery import LogChange
from .quantities import QUANTITIES, Round, by_round, values

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


def factors(before: Mapping[Round, float], after: Mapping[Round, float]) -> list[float]:
    """After over before in each round that both have."""
    return [after[key] / before[key] for key in before if key in after]


def paired_change(factors: Sequence[float], prior: Prior | None) -> LogChange | None:
    """The change of one quantity of one cell, from its factor in each round.

    ``prior`` is the spread of such factors. None where neither the factors nor the prior give a
    variance.
    """
    if not factors:
        return None
    degrees = len(factors) - 1
    own = statistics.log_variance(factors) if degrees else math.nan
    variance, freedom = statistics.moderated(own, degrees, prior)
    if math.isnan(variance):
        return None
    error = math.sqrt(variance / len(factors))
    return LogChange(statistics.log_mean(factors), error, freedom, paired=True)


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

"""Does compiling pay: what one interval allows to say, and which mode is best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

from ..cell import Cell
from ..modes import EAGER
from .change import MARGIN
from .statistics import Interval
from .summary import Row


class Payoff(str, Enum):
    """A mode compared with eager."""

    GAIN = "faster"
    LOSS = "slower"
    NONE = "no gain"
    UNKNOWN = "cannot tell"


def payoff(ratio: Interval | None) -> Payoff:
    """What a time ratio (mode over eager) with its 95 % interval says.

    Faster or slower if the whole interval lies on one side of 1. No gain if the interval rules out
    a gain of more than `change.MARGIN`. Otherwise unknown.
    """
    if ratio is None or not ratio.known:
        return Payoff.UNKNOWN
    if ratio.high < 1:
        return Payoff.GAIN
    if ratio.low > 1:
        return Payoff.LOSS
    return Payoff.NONE if ratio.low >= 1 / (1 + MARGIN) else Payoff.UNKNOWN


def asks_whether_it_pays(cell: Cell) -> bool:
    """Whether the cell compares a compiled model with eager, and both run as a user runs them.

    False for cells that analyse a gain (another backend, a mistaken protocol), and for cells that
    compare something else (dtypes, allocators, streams of shapes).
    """
    return cell.mode != EAGER and cell.differs() <= {"phase", "dtype", "accumulation", "layout"}


def best(rows: Iterable[Row]) -> list[Cell]:
    """The cell of the fastest mode, then those that cannot be told from it; empty without a gain.

    ``rows`` are the modes of one workload, equal in everything else.
    """
    gains = [
        (row.ratio, row.cell)
        for row in rows
        if row.ratio is not None and payoff(row.ratio) is Payoff.GAIN
    ]
    if not gains:
        return []
    first, cell = min(gains, key=lambda gain: gain[0].value)
    return [cell, *(other for ratio, other in gains if other != cell and ratio.low <= first.high)]


def counts(rows: Sequence[Row]) -> dict[Payoff, int]:
    """The number of rows of each payoff; failed cells are not counted."""
    number = dict.fromkeys(Payoff, 0)
    for row in rows:
        if row.outcome.ok:
            number[payoff(row.ratio)] += 1
    return number

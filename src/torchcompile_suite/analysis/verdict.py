"""Does compiling pay: what one interval allows to say, and which mode is best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import Enum

from ..cell import Cell
from ..modes import EAGER
from .change import MARGIN
from .statistics import Interval
from .summary import Row


class Pays(str, Enum):
    """What can be said of a mode against eager."""

    GAIN = "faster"
    LOSS = "slower"
    NONE = "no gain"
    UNKNOWN = "cannot tell"


def verdict(ratio: Interval | None) -> Pays:
    """What a time ratio (mode over eager) with its 95 % interval says.

    Faster or slower where the whole interval lies on one side of 1; no gain where a gain of more
    than `change.MARGIN` is ruled out; else nobody can tell yet.
    """
    if ratio is None or math.isnan(ratio.low):
        return Pays.UNKNOWN
    if ratio.high < 1:
        return Pays.GAIN
    if ratio.low > 1:
        return Pays.LOSS
    return Pays.NONE if ratio.low >= 1 / (1 + MARGIN) else Pays.UNKNOWN


def asks_whether_it_pays(cell: Cell) -> bool:
    """Whether the cell is a compiled one against eager, everything else as users would have it.

    Those that dissect a gain (another backend, a mistaken protocol), and those that compare
    something else (dtypes, allocators, streams of shapes), are none.
    """
    return cell.mode != EAGER and cell.differs() <= {"phase", "dtype", "accumulation"}


def best(rows: Iterable[Row]) -> list[Cell]:
    """The cells of the fastest mode, and of those not told apart from it; none without a gain.

    ``rows`` are the modes of one workload, alike in all else.
    """
    gains = [
        (row.ratio, row.cell)
        for row in rows
        if row.ratio is not None and verdict(row.ratio) is Pays.GAIN
    ]
    if not gains:
        return []
    first, cell = min(gains, key=lambda gain: gain[0].value)
    return [cell, *(other for ratio, other in gains if other != cell and ratio.low <= first.high)]


def counts(rows: Sequence[Row]) -> dict[Pays, int]:
    """How many rows there are of each verdict; failed cells are in none."""
    found = dict.fromkeys(Pays, 0)
    for row in rows:
        if row.outcome.ok:
            found[verdict(row.ratio)] += 1
    return found

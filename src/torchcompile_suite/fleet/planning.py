"""Which series go first, and how long some machines need for all of them.

The longest series go first (longest processing time first): the last machine then ends at most a
third of the ideal later than it could (Graham, SIAM J. Appl. Math. 17, 1969), and far earlier where
there are many series for each machine. Ray hands out work in the order in which it gets it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple


class Expected(NamedTuple):
    """How a plan ends on a number of machines.

    - ``seconds``: until the last series ends.
    - ``ideal_s``: no order can end earlier. It is the total over the number of machines, or the
      longest series.
    """

    machines: int
    seconds: float
    ideal_s: float
    total_s: float

    @property
    def efficiency(self) -> float:
        """The share of the machines' time in which they measure."""
        return self.total_s / (self.machines * self.seconds) if self.seconds else 1.0


def expected(durations_s: Sequence[float], machines: int) -> Expected:
    """The end of series of these durations, the longest first, each on the first free machine."""
    free = [0.0] * machines
    for seconds in sorted(durations_s, reverse=True):
        heapq.heapreplace(free, free[0] + seconds)
    total = math.fsum(durations_s)
    ideal = max(total / machines, max(durations_s, default=0.0))
    return Expected(machines, max(free), ideal, total)

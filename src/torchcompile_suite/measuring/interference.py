"""What other processes and other guests of the host take from a measurement.

Linux counts the time that the hypervisor gave to another guest while this one had work (``steal``,
proc(5)). It does not count a neighbour on the other hyperthread of the same core: the calibration
loop (`calibration`) shows that one.
"""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from ..cell import Interference


class _Reading(NamedTuple):
    clock_s: float
    own_s: float
    busy_s: float
    steal_s: float


def _read(pids: set[int]) -> _Reading | None:
    """Seconds since boot, over all processors; None if the kernel does not report them.

    ``own_s`` is the processor time of this process and of the processes ``pids``.
    """
    try:
        import psutil
    except ImportError:
        return None
    try:
        times = psutil.cpu_times()
        busy_s = times.user + times.nice + times.system + times.irq + times.softirq
        own = [psutil.Process(pid).cpu_times() for pid in pids]
        own_s = time.process_time() + sum(each.user + each.system for each in own)
        return _Reading(time.perf_counter(), own_s, busy_s, times.steal)
    except (psutil.Error, OSError, ValueError, AttributeError):
        return None  # other systems have no time of interrupts


class Watch:
    """Counts the time that others take, from its creation on."""

    def __init__(self, pids: set[int]) -> None:
        """Start counting. ``pids``: the measuring processes, which are not others."""
        self._pids = pids
        self._start = _read(pids)

    def shares(self) -> Interference | None:
        """Shares of all processors' time since the start; None if the kernel reports no times."""
        start, end = self._start, _read(self._pids)
        if start is None or end is None:
            return None
        capacity = (end.clock_s - start.clock_s) * (os.cpu_count() or 1)
        if capacity <= 0:
            return None
        others = (end.busy_s - start.busy_s) - (end.own_s - start.own_s)
        return Interference(
            steal_share=_share(end.steal_s - start.steal_s, capacity),
            others_share=_share(others, capacity),
        )


def _share(seconds: float, capacity_s: float) -> float:
    # The kernel counts in ticks of 10 ms, so a difference can be a little below 0.
    return round(min(1.0, max(0.0, seconds / capacity_s)), 4)

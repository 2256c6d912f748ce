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


def _read() -> _Reading | None:
    """Seconds since boot, over all processors; None if the kernel does not report them."""
    try:
        # Imported here, after the memory of the model was measured.
        import psutil

        times = psutil.cpu_times()
        busy_s = times.user + times.nice + times.system + times.irq + times.softirq
        return _Reading(time.perf_counter(), time.process_time(), busy_s, times.steal)
    except (
        ImportError,
        OSError,
        ValueError,
        AttributeError,
    ):  # other systems have no time of interrupts
        return None


class Watch:
    """Counts the time that others take, from its creation on."""

    def __init__(self) -> None:
        """Start counting."""
        self._start = _read()

    def shares(self) -> Interference | None:
        """Shares of all processors' time since the start; None if the kernel reports no times."""
        start, end = self._start, _read()
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

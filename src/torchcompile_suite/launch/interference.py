"""What other processes and other guests of the host take from a measurement, as far as Linux tells.

Read from /proc/stat (proc(5)): ``steal`` is time that the hypervisor gave to another guest while
this one had work. A neighbour on the same core's other hyperthread steals nothing and is not seen
here: `yardstick` does.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from ..cell import Interference

_STAT = Path("/proc/stat")


class _Reading(NamedTuple):
    clock_s: float
    own_s: float
    busy_s: float
    steal_s: float


def _read() -> _Reading | None:
    """Seconds since boot, over all processors; None where the kernel does not tell."""
    try:
        with _STAT.open() as stream:
            fields = [int(field) for field in stream.readline().split()[1:9]]
    except (OSError, ValueError):
        return None
    if len(fields) < 8:
        return None
    tick = os.sysconf("SC_CLK_TCK")
    user, nice, system, _idle, _iowait, irq, softirq, steal = (field / tick for field in fields)
    return _Reading(
        time.perf_counter(), time.process_time(), user + nice + system + irq + softirq, steal
    )


class Watch:
    """Counts from its making until it is asked."""

    def __init__(self) -> None:
        """Start counting."""
        self._start = _read()

    def seen(self) -> Interference | None:
        """Shares of all processors' time since the start; None where the kernel does not tell."""
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
    # The kernel counts in ticks of 10 ms: differences may come out a little below 0.
    return round(min(1.0, max(0.0, seconds / capacity_s)), 4)

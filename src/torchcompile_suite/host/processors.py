"""The processors that this process may use: what they did, and two of them that are no one core.

A container or ``taskset`` may allow some of the host's processors only. What the others do is no
disturbance, and what disturbs the allowed ones is a small share of all.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import NamedTuple

from . import kernel

STAT = Path("/proc/stat")
TOPOLOGY = Path("/sys/devices/system/cpu")
# Cores of one kind may differ in their highest clock by less than this factor. Where a processor
# has cores of two kinds, the efficient ones reach 0.6 to 0.8 of the others.
ONE_KIND = 0.9


class Taken(NamedTuple):
    """Seconds since boot: of work, and of the hypervisor's work for other guests (``steal``)."""

    busy_s: float
    steal_s: float


def allowed() -> list[int]:
    """The numbers of the processors that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def taken() -> Taken | None:
    """The time of the `allowed` processors, summed; None if the kernel does not report it, or names
    them otherwise, as in some containers.
    """
    names = {f"cpu{number}" for number in allowed()}
    busy = steal = found = 0
    try:
        for line in STAT.read_text().splitlines():
            name, *ticks = line.split()
            if name in names:
                found += 1
                user, nice, system, _idle, _wait, irq, softirq, stolen = map(int, ticks[:8])
                busy += user + nice + system + irq + softirq
                steal += stolen
    except (OSError, ValueError):
        return None
    if found < len(names):
        return None
    a_second = os.sysconf("SC_CLK_TCK")
    return Taken(busy / a_second, steal / a_second)


def two() -> tuple[int, int] | None:
    """Two of the `allowed` processors: of two fast cores of one kind, if there are such. None if
    only one processor is allowed.
    """
    speeds = {number: _speed(number) for number in allowed()}
    if len(speeds) < 2:
        return None
    for fastest in sorted(set(speeds.values()), reverse=True):
        kind = [one for one, speed in speeds.items() if ONE_KIND * fastest <= speed <= fastest]
        for one, other in itertools.combinations(kind, 2):
            if other not in siblings(one):
                return one, other
    first, second, *_ = sorted(speeds, key=lambda one: -speeds[one])
    return first, second


def _speed(number: int) -> int:
    """What the kernel knows of the speed of a processor, to compare it with others: the capacity of
    its core, or the highest clock in kHz. 0 if it knows neither, as in most guests.
    """
    folder = TOPOLOGY / f"cpu{number}"
    known = (kernel.text(folder / name) for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"))
    return next((int(one) for one in known if one.isdecimal()), 0)


def siblings(number: int) -> set[int]:
    """The processors of the same core, as far as the kernel knows: a host may hide it."""
    try:
        text = (TOPOLOGY / f"cpu{number}" / "topology" / "thread_siblings_list").read_text()
        ends = [part.partition("-") for part in text.strip().split(",")]
        spans = [range(int(first), int(last or first) + 1) for first, _, last in ends]
        return {one for span in spans for one in span}
    except (OSError, ValueError):
        return set()

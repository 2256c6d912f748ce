"""What others take from a measurement: other processes, other guests of the host, and heat.

Linux counts the time that the hypervisor gave to another guest while this one had work (``steal``,
proc(5)). It does not count a neighbour on the other hyperthread of the same core: the calibration
loop (`calibration`) shows that one. On an accelerator, its driver says more (`host.nvml`).
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Set
from typing import NamedTuple

from ..conditions import DeviceState, HostState, Interference
from ..host import cuda, nvml, processors

# Seconds of processor time that the measured processes have used.
OwnTime = Callable[[], float]


class _Reading(NamedTuple):
    """Seconds since boot, over the processors that the measurement may use. ``own_s``: of this
    process and of those measured.
    """

    clock_s: float
    own_s: float
    busy_s: float
    steal_s: float


def _read(own_s: OwnTime) -> _Reading | None:
    """Now; None if the kernel does not report it."""
    import psutil

    taken = processors.taken()
    if taken is None:
        return None
    try:
        return _Reading(time.perf_counter(), time.process_time() + own_s(), *taken)
    except psutil.Error:
        return None


def of_processes(pids: Set[int]) -> float:
    """Seconds that the processes have used, without those that they have started."""
    import psutil

    own = [psutil.Process(pid).cpu_times() for pid in pids]
    return math.fsum(each.user + each.system for each in own)


def of_tree(pid: int) -> float:
    """Of a process, and of all that it has started: those that live and those that ended."""
    import psutil

    seconds = 0.0
    process = psutil.Process(pid)
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


class Watch:
    """Counts the time that others take, in one span of time or in several."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self._spans: list[tuple[_Reading | None, _Reading | None]] = []
        self._start: _Reading | None = None

    def begin(self, own_s: OwnTime = lambda: 0.0) -> None:
        """A span begins. ``own_s``: of the measured processes, which are not others."""
        self._start = _read(own_s)

    def end(self, own_s: OwnTime) -> None:
        """The span ends. The measured processes are still there."""
        self._spans.append((self._start, _read(own_s)))

    def shares(
        self, device: DeviceState | None = None, host: HostState | None = None
    ) -> Interference | None:
        """Shares of the processors' time in the spans; None if the kernel reports no times.
        ``device``: what `on_device` has seen; ``host``: what the probes have.
        """
        clock_s = others_s = steal_s = 0.0
        for start, end in self._spans:
            if start is None or end is None:
                return None
            clock_s += end.clock_s - start.clock_s
            others_s += (end.busy_s - start.busy_s) - (end.own_s - start.own_s)
            steal_s += end.steal_s - start.steal_s
        capacity_s = clock_s * len(processors.allowed())
        if capacity_s <= 0:
            return None
        return Interference(
            steal_share=_share(steal_s, capacity_s),
            others_share=_share(others_s, capacity_s),
            device=device,
            host=host,
        )


@contextlib.contextmanager
def on_device(kind: str) -> Iterator[nvml.Watch]:
    """Watches the device that torch uses, which is the first that CUDA sees. A CPU has no driver to
    ask.
    """
    devices = () if kind == "cpu" else cuda.seen().devices
    if not devices:
        yield nvml.Watch(None)
        return
    with nvml.opened(devices[0].uuid) as device:
        yield nvml.Watch(device)


def _share(seconds: float, capacity_s: float) -> float:
    # The kernel counts in ticks of 10 ms, so a difference can be a little below 0.
    return round(min(1.0, max(0.0, seconds / capacity_s)), 4)

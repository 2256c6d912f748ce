"""Checks of the machine: speed and load of its processors, memory and disk; its GPU (`gpus`)."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from ..engine.settings import NEEDED_FOR_CACHE_BYTES
from ..host import control_group, kernel, probes, processors
from ..host.heap import LIBRARIES, preload
from ..host.processors import Taken
from . import Check, fault, gpus, ok, temporary

# Time for which other processes and other guests are watched.
WATCH_S = 2.0
# The probes of the processors are read so often, and for so long: a host may keep them at one place
# for seconds.
READ_EACH_S, READ_S = 0.1, 10.0
# Share of readings.
OUTLIERS = 0.05
# Share of one processor: a terminal and an editor take less.
BUSY = 0.10
# The warning names this many processes.
MOST_NAMED = 3
# Share of all processors that the host gives to other guests.
STOLEN = 0.02
# The share that processes take which psutil does not see, such as those of another container.
UNSEEN = 0.05
SYSTEM = Path("/sys/devices/system/cpu")
NEEDED_MEMORY_BYTES = 4 << 30


def checks() -> Iterator[Check]:
    """All checks of the machine."""
    yield governor()
    yield turbo()
    yield from load()
    yield cores()
    yield siblings()
    yield from placement()
    yield allocator()
    yield huge_pages()
    yield memory()
    yield disk()
    yield from gpus.checks()


def governor() -> Check:
    """The policy that sets the processors' frequency."""
    files = SYSTEM.glob("cpu[0-9]*/cpufreq/scaling_governor")
    governors = {kernel.text(file) for file in files} - {""}
    if governors - {"performance"}:
        return fault("governor", governors=", ".join(sorted(governors)))
    unknown = "the kernel does not tell (probably a virtual machine)"
    return ok("frequency governor", "performance" if governors else unknown)


def turbo() -> Check:
    """Whether the frequency depends on heat and on the load of the other cores."""
    intel, others = SYSTEM / "intel_pstate" / "no_turbo", SYSTEM / "cpufreq" / "boost"
    enabled = {"0": "1", "1": "0"}.get(kernel.text(intel)) or kernel.text(others)
    if enabled in ("", "0"):
        return ok("turbo", "off" if enabled else "the kernel does not tell")
    file, value = (intel, 1) if kernel.text(intel) else (others, 0)
    return fault("turbo", value=value, file=file)


def load() -> Iterator[Check]:
    """The load of other processes, and of other guests of the host, over `WATCH_S`."""
    # psutil measures from the first look at a process to the second.
    list(psutil.process_iter(["cpu_percent"]))
    before = processors.taken()
    time.sleep(WATCH_S)
    after = processors.taken()
    seen = [(one.pid, one.info) for one in psutil.process_iter(["name", "cpu_percent"])]
    shares = [
        (info["cpu_percent"] / 100, info["name"] or "?", pid)
        for pid, info in seen
        if pid != os.getpid() and info["cpu_percent"] is not None
    ]
    unseen = 0.0
    if before and after:
        busy = (after.busy_s - before.busy_s) / WATCH_S
        known = sum(info["cpu_percent"] or 0.0 for _, info in seen) / 100
        unseen = (busy - known) / len(processors.allowed())
        if busy <= BUSY:
            shares = []  # what is busy runs on other processors than these
    yield other_processes(shares, unseen)
    yield _other_guests(before, after)


def other_processes(shares: Sequence[tuple[float, str, int]], unseen: float = 0.0) -> Check:
    """Warn of processes that take more than `BUSY` of a core; name the busiest of them.

    ``unseen``: the share of the processors that others take, which have no name here.
    """
    busy = sorted((process for process in shares if process[0] > BUSY), reverse=True)
    if not busy and unseen > UNSEEN:
        return fault("unseen_processes", share=unseen)
    if not busy:
        return ok("other load", "no other process takes more than a tenth of a core")
    listed = ", ".join(f"{name} ({pid}) {share:.0%}" for share, name, pid in busy[:MOST_NAMED])
    return fault("other_processes", processes=listed)


def _other_guests(before: Taken | None, after: Taken | None) -> Check:
    """``before`` and ``after`` are `WATCH_S` apart."""
    if before is None or after is None:
        return ok("other guests", "the kernel does not tell")
    stolen = (after.steal_s - before.steal_s) / (WATCH_S * len(processors.allowed()))
    if stolen > STOLEN:
        return fault("other_guests", share=stolen)
    return ok("other guests", f"the host gave {stolen:.1%} of the processors to other guests")


def cores() -> Check:
    """How many of the machine's processors this process may use."""
    total = os.cpu_count() or 1
    usable = len(processors.allowed())
    quota = control_group.processors()
    if quota and quota < usable:
        return fault("quota", quota=quota, total=total)
    return ok("cores", f"{usable} of {total}")


def siblings() -> Check:
    """Whether processors are hardware threads of shared cores."""
    allowed = set(processors.allowed())
    known = [processors.siblings(number) & allowed for number in allowed]
    if shared := sorted({tuple(sorted(group)) for group in known if len(group) > 1}):
        groups = [", ".join(map(str, group)) for group in shared[:4]]
        return fault("shared_cores", groups="; ".join(groups))
    return ok("shared cores", "no hardware threads share a core" if any(known) else "unknown")


def placement() -> Iterator[Check]:
    """Where the host runs two processors: near each other or far, on one core or on two."""
    readings = []
    end = time.monotonic() + READ_S
    while time.monotonic() < end and (reading := probes.read()) is not None:
        readings.append(reading)
        time.sleep(READ_EACH_S)
    if not readings:
        yield ok("hand-off", "not known: needs two processors of Linux and a C++ compiler")
        return
    at = probes.places(readings)
    handoffs_ns = {
        place: [one.handoff_ns for one, where in zip(readings, at, strict=True) if where == place]
        for place in at
    }
    shares = {place: len(those) / len(readings) for place, those in handoffs_ns.items()}
    far, shared = shares.get("far", 0.0), shares.get("shared", 0.0)
    if shared > 0.5:
        factor = statistics.median(reading.together for reading in readings)
        yield fault("hyperthreads", factor=factor)
    # One reading is slow where a thread was not scheduled.
    elif far + shared > OUTLIERS:
        other = statistics.median(handoffs_ns["far" if far >= shared else "shared"])
        near = statistics.median(handoffs_ns["near"])
        yield fault("moved", near=near, other=other, seconds=READ_S, far=far, shared=shared)
    else:
        typical = f"{statistics.median(handoffs_ns['near']):.0f} ns from one processor to another"
        yield ok("hand-off", f"{typical} and back, the same for {READ_S:.0f} s")
    if (share := probes.crowded(readings) or 0.0) > probes.OFTEN_CROWDED:
        over = [each for each in probes.over_quiet(readings) if each and each > probes.CROWDED]
        factor = statistics.median(over)
        yield fault("crowded", share=share, seconds=READ_S, factor=factor)


def allocator() -> Check:
    """The malloc of a new process."""
    preloaded = os.environ.get("LD_PRELOAD", "")
    # To look for a library, Python's ctypes writes a temporary file.
    installed = [name for name in LIBRARIES if temporary() and preload(name)[0]]
    others = f"; installed for --allocator: {', '.join(installed)}" if installed else ""
    if preloaded:
        return ok("allocator", f"LD_PRELOAD={preloaded}, which is recorded{others}")
    return ok("allocator", f"the C library's{others}")


def huge_pages() -> Check:
    """Transparent huge pages: fewer page faults for large tensors."""
    choices = kernel.text(Path("/sys/kernel/mm/transparent_hugepage/enabled"))
    chosen = choices.partition("[")[2].partition("]")[0]
    if chosen == "never":
        return fault("huge_pages")
    return ok("huge pages", chosen or "the kernel does not tell")


def memory() -> Check:
    """Memory for a model and the C++ compilers."""
    available = psutil.virtual_memory().available
    granted = control_group.memory_bytes()
    available = available if granted is None else min(available, granted)
    text = f"{available / 2**30:.1f} GiB available"
    if available < NEEDED_MEMORY_BYTES:
        return fault("memory", available=text)
    return ok("memory", text)


def disk() -> Check:
    """Disk space for compiled code."""
    folder = temporary()
    if folder is None:
        return fault("temporary", name="disk")
    free = shutil.disk_usage(folder).free
    text = f"{free / 2**30:.1f} GiB free for compiled code ({folder})"
    if free < NEEDED_FOR_CACHE_BYTES:
        return fault("disk", free=text, needed=NEEDED_FOR_CACHE_BYTES >> 20)
    return ok("disk", text)

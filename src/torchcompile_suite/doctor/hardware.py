"""Checks of the machine: its processors' speed, who else uses them, memory and disk."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from ..host.allocators import LIBRARIES, preload
from ..measuring.session import NEEDED_FOR_CACHE_BYTES
from .check import Check, error, ok, warning

# How long other processes and other guests are watched.
WATCH_S = 2.0
# Of one processor: more than a terminal and an editor take.
BUSY = 0.10
STOLEN = 0.02
SYSTEM = Path("/sys/devices/system/cpu")
NEEDED_MEMORY_BYTES = 4 << 30


def checks() -> Iterator[Check]:
    """All of them."""
    yield from governor()
    yield from turbo()
    yield from load()
    yield cores()
    yield siblings()
    yield allocator()
    yield huge_pages()
    yield memory()
    yield disk()


def _said(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def governor() -> Iterator[Check]:
    """The policy that sets the processors' frequency."""
    name = "frequency governor"
    found = {_said(file) for file in SYSTEM.glob("cpu[0-9]*/cpufreq/scaling_governor")} - {""}
    if not found:
        yield ok(name, "the kernel does not tell (a virtual machine, most likely)")
    elif found == {"performance"}:
        yield ok(name, "performance")
    else:
        yield warning(
            name,
            f"{', '.join(sorted(found))}: the frequency follows the load",
            "sudo cpupower frequency-set --governor performance",
        )


def turbo() -> Iterator[Check]:
    """Whether the frequency depends on heat and on the other cores."""
    name = "turbo"
    intel, others = SYSTEM / "intel_pstate" / "no_turbo", SYSTEM / "cpufreq" / "boost"
    said = {"0": "1", "1": "0"}.get(_said(intel)) or _said(others)
    if not said:
        yield ok(name, "the kernel does not tell")
    elif said == "0":
        yield ok(name, "off")
    else:
        file, value = (intel, 1) if _said(intel) else (others, 0)
        yield warning(
            name,
            "on: the frequency depends on heat and on the other cores",
            f"echo {value} | sudo tee {file}",
        )


def load() -> Iterator[Check]:
    """What other processes take, and other guests of the host."""
    processes = {}
    for process in psutil.process_iter(["pid", "name"]):
        try:
            process.cpu_percent()
        except psutil.Error:
            continue
        processes[process.pid] = process
    before = psutil.cpu_times()
    time.sleep(WATCH_S)
    after = psutil.cpu_times()
    busy = []
    for process in processes.values():
        try:
            share = process.cpu_percent() / 100
        except psutil.Error:
            continue
        if share > BUSY and process.pid != os.getpid():
            busy.append((share, process.info["name"] or "?", process.pid))
    if busy:
        busy.sort(reverse=True)
        listed = ", ".join(f"{name} ({pid}) {share:.0%}" for share, name, pid in busy[:3])
        yield warning("other load", f"of a core: {listed}", "end it, or wait until it has ended")
    else:
        yield ok("other load", "nothing takes more than a tenth of a core")
    stolen = (getattr(after, "steal", 0.0) - getattr(before, "steal", 0.0)) / (
        WATCH_S * (os.cpu_count() or 1)
    )
    if stolen > STOLEN:
        yield warning(
            "other guests",
            f"the host gave {stolen:.0%} of the processors to others",
            "measure at a quieter time, or on a host of your own",
        )
    else:
        yield ok("other guests", f"the host gave {stolen:.1%} of the processors to others")


def cores() -> Check:
    """How many of the machine's processors this process may use."""
    there = os.cpu_count() or 1
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else there
    quota = _quota()
    if quota and quota < mine:
        return warning(
            "cores",
            f"{quota:g} of {there} by the container's quota, which stops threads in mid-call",
            "give the container whole cores: --cpuset-cpus instead of --cpus",
        )
    return ok("cores", f"{mine} of {there}")


def _quota() -> float:
    """Processors that the control group grants, 0 where it sets no limit (cgroup v2)."""
    said = _said(Path("/sys/fs/cgroup/cpu.max")).split()
    if len(said) != 2 or said[0] == "max":
        return 0.0
    return int(said[0]) / int(said[1])


def siblings() -> Check:
    """Whether processors are hardware threads of shared cores."""
    name = "shared cores"
    groups = {_said(file) for file in SYSTEM.glob("cpu[0-9]*/topology/thread_siblings_list")} - {""}
    shared = [group for group in groups if not group.isdecimal()]
    if not shared:
        return ok(name, "each processor is a core of its own" if groups else "unknown")
    return warning(
        name,
        f"hardware threads share a core: {', '.join(sorted(shared)[:4])}",
        "keep the siblings idle, or bind to one of each pair: taskset --cpu-list",
    )


def allocator() -> Check:
    """Which malloc a process gets."""
    preloaded = os.environ.get("LD_PRELOAD", "")
    known = [name for name in LIBRARIES if preload(name)[0]]
    others = f"; for --allocator there are: {', '.join(known)}" if known else ""
    if preloaded:
        return ok("allocator", f"LD_PRELOAD={preloaded}, which is recorded{others}")
    return ok("allocator", f"the C library's{others}")


def huge_pages() -> Check:
    """Transparent huge pages: fewer page faults for large tensors."""
    said = _said(Path("/sys/kernel/mm/transparent_hugepage/enabled"))
    chosen = said.partition("[")[2].partition("]")[0]
    if chosen == "never":
        return warning(
            "huge pages",
            "never: large tensors cost more page faults",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        )
    return ok("huge pages", chosen or "the kernel does not tell")


def memory() -> Check:
    """What a model and the C++ compilers may take."""
    left = psutil.virtual_memory().available
    said = f"{left / 2**30:.1f} GiB available"
    if left < NEEDED_MEMORY_BYTES:
        return warning("memory", said, "end what holds it: compiling alone takes some GiB")
    return ok("memory", said)


def disk() -> Check:
    """Room for what is compiled."""
    folder = tempfile.gettempdir()
    left = shutil.disk_usage(folder).free
    said = f"{left / 2**30:.1f} GiB free for compiled code ({folder})"
    if left < NEEDED_FOR_CACHE_BYTES:
        return error(
            "disk", said, f"free at least {NEEDED_FOR_CACHE_BYTES >> 20} MiB, or set TMPDIR"
        )
    return ok("disk", said)

"""What the control groups of this process allow: processors and memory, in both versions of Linux'.

A limit may be set at the group of this process or at one around it: by a container, by systemd, by
a batch system.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from . import kernel

ROOT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
_CACHED = re.compile(r"^(?:total_)?inactive_file (\d+)$", re.MULTILINE)


def processors() -> float:
    """The number of processors that is granted; 0 without a limit."""
    granted = []
    for folder in _folders("cpu"):
        limit, _, period = kernel.text(folder / "cpu.max").partition(" ")
        quota = limit or kernel.text(folder / "cpu.cfs_quota_us")
        period = period or kernel.text(folder / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(period):
            granted.append(int(quota) / int(period))
    return min(granted, default=0.0)


def memory_bytes() -> int | None:
    """The memory that is granted and not in use; None without a limit.

    A cached file that nothing has used for long is not in use: the kernel drops it on demand.
    """
    granted = []
    for folder in _folders("memory"):
        limit = kernel.text(folder / "memory.max") or kernel.text(folder / "memory.limit_in_bytes")
        used = kernel.text(folder / "memory.current")
        used = used or kernel.text(folder / "memory.usage_in_bytes")
        # Version 1 has a second figure, with the groups inside of this one.
        cached = _CACHED.findall(kernel.text(folder / "memory.stat"))
        if limit.isdigit():
            in_use = max(0, int(used or 0) - max(map(int, cached), default=0))
            granted.append(max(0, int(limit) - in_use))
    return min(granted, default=None)


def _folders(controller: str) -> Iterator[Path]:
    """The folder of this process's group for that controller, and of each group around it."""
    for line in kernel.text(OWN).splitlines():
        _, names, path = line.split(":", 2)
        if names and controller not in names.split(","):
            continue
        root = ROOT / controller if names else ROOT
        folder = root / path.lstrip("/")
        # In a container the path may be the host's, and the folders those of the container.
        yield from (folder, *(each for each in folder.parents if each.is_relative_to(root)))

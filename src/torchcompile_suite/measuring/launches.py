"""One launch of a cell: how its process starts, whether it is cold or warm, whether it counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from .. import workloads
from ..analysis import statistics
from ..cell import Cell, Launch, Plan, Request
from ..host import allocators
from .processes import Forked, Fresh, Launcher
from .settings import LAUNCH_LIMIT_S

DEFAULT_PLAN = Plan()


def launcher(cell: Cell) -> Launcher:
    """The way to start the cell's launches."""
    if cell.allocator != "system":
        # The dynamic linker preloads the allocator when a program starts: a fork is too late.
        return Fresh({"LD_PRELOAD": allocators.preload(cell.allocator)[0]})
    if cell.device != "cpu":
        return Fresh()
    try:
        imports = workloads.get(cell.workload).imports
    except workloads.WorkloadError:
        imports = ()  # the launch reports the missing workload as its outcome
    return Forked(imports)


def make_launch(
    starter: Launcher,
    cell: Cell,
    cache: Path,
    workspace: Path,
    *,
    plan: Plan = DEFAULT_PLAN,
    observe: bool = True,
    limit_s: float = LAUNCH_LIMIT_S,
) -> Launch:
    """Measure the cell once in a new process: cold where ``cache`` is empty or missing, else warm.

    ``workspace`` is a folder for files that the process and its caller exchange. A launch that
    takes more than ``limit_s`` seconds is ended; its outcome is a timeout.
    """
    cache.mkdir(parents=True, exist_ok=True)
    kind = "warm" if any(cache.iterdir()) else "cold"
    request = Request(cell, kind, str(cache), plan, observe)  # type: ignore[arg-type]
    return starter.run(request, workspace, limit_s)


def mark_disturbed(
    launch: Launch, before: Sequence[Launch], repeats: int, quiet_s: float | None
) -> Launch:
    """The launch, marked as disturbed if a neighbour slowed it: then it does not count.

    ``before`` are the earlier launches of the cell. If ``repeats`` of them are marked, no further
    launch is: a machine that is always disturbed must come to an end. ``quiet_s`` is the time of
    the calibration loop on the quiet machine, in seconds; None if it is not known.
    """
    repeated = len(before) - len(statistics.counted(before))
    if repeated >= repeats or not launch.outcome.ok:
        return launch
    return msgspec.structs.replace(launch, disturbed=statistics.disturbed(launch, quiet_s))

"""One launch of a cell: which way to start its process, and whether it is cold or warm."""

from __future__ import annotations

from pathlib import Path

from .. import workloads
from ..cell import Cell, Launch, Plan, Request
from ..host import allocators
from .processes import Forked, Fresh, Launcher
from .settings import LAUNCH_LIMIT_S

DEFAULT_PLAN = Plan()


def launcher(cell: Cell) -> Launcher:
    """The way to start the cell's launches."""
    if cell.allocator != "system":
        # The linker preloads the allocator, so the process must be new from the very start.
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

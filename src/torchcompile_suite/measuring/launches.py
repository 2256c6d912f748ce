"""One launch of a cell: how its processes start, whether it is cold or warm, whether it counts.

echo '{"cell": {"workload": "resnet18", "batch_size": 1, "mode": "default"},
       "kind": "cold", "cache_dir": "/tmp/cache", "schema": 1}' |
python -m torchcompile_suite.measuring.launches
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from .. import workloads
from ..analysis import statistics
from ..cell import DEFAULT_HEAP, OK, Cell, Heap, Launch, Outcome, Plan, Request, Status
from ..host import allocators
from .processes import Forked, Fresh, Launcher, preload
from .settings import LAUNCH_LIMIT_S
from .starts import Starts

DEFAULT_PLAN = Plan()


def forks(cell: Cell) -> bool:
    """Whether the processes of the cell's launches are forked from one that has imported torch."""
    return cell.device == "cpu" and cell.allocator == "system" and not cell.start


def imports_of(cell: Cell) -> tuple[str, ...]:
    """The libraries that the parent of the cell's forked processes imports, beside torch."""
    try:
        return tuple(workloads.get(cell.workload).imports)
    except workloads.WorkloadError:
        return ()  # the launch reports the missing workload as its outcome


def launcher(cell: Cell) -> Launcher:
    """The way to start the processes of the cell's launches."""
    if cell.start:
        return Starts()
    if cell.allocator != "system":
        # The dynamic linker preloads an allocator when a program starts, and a default heap has to
        # have a script's past: a fork is too late for both.
        preloaded = allocators.preload(cell.allocator)[0]
        return Fresh({"LD_PRELOAD": preloaded} if cell.allocator != DEFAULT_HEAP else {})
    if not forks(cell):
        return Fresh()
    return Forked(imports_of(cell))


def heap_state(cell: Cell) -> Heap:
    """The state that the heap of the cell's processes has to have."""
    settled = cell.device == "cpu" and cell.allocator in ("system", allocators.LIBC)
    # A process that starts is a user's process.
    settled = settled and not cell.start
    return "settled" if settled else "default"


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
    """Measure the cell once in new processes: cold where ``cache`` is empty or missing, else warm.

    ``workspace`` is a folder for what the processes print. A launch that takes more than
    ``limit_s`` seconds is ended; its outcome is a timeout.
    """
    cache.mkdir(parents=True, exist_ok=True)
    kind = "warm" if any(cache.iterdir()) else "cold"
    request = Request(
        cell,
        kind,  # type: ignore[arg-type]
        str(cache),
        plan,
        observe,
        heap=heap_state(cell),
    )
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


def outcome_of(launches: Sequence[Launch]) -> Outcome:
    """The outcome of the first failed launch; ok if every launch is ok."""
    for number, launch in enumerate(launches, 1):
        if not launch.outcome.ok:
            where = f"launch {number}: " if number > 1 else ""
            return Outcome(launch.outcome.status, where + launch.outcome.reason)
    return OK if launches else Outcome(Status.CRASH, "no launch was made")


def main() -> int:
    """One `cell.Request` on stdin, one `cell.Launch` on stdout. Returns the exit status."""
    try:
        request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    except msgspec.DecodeError as error:
        print(f"torchcompile_suite.measuring.launches: not a request: {error}", file=sys.stderr)
        return 2
    request = msgspec.structs.replace(request, heap=heap_state(request.cell))
    if forks(request.cell):
        preload()
    with tempfile.TemporaryDirectory(prefix="launch-") as workspace:
        launch = launcher(request.cell).run(request, Path(workspace), LAUNCH_LIMIT_S)
    sys.stdout.buffer.write(msgspec.json.encode(launch) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

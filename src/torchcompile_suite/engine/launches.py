"""One launch of a cell with the torch of a Python: how its processes start, and cold or warm.

As a program, it makes the launch that a request asks for, with the torch of its own Python:

echo '{"cell": {"workload": "resnet18", "batch_size": 1, "mode": "default"},
       "kind": "cold", "cache_dir": "/tmp/cache", "schema": 1}' |
python -m torchcompile_suite.engine.launches
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from ..cell import DEFAULT_HEAP, Cell
from ..errors import SuiteError
from ..host import allocators
from ..host.orphans import die_with_parent
from ..measurement import Launch
from ..request import Heap, Plan, Request
from . import calibration, generation, processes, starts, turns
from .calibration import RemoteLoop
from .processes import HERE, Environment
from .series import Series
from .settings import LAUNCH_LIMIT_S

DEFAULT_PLAN = Plan()


class Refused(Exception):
    """Nothing of a release or commit can be measured; its argument is the reason."""


def heap_state(cell: Cell) -> Heap:
    """The state that the heap of the cell's processes has to have."""
    settled = cell.device == "cpu" and cell.allocator in ("system", allocators.LIBC)
    # A process that starts is a user's process.
    settled = settled and not cell.start
    return "settled" if settled else "default"


def make(
    environment: Environment,
    cell: Cell,
    cache: Path,
    *,
    plan: Plan = DEFAULT_PLAN,
    observe: bool = True,
    limit_s: float = LAUNCH_LIMIT_S,
) -> Launch:
    """Measure the cell once in new processes: cold where ``cache`` is empty or missing, else warm.

    A launch that takes more than ``limit_s`` seconds is ended; its outcome is a timeout. The code
    of a cell with a target is generated.
    """
    if cell.target:
        return generation.launch(environment, cell, limit_s)
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
    return run(environment, request, limit_s)


def of_series(
    environment: Environment, series: Series, cache: Path, *, observe: bool = True
) -> Launch:
    """A launch as the series wants it (`make`). Raises `Refused` if its Python does not start."""
    try:
        processes.version(environment.python)
    except SuiteError as error:
        raise Refused(str(error)) from None
    return make(
        environment,
        series.cell,
        cache,
        plan=series.plan,
        observe=observe,
        limit_s=series.launch_limit_s,
    )


def run(environment: Environment, request: Request, limit_s: float = LAUNCH_LIMIT_S) -> Launch:
    """The launch that the request asks for, in new processes of that Python."""
    spawn = functools.partial(processes.spawn, environment)
    variables = {}
    allocator = request.cell.allocator
    if allocator not in ("system", DEFAULT_HEAP):
        # The dynamic linker preloads an allocator when a program starts.
        variables["LD_PRELOAD"] = allocators.preload(allocator)[0]
    with tempfile.TemporaryDirectory(prefix="launch-", ignore_cleanup_errors=True) as folder:
        workspace = Path(folder)
        calibrate = calibration_of(environment, workspace / "calibration.log")
        if request.cell.start:
            return starts.launch(spawn, request, workspace, limit_s, calibrate)
        start = functools.partial(spawn, module=starts.MEASURING, variables=variables)
        if request.cell.divided:
            return turns.alone(start, request, workspace, limit_s)
        return turns.launch(start, request, workspace, limit_s, calibrate)


def calibration_of(environment: Environment, log: Path) -> Callable[[int], RemoteLoop]:
    """The calibration loop in that Python, on so many threads."""
    start = functools.partial(processes.spawn, environment, log, calibration.MODULE)
    return functools.partial(RemoteLoop, start)


def main() -> int:
    """One `Request` on stdin, one `Launch` on stdout. Returns the exit status."""
    die_with_parent()
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what else is printed is no answer
    try:
        request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    except msgspec.DecodeError as error:
        print(f"torchcompile_suite.engine.launches: not a request: {error}", file=sys.stderr)
        return 2
    launch = run(HERE, msgspec.structs.replace(request, heap=heap_state(request.cell)))
    with answer:
        answer.write(msgspec.json.encode(launch) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""One launch of a cell with the torch of a Python: how its processes start, and cold or warm.

A cell with a target is generated and not measured (`Generator`).

As a program, it makes the launch that a request asks for, with the torch of its own Python:

echo '{"cell": {"workload": "resnet18", "batch_size": 1, "mode": "default"},
       "kind": "cold", "cache_dir": "/tmp/cache", "schema": 1}' |
python -m torchcompile_suite.engine.launches
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

import msgspec

from .. import workloads
from ..cell import DEFAULT_HEAP, Cell
from ..errors import SuiteError
from ..host import heap
from ..host.orphans import die_with_parent
from ..launch.messages import GENERATOR, TARGET_VARIABLE, Order
from ..measurement import Launch, Outcome, Status
from ..releases import apart
from ..request import Heap, Request
from . import calibration, processes, starts, turns
from .processes import HERE, Environment
from .series import Series
from .settings import LAUNCH_LIMIT_S

# A round takes a millisecond.
CALIBRATION_LIMIT_S = 60.0


class Refused(Exception):
    """Nothing of a release or commit can be measured; its argument is the reason."""


def heap_state(cell: Cell) -> Heap:
    """The state that the heap of the cell's processes has to have."""
    # A process that starts is a user's process.
    settled = cell.device == "cpu" and cell.allocator in ("system", heap.LIBC) and not cell.start
    return "settled" if settled else "default"


def of_series(
    environment: Environment, series: Series, cache: Path, *, observe: bool = True
) -> Launch:
    """A launch as the series wants it, in new processes: cold where ``cache`` is empty or missing,
    else warm.

    A launch that takes longer than the series' limit is ended; its outcome is a timeout. The code
    of a cell with a target is generated. Raises `Refused` if the Python does not start, or cannot
    get a library of the workload's.
    """
    cell, limit_s = series.cell, series.launch_limit_s
    libraries = workloads.libraries(cell.workload)
    try:
        processes.version(environment.python)
        apart.provide(environment.python, libraries)
    except SuiteError as error:
        raise Refused(str(error)) from None
    if cell.target:
        return _generators.of(environment, cell.target, libraries).make(Order(cell), limit_s)
    _generators.close()  # nothing else is in memory beside what is measured
    cache.mkdir(parents=True, exist_ok=True)
    kind: Literal["cold", "warm"] = "warm" if any(cache.iterdir()) else "cold"
    request = Request(cell, kind, str(cache), series.plan, observe, heap=heap_state(cell))
    return run(environment, request, limit_s)


def run(environment: Environment, request: Request, limit_s: float = LAUNCH_LIMIT_S) -> Launch:
    """The launch that the request asks for, in new processes of that Python."""
    spawn = functools.partial(processes.spawn, environment)
    variables = {}
    allocator = request.cell.allocator
    if allocator not in ("system", DEFAULT_HEAP):
        # The dynamic linker preloads an allocator when a program starts.
        variables["LD_PRELOAD"] = heap.preload(allocator)[0]
    with tempfile.TemporaryDirectory(prefix="launch-", ignore_cleanup_errors=True) as folder:
        workspace = Path(folder)
        calibrate = functools.partial(RemoteLoop, environment, workspace / "calibration.log")
        if request.cell.start:
            return starts.launch(spawn, request, workspace, limit_s, calibrate)
        start = functools.partial(spawn, module=starts.MEASURING, variables=variables)
        if request.cell.divided:
            deadline = time.monotonic() + limit_s
            return turns.guarded(
                lambda: turns.whole(start(workspace / "log"), request, deadline), request, limit_s
            )
        return turns.launch(start, request, workspace, limit_s, calibrate)


class Generator:
    """Generates code for one target in a Python, in one process that starts at the first order.

    The process answers for a device that does not exist, so nothing in it is ever measured. Counts
    have no noise: one launch is the measurement.
    """

    def __init__(self, environment: Environment, target: str) -> None:
        """Nothing starts yet. ``target``: a name of `targets`."""
        variables = {**environment.variables, TARGET_VARIABLE: target}
        self._environment = environment._replace(variables=variables)
        self._process: processes.Process | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="generator-", ignore_cleanup_errors=True)

    def make(self, order: Order, limit_s: float = LAUNCH_LIMIT_S) -> Launch:
        """What was generated for the order. A process that fails or takes longer than ``limit_s``
        seconds is a launch with that outcome, which says how far it came.
        """
        try:
            if self._process is None:
                # One that was ended has left its files.
                folder = Path(tempfile.mkdtemp(dir=self._folder.name))
                self._process = processes.spawn(self._environment, folder / "log", GENERATOR)
            self._process.send(msgspec.json.encode(order))
            answer = self._process.receive(time.monotonic() + limit_s)
            return msgspec.json.decode(answer, type=Launch)
        except turns.TimedOut as late:
            reason = f"generating the code took more than {limit_s:.0f} s{turns.how_far(late)}"
            outcome = Outcome(Status.TIMEOUT, reason)
        except turns.Lost as lost:
            reason = f"nothing was generated: {lost.outcome.reason}"
            outcome = Outcome(Status.CRASH, reason[:4000])
        self._end()
        return Launch("cold", outcome)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def close(self) -> None:
        """End the process."""
        self._end()
        self._folder.cleanup()


class _Generators:
    """Keeps the generator of the last cell for the next one: a process starts for as long as the
    code of a small model takes.

    Libraries that lie apart stay imported, so a process sees those of one set only.
    """

    def __init__(self) -> None:
        self._key: object = None
        self._kept: Generator | None = None
        atexit.register(self.close)

    def of(self, environment: Environment, target: str, libraries: tuple[str, ...]) -> Generator:
        """The one for that Python, target and libraries."""
        key = (environment, target, libraries)
        if self._kept is None or key != self._key:
            self.close()
            self._key, self._kept = key, Generator(environment, target)
        return self._kept

    def close(self) -> None:
        """End its process."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()


_generators = _Generators()


class RemoteLoop(calibration.CalibrationLoop):
    """The calibration loop in a process of the Python that is measured, idle between two calls.

    So all launches of a release have the loop of the same zlib, whatever Python drives them.
    """

    def __init__(self, environment: Environment, log: Path, threads: int) -> None:
        """The process starts at ``with``, and writes its errors to ``log``."""
        self._start = functools.partial(processes.spawn, environment, log, calibration.MODULE)
        self._threads = threads
        self._calls_s = []

    def __enter__(self) -> RemoteLoop:
        """See `CalibrationLoop.__enter__`."""
        self._process = self._start()
        self.pids = {self._process.pid}
        try:
            self._process.send(str(self._threads).encode())
            super().__enter__()
        except BaseException:
            self._process.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._process.end()

    def slowest(self) -> float:
        """See `CalibrationLoop.slowest`."""
        self._process.send(b"")
        try:
            return float(self._process.receive(time.monotonic() + CALIBRATION_LIMIT_S))
        except turns.TimedOut:
            reason = f"the calibration loop did not answer within {CALIBRATION_LIMIT_S:.0f} s"
            raise turns.Lost(Outcome(Status.CRASH, reason)) from None


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

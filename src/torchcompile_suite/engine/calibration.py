"""The calibration loop: a fixed piece of work on processors at once, to see how fast they are.

On a shared host, another guest may run on the other hyperthreads of the same cores. The kernel of
this guest does not know about it (its steal time stays 0), but all work takes up to 1.4 times as
long, for minutes or hours, and not all work slows down equally: docs/method.md, "A measurement". A
loop on one processor would miss what happens on the others. A measurement on an accelerator needs
one processor only, and threads on all processors of its host would wait for each other.

The work is compression with zlib. It is the same for every release of torch, it slows down on a
shared core as the interpreter does, and it releases the interpreter's lock.
"""

from __future__ import annotations

import random
import time
import zlib
from collections.abc import Callable, Set
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Protocol

from ..launch.messages import accept

MODULE = "torchcompile_suite.engine.calibration"
ROUNDS = 4
# A round takes a millisecond.
LIMIT_S = 60.0
# Takes about a tenth of a millisecond, with code and tables that fit in a core's own caches.
TEXT = random.Random(0).randbytes(1000).hex().encode() * 30


def threads_for(kind: str, threads: int) -> int:
    """How many threads the loop has: those of torch's calls on a CPU, one on an accelerator."""
    return threads if kind == "cpu" else 1


class CalibrationLoop:
    """Does the fixed work on some threads at each call; `seconds` is the median of its times.

    ``pids``: the processes that do it, beside this one.
    """

    pids: Set[int] = frozenset()

    def __init__(self, threads: int) -> None:
        """Start the threads: one for each processor that the measurement uses."""
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads)
        self._calls_s: list[float] = []

    def __enter__(self) -> CalibrationLoop:
        """Do the work once without counting: the first round of a thread includes its start."""
        self._slowest()
        return self

    def __exit__(self, *_: object) -> None:
        """End the threads."""
        self._pool.shutdown()

    def __call__(self) -> None:
        """Do the work once on each thread. Takes about a millisecond."""
        self._calls_s.append(self._slowest())

    @property
    def seconds(self) -> float | None:
        """Seconds of a round on the slowest thread, median over all calls; None before any call."""
        return median(self._calls_s) if self._calls_s else None

    def _slowest(self) -> float:
        return max(self._pool.map(_rounds, range(self._threads)))


class Process(Protocol):
    """What does the work of a `RemoteLoop`."""

    pid: int

    def send(self, message: bytes) -> None:
        """Send a message."""

    def receive(self, deadline: float) -> bytes:
        """The next message, at most until ``deadline`` (monotonic seconds)."""

    def end(self) -> None:
        """End the process."""


class RemoteLoop(CalibrationLoop):
    """The loop in a process of the Python that is measured, idle between two calls.

    So all launches of a release have the loop of the same zlib, whatever Python drives them.
    """

    def __init__(self, start: Callable[[], Process], threads: int) -> None:
        """``start`` starts ``python -m torchcompile_suite.engine.calibration``."""
        self._start = start
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

    def _slowest(self) -> float:
        self._process.send(b"")
        return float(self._process.receive(time.monotonic() + LIMIT_S))


def _serve() -> None:
    """Do the work for a `RemoteLoop`, until it is gone."""
    connection = accept()
    loop = CalibrationLoop(int(connection.recv_bytes()))
    while True:
        connection.recv_bytes()
        connection.send_bytes(repr(loop._slowest()).encode())


def _rounds(_thread: int) -> float:
    rounds_s = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        zlib.compress(TEXT, 1)
        rounds_s.append(time.perf_counter() - start)
    return median(rounds_s)


if __name__ == "__main__":
    _serve()

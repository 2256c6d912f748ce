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
from collections.abc import Set
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from ..launch.messages import accept
from ..launch.progress import rounded

MODULE = "torchcompile_suite.engine.calibration"
ROUNDS = 4
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
        self.slowest()
        return self

    def __exit__(self, *_: object) -> None:
        """End the threads."""
        self._pool.shutdown()

    def __call__(self) -> None:
        """Do the work once on each thread. Takes about a millisecond."""
        self._calls_s.append(self.slowest())

    @property
    def seconds(self) -> float | None:
        """Seconds of a round on the slowest thread, median over all calls; None before any call."""
        return rounded(median(self._calls_s)) if self._calls_s else None

    def slowest(self) -> float:
        """Do the work once without counting: seconds of a round on the slowest thread."""
        return max(self._pool.map(_rounds, range(self._threads)))


def _serve() -> None:
    """Do the work for a `launches.RemoteLoop`, until it is gone."""
    connection = accept()
    loop = CalibrationLoop(int(connection.recv_bytes()))
    while True:
        connection.recv_bytes()
        connection.send_bytes(repr(loop.slowest()).encode())


def _rounds(_thread: int) -> float:
    rounds_s = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        zlib.compress(TEXT, 1)
        rounds_s.append(time.perf_counter() - start)
    return median(rounds_s)


if __name__ == "__main__":
    _serve()

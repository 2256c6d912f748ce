"""How fast the processors are meanwhile: a fixed piece of work, done on all of them at once.

On a shared host another guest may run on the other hyperthreads of the same cores. The kernel of
this one is not told (its steal time stays 0), and yet all work takes 1.4 times as long, for minutes
or hours, and not all work equally: docs/method.md, Neighbours. A loop on one processor would miss
what happens to the others. The work is zlib's: it is the same for every release of torch, slows
down on a shared core as the interpreter does, and lets go of the interpreter's lock.
"""

from __future__ import annotations

import random
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from types import TracebackType

ROUNDS = 4
# Compressed within a tenth of a millisecond, by code and tables that fit in a core's own caches.
TEXT = random.Random(0).randbytes(1000).hex().encode() * 30


class Yardstick:
    """Times the work on so many threads whenever it is called; `seconds` is the median of it."""

    def __init__(self, threads: int) -> None:
        """Start the threads, one for each processor that is measured on."""
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads)
        self._seen: list[float] = []

    def __enter__(self) -> Yardstick:
        """Itself: its threads end with the block."""
        # A thread's first round pays for its own start.
        self._slowest()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the threads."""
        self._pool.shutdown()

    def __call__(self) -> None:
        """Do the work once on each thread, in a millisecond."""
        self._seen.append(self._slowest())

    @property
    def seconds(self) -> float | None:
        """What a round took on the slowest thread, the median over all calls; None before any."""
        return median(self._seen) if self._seen else None

    def _slowest(self) -> float:
        return max(self._pool.map(_rounds, range(self._threads)))


def _rounds(_thread: int) -> float:
    rounds_s = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        zlib.compress(TEXT, 1)
        rounds_s.append(time.perf_counter() - start)
    return median(rounds_s)

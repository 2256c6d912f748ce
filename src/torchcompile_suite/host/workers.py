"""Work that is divided among processes, one for each processor."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from ..errors import SuiteError
from .orphans import die_with_parent

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(function: Callable[[Item], Result], items: Sequence[Item], most: int) -> Iterator[Result]:
    """What the function makes of each item, in the order of the items.

    At most ``most`` processes; none for one item or one processor. Raises what the function
    raises, and SuiteError if the system ends a process.
    """
    workers = min(len(items), os.cpu_count() or 1, most)
    if workers < 2:
        yield from map(function, items)
        return
    with ProcessPoolExecutor(workers, initializer=_begin) as pool:
        try:
            yield from pool.map(function, items)
        except BrokenProcessPool:
            raise SuiteError(
                "a process was ended from outside, perhaps because the memory was full; end other "
                "programs, then try again"
            ) from None
        except BaseException:  # Ctrl-C does not wait for work in progress
            for worker in multiprocessing.active_children():
                worker.terminate()
            raise


def _begin() -> None:
    """Leave Ctrl-C to this process's parent, and end as soon as the parent ends it, or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    die_with_parent()

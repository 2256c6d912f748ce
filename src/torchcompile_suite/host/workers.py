"""Work that is divided among processes, one for each processor."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from ..errors import SuiteError

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
    with ProcessPoolExecutor(workers) as pool:
        try:
            yield from pool.map(function, items)
        except BrokenProcessPool:
            raise SuiteError(
                "a process was ended from outside, perhaps because the memory was full; end other "
                "programs, then try again"
            ) from None

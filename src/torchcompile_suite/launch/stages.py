"""The stages of a launch: their seconds, and the one in which an error was raised.

Nothing here imports torch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from . import progress, whereabouts


def rounded(seconds: float) -> float:
    """Six significant digits: finer than the noise of any clock, and half the bytes in a record."""
    return float(f"{seconds:.6g}")


class Stages:
    """Records the stages of a launch of one cell.

    - ``now``: the current stage. After an error it still names the stage that raised it.
    - ``seconds``: the time that each finished stage took, all its runs together.
    """

    def __init__(self, cell: str, prefix: str = "") -> None:
        """``cell``: the cell's name, and ``prefix``: what to write before a stage's name, for the
        progress display.
        """
        self._cell = cell
        self._prefix = prefix
        self.now = "start"
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Run the body as the stage of that name."""
        self.now = name
        progress.stage(self._cell, self._prefix + name)
        whereabouts.entered(name)
        start = time.perf_counter()
        try:
            yield
        finally:
            seconds = self.seconds.get(name, 0.0) + time.perf_counter() - start
            self.seconds[name] = round(seconds, 4)

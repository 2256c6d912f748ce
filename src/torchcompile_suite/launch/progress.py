"""How far a measuring process is: what it tells by itself, and what it answers.

- `Event`: something that happened to a cell, for the process that has a terminal.
- `Stages`: the stages of a launch.

Nothing here imports torch.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Literal

import msgspec

from . import whereabouts


class Event(msgspec.Struct, tag=True, frozen=True):
    """Something that happened to a cell.

    - ``known``: its workload was inspected.
    - ``started``: its measurement began.
    - ``stage``: a launch came to another stage.
    - ``learned``: a launch knows something before it ends.
    - ``launched``: a launch ended.
    - ``finished``: the cell is measured, or looked up, or failed.
    """

    cell: Annotated[str, msgspec.Meta(max_length=300)]
    text: str = ""
    kind: Literal["known", "started", "stage", "learned", "launched", "finished"] = "started"


_hear: Callable[[Event], object] | None = None


def tell(event: Event) -> None:
    """Tell who listens, if anyone does. Never raises OSError: progress must not cost a measurement.

    A measuring process has no terminal. Its listener sends the event to its driver, which tells it
    in turn (`engine.processes`).
    """
    if _hear is not None:
        with contextlib.suppress(OSError):
            _hear(event)


def started(name: str) -> None:
    """The measurement of the cell begins."""
    tell(Event(name))


def known(name: str, text: str) -> None:
    """The workload of that name was inspected."""
    tell(Event(name, text, kind="known"))


def stage(name: str, which: str) -> None:
    """A launch of the cell came to that stage."""
    tell(Event(name, which, kind="stage"))


def learned(name: str, text: str) -> None:
    """A launch of the cell knows something that is worth a line before it ends."""
    tell(Event(name, text, kind="learned"))


def launched(name: str, text: str) -> None:
    """A launch of the cell ended."""
    tell(Event(name, text, kind="launched"))


def finished(name: str, text: str) -> None:
    """The cell is done."""
    tell(Event(name, text, kind="finished"))


def failed(name: str, error: Exception) -> None:
    """The cell could not be measured at all."""
    finished(name, f"not measured: {error}")


@contextlib.contextmanager
def listening(hear: Callable[[Event], object]) -> Iterator[None]:
    """Call ``hear`` with every event of this process, and of the processes that it drives, while
    entered.
    """
    global _hear
    before, _hear = _hear, hear
    try:
        yield
    finally:
        _hear = before


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

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Run the body as the stage of that name."""
        self.now = name
        stage(self._cell, self._prefix + name)
        whereabouts.entered(name)
        start = time.perf_counter()
        try:
            yield
        finally:
            seconds = self.seconds.get(name, 0.0) + time.perf_counter() - start
            self.seconds[name] = round(seconds, 4)

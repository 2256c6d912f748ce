"""Events of a measurement, for the process that has a terminal.

Measuring processes have no terminal, so they append events to a file. A thread in the process with
the terminal reads the file and passes the events on.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import msgspec

VARIABLE = "TORCHCOMPILE_SUITE_PROGRESS"
LOOK_EVERY_S = 0.5


class Event(msgspec.Struct):
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


def tell(event: Event) -> None:
    """Write an event, if a process listens. Never raises: progress must not cost a measurement."""
    if file := os.environ.get(VARIABLE):
        try:
            with Path(file).open("ab") as stream:
                stream.write(msgspec.json.encode(event) + b"\n")
        except OSError:
            pass


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


@contextmanager
def listening(hear: Callable[[Event], None]) -> Iterator[None]:
    """Call ``hear`` in a thread with every event of this process's children, while entered."""
    descriptor, name = tempfile.mkstemp(prefix="torchcompile-suite-progress-")
    os.close(descriptor)
    file = Path(name)
    previous = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = name
    stop = threading.Event()

    def listen() -> None:
        with file.open("rb") as stream:
            while True:
                stopping = stop.wait(LOOK_EVERY_S)
                while line := stream.readline():
                    with contextlib.suppress(msgspec.DecodeError):
                        hear(msgspec.json.decode(line, type=Event))
                if stopping:
                    return

    thread = threading.Thread(target=listen, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        if previous is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = previous
        file.unlink(missing_ok=True)

"""Tell the person who waits what is being measured and how long is left.

Sessions and launches run in processes whose output nobody sees, so they write events to a file; a
thread in the process that has a terminal reads it and prints.
"""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from ..analysis import statistics
from ..cell import Launch, Measurement

VARIABLE = "TORCHCOMPILE_SUITE_PROGRESS"
LOOK_EVERY_S = 0.5


class Event(msgspec.Struct):
    """What happened to a cell: its workload was looked at, it began to be measured, a launch of it
    came to another stage or learned something, a launch is done, or the cell is.
    """

    cell: Annotated[str, msgspec.Meta(max_length=300)]
    text: str = ""
    duration_s: float = 0.0
    kind: Literal["known", "started", "stage", "learned", "launched", "finished"] = "started"


def tell(event: Event) -> None:
    """Report an event, if anybody listens. Never raises: progress must not cost a measurement."""
    if file := os.environ.get(VARIABLE):
        try:
            with Path(file).open("ab") as stream:
                stream.write(msgspec.json.encode(event) + b"\n")
        except OSError:
            pass


def started(name: str) -> None:
    """The cell of that name is about to be measured."""
    tell(Event(name))


def known(name: str, text: str) -> None:
    """The workload of that name was looked at."""
    tell(Event(name, text, kind="known"))


def stage(name: str, which: str) -> None:
    """A launch of the cell came to that stage."""
    tell(Event(name, which, kind="stage"))


def learned(name: str, text: str) -> None:
    """A launch of the cell learned something that is worth a line before it is done."""
    tell(Event(name, text, kind="learned"))


def launched(name: str, text: str) -> None:
    """A launch of the cell is done."""
    tell(Event(name, text, kind="launched"))


def finished(name: str, measurement: Measurement, reused: bool) -> None:
    """The cell of that name is known now: measured, or reused from its record."""
    text = summary(measurement) + (" (measured before)" if reused else "")
    tell(Event(name, text, 0.0 if reused else measurement.duration_s, kind="finished"))


def failed(name: str, error: Exception) -> None:
    """The cell of that name could not be measured at all."""
    tell(Event(name, f"not measured: {error}", kind="finished"))


def summary(measurement: Measurement) -> str:
    """A measurement in half a line: time a call, ratio, cost of compiling; or its outcome."""
    if not measurement.outcome.ok:
        return f"{measurement.outcome.status.value}: {measurement.outcome.reason}"
    launches = statistics.counted(measurement.launches)
    latency = statistics.geometric_interval(
        [statistics.launch_latency(launch.pairs_s) for launch in launches]
    )
    ratio = statistics.measured_ratio(launches, measurement.sequential)
    said = f"{latency.value * 1e3:.3g} ms a call, {ratio.value:.2f} of eager's time"
    reach = statistics.half_width(ratio)
    if not math.isnan(reach):
        said += f" +-{reach:.1%}"
    said += f" in {len(launches)} launches"
    aside = len(measurement.launches) - len(launches)
    return said + (f" ({aside} more disturbed and made again)" if aside else "")


def launch_summary(launch: Launch) -> str:
    """One launch in half a line; or its outcome."""
    if not launch.outcome.ok:
        return f"{launch.outcome.status.value}: {launch.outcome.reason}"
    said = (
        f"{statistics.launch_latency(launch.pairs_s) * 1e3:.3g} ms a call, "
        f"{statistics.launch_ratio(launch.pairs_s):.2f} of eager's time"
    )
    return said + (f" (made again: {launch.disturbed})" if launch.disturbed else "")


def left(seconds: float) -> str:
    """A duration in words, as coarse as it is sure."""
    if seconds < 90:
        return "about a minute"
    return f"about {round(seconds / 60)} minutes"


@contextmanager
def listening(hear: Callable[[Event], None]) -> Iterator[None]:
    """While it is entered, ``hear`` gets every event of this process's children, in a thread."""
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


class Progress:
    """Says of each cell when it is begun and what came of it.

    ``total`` gives the number of cells to expect, 0 while that is unknown; ``show`` prints a line.
    """

    def __init__(self, total: Callable[[], int], show: Callable[[str], None]) -> None:
        """Nothing was heard yet."""
        self._total = total
        self._show = show
        self._done = 0
        self._measured_s: list[float] = []

    def hear(self, event: Event) -> None:
        """Print what is worth a line of a long run."""
        total = self._total()
        count = f"cell {self._done + 1}" + (f" of {total}" if total else "")
        now = time.strftime("%H:%M:%S")
        if event.kind == "started":
            self._show(f"{now} {count}: {event.cell}: measuring")
        if event.kind != "finished":
            return
        self._done += 1
        if event.duration_s:
            self._measured_s.append(event.duration_s)
        line = f"{now} {count}: {event.cell}: {event.text}"
        remaining = total - self._done
        if remaining > 0 and self._measured_s:
            mean = sum(self._measured_s) / len(self._measured_s)
            line += f"; {left(remaining * mean)} left"
        self._show(line)

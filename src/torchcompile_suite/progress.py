"""Tell the person who waits what is being measured and how long is left.

The sessions that measure run in processes whose output ASV keeps to itself, so they write events
to a file; a thread in ASV's process reads it and prints.
"""

from __future__ import annotations

import math
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec

from . import statistics
from .cell import Measurement

VARIABLE = "TORCHCOMPILE_SUITE_PROGRESS"
LOOK_EVERY_S = 0.5


class Event(msgspec.Struct):
    """Something worth a line: a cell began to be measured, or is known."""

    cell: Annotated[str, msgspec.Meta(max_length=300)]
    text: str = ""
    duration_s: float = 0.0
    finished: bool = False


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


def finished(name: str, measurement: Measurement, reused: bool) -> None:
    """The cell of that name is known now: measured, or reused from its record."""
    text = summary(measurement) + (" (measured before)" if reused else "")
    tell(Event(name, text, 0.0 if reused else measurement.duration_s, finished=True))


def failed(name: str, error: Exception) -> None:
    """The cell of that name could not be measured at all."""
    tell(Event(name, f"not measured: {error}", finished=True))


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


def left(seconds: float) -> str:
    """A duration in words, as coarse as it is sure."""
    if seconds < 90:
        return "about a minute"
    return f"about {round(seconds / 60)} minutes"


class Progress:
    """Prints events while its body runs, as a context manager.

    ``total`` gives the number of cells to expect, 0 while that is unknown; ``show`` prints a line.
    """

    def __init__(self, total: Callable[[], int], show: Callable[[str], None]) -> None:
        """Nothing happens before the body is entered."""
        self._total = total
        self._show = show
        self._done = 0
        self._measured_s: list[float] = []
        self._stop = threading.Event()

    def __enter__(self) -> Progress:
        """Start listening."""
        descriptor, name = tempfile.mkstemp(prefix="torchcompile-suite-progress-")
        os.close(descriptor)
        self._file = Path(name)
        self._previous = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = name
        self._thread = threading.Thread(target=self._listen, name="progress", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening and remove the file."""
        self._stop.set()
        self._thread.join()
        if self._previous is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = self._previous
        self._file.unlink(missing_ok=True)

    def _listen(self) -> None:
        with self._file.open("rb") as stream:
            while True:
                stopping = self._stop.wait(LOOK_EVERY_S)
                while line := stream.readline():
                    try:
                        self._print(msgspec.json.decode(line, type=Event))
                    except msgspec.DecodeError:
                        continue
                if stopping:
                    return

    def _print(self, event: Event) -> None:
        total = self._total()
        count = f"cell {self._done + 1}" + (f" of {total}" if total else "")
        if not event.finished:
            self._show(f"{time.strftime('%H:%M:%S')} {count}: {event.cell}: measuring")
            return
        self._done += 1
        if event.duration_s:
            self._measured_s.append(event.duration_s)
        line = f"{time.strftime('%H:%M:%S')} {count}: {event.cell}: {event.text}"
        remaining = total - self._done
        if remaining > 0 and self._measured_s:
            mean = sum(self._measured_s) / len(self._measured_s)
            line += f"; {left(remaining * mean)} left"
        self._show(line)

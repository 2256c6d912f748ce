"""The lines that ``asv run`` and ``asv find`` print about cells: figures, counts, time left."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from ..analysis import statistics
from ..measurement import Launch, Measurement


def measurement_line(measurement: Measurement) -> str:
    """A measurement in half a line: time a call, ratio, number of launches; or its outcome.

    Of a cell with a target: what was counted.
    """
    if not measurement.outcome.ok:
        return str(measurement.outcome)
    if (generated := measurement.generated) is not None:
        kernels, calls = generated.total("launches"), generated.total("library_launches")
        return f"{kernels} launches a call, {calls} of them of libraries"
    launches = statistics.counted(measurement.launches)
    latency = statistics.measured_latency(launches)
    ratio = statistics.measured_ratio(launches, measurement.sequential)
    text = f"{_time(latency.value, launches[0])}, {ratio.value:.2f} of eager's time"
    half_width = statistics.half_width(ratio)
    if not math.isnan(half_width):
        text += f" +-{half_width:.1%}"
    text += f" in {len(launches)} launch{'es' * (len(launches) != 1)}"
    if elsewhere := len(statistics.elsewhere(measurement.launches)):
        text += f" ({elsewhere} more at another place of the host)"
    repeated = len(measurement.launches) - len(launches) - elsewhere
    return text + (f" ({repeated} more disturbed and repeated)" if repeated else "")


def launch_line(launch: Launch) -> str:
    """One launch in half a line: time a call and ratio; or its outcome."""
    if not launch.outcome.ok:
        return str(launch.outcome)
    text = (
        f"{_time(statistics.latency_of(launch), launch)}, "
        f"{statistics.ratio_of(launch):.2f} of eager's time"
    )
    return text + (f" (repeated: {launch.disturbed})" if launch.disturbed else "")


def _time(seconds: float, launch: Launch) -> str:
    """What the times of the launch are times of."""
    if launch.start is not None:
        return f"{seconds:.3g} s to the first result"
    return f"{statistics.formatted(seconds * 1e3, '.3g')} ms a call"


def rounded_duration(seconds: float) -> str:
    """A duration in words, rounded to minutes."""
    if seconds < 90:
        return "about a minute"
    return f"about {round(seconds / 60)} minutes"


class CellProgress:
    """Prints a line when a cell begins and a line with its result.

    ``total``: the number of cells to expect; 0 while it is unknown. ``show`` prints a line.
    """

    def __init__(self, show: Callable[[str], None], total: int = 0) -> None:
        """No cell has begun yet."""
        self.total = total
        self._show = show
        self._done = 0
        self._measured_s: list[float] = []

    def started(self, cell: str) -> None:
        """The measurement of the cell begins."""
        self._say(f"{cell}: measuring")

    def finished(self, cell: str, text: str, duration_s: float = 0.0) -> None:
        """The cell is done. ``duration_s`` is 0 for a cell that was looked up."""
        if duration_s:
            self._measured_s.append(duration_s)
        remaining = self.total - self._done - 1
        if remaining > 0 and self._measured_s:
            mean_s = sum(self._measured_s) / len(self._measured_s)
            text += f"; {rounded_duration(remaining * mean_s)} left"
        self._say(f"{cell}: {text}")
        self._done += 1

    def _say(self, text: str) -> None:
        count = f"cell {self._done + 1}" + (f" of {self.total}" if self.total else "")
        self._show(f"{time.strftime('%H:%M:%S')} {count}: {text}")

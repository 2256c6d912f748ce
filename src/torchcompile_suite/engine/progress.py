"""The lines that ``asv run`` and ``asv find`` print about cells: figures, counts, time left."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from statistics import fmean

from ..analysis import statistics
from ..cell import Cell
from ..measurement import Launch, Measurement


def measurement_line(measurement: Measurement) -> str:
    """A measurement in half a line: time a call, ratio, number of launches; or its outcome.

    Of a cell with a target: what was counted.
    """
    if not measurement.outcome.ok:
        return str(measurement.outcome)
    if (generated := measurement.generated) is not None:
        kernels, calls = generated.total("launches"), generated.total("library_launches")
        return f"{kernels} launch{'es' * (kernels != 1)} a call, {calls} of them of libraries"
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


# The two kinds of cells: a time takes a minute or more, generated code some seconds.
_TIMED, _GENERATED = False, True


class CellProgress:
    """Prints a line when a cell begins and a line with its result. ``show`` prints a line."""

    def __init__(self, show: Callable[[str], None]) -> None:
        """No cell has begun yet, and the number of cells is unknown."""
        self._show = show
        self._expected: Counter[bool] = Counter()
        self._done: Counter[bool] = Counter()
        self._taken_s: dict[bool, list[float]] = {_TIMED: [], _GENERATED: []}

    def expect(self, cells: Iterable[Cell], times: int) -> None:
        """All cells of the run: these, so many times. Those that are done are among them."""
        once = Counter(bool(cell.target) for cell in cells)
        self._expected = Counter({kind: number * times for kind, number in once.items()})

    def started(self, cell: Cell) -> None:
        """The measurement of the cell begins."""
        self._say(self._done.total() + 1, f"{cell}: measuring")

    def finished(self, cell: Cell, text: str, duration_s: float = 0.0) -> None:
        """The cell is done. ``duration_s`` is 0 for a cell that was looked up."""
        kind = bool(cell.target)
        self._done[kind] += 1
        if duration_s:
            self._taken_s[kind].append(duration_s)
        self._say(self._done.total(), f"{cell}: {text}{self._left()}")

    def _left(self) -> str:
        """How long the run still takes; empty if that is not known."""
        left = self._expected - self._done
        known_s = {kind: fmean(each) for kind, each in self._taken_s.items() if each}
        if not left or not known_s or (left[_TIMED] and _TIMED not in known_s):
            return ""
        left_s = sum(number * known_s.get(kind, 0.0) for kind, number in left.items())
        return f"; {rounded_duration(left_s)} left"

    def _say(self, number: int, text: str) -> None:
        total = self._expected.total()
        count = f"cell {number}" + (f" of {total}" if total else "")
        self._show(f"{time.strftime('%H:%M:%S')} {count}: {text}")

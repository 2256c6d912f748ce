"""Figures of two cells of one model, one over the other, with intervals, and how to say them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...analysis import statistics
from ...analysis.payoff import Payoff, payoff
from ...analysis.statistics import Interval
from ...cell import Cell, Measurement
from ...results.records import Record
from ..sheets import CELL, Sheet, cell_columns, no_number
from ..wording import listed
from . import _parts

# Measured again, cold compiles of one cell differ by 7 % and warm ones by 10 %. A measurement has
# one cold launch, so its compile time has no interval: a smaller difference is not claimed.
COMPILE_MARGIN = 0.10


class Figures(NamedTuple):
    """The figures of one measurement over its launches. None where it has none.

    - ``eager_s``, ``mode_s``: seconds a call. ``ratio``: the mode over eager, pair by pair.
    - ``cold_s``, ``warm_s``: compile costs in seconds. ``first_s``: the first call of a cold start.
    - ``error``: the largest relative error of the outputs.
    - ``memory_bytes``: the peak memory in the mode.
    """

    eager_s: Interval
    mode_s: Interval
    ratio: Interval
    cold_s: Interval | None
    warm_s: Interval | None
    first_s: Interval | None
    error: float | None
    memory_bytes: Interval | None


def figures(measurement: Measurement | None) -> Figures | None:
    """The figures of a measurement; None of none, and of one that failed."""
    if measurement is None or not measurement.outcome.ok:
        return None
    launches = statistics.counted(measurement.launches)
    cold = [one for one in measurement.launches if one.kind == "cold"]
    errors = [one.accuracy.mode_error for one in launches if one.accuracy is not None]
    known = [error for error in errors if error is not None]
    return Figures(
        eager_s=statistics.measured_eager(launches),
        mode_s=statistics.measured_latency(launches),
        ratio=statistics.measured_ratio(launches, measurement.sequential),
        cold_s=_interval(statistics.compile_costs(measurement.launches, "cold")),
        warm_s=_interval(statistics.compile_costs(measurement.launches, "warm")),
        first_s=_interval([statistics.first_call_of(one) for one in cold]),
        error=max(known, default=None),
        memory_bytes=_interval([one.peak_memory_bytes or 0 for one in launches]),
    )


def _interval(values: Sequence[float]) -> Interval | None:
    """None without values, and if one of them is 0, which has no logarithm."""
    return statistics.geometric_interval(values) if values and min(values) > 0 else None


def over(one: Interval | None, other: Interval | None) -> Interval | None:
    """One figure over another one that was measured independently; None if either is missing."""
    return None if one is None or other is None else statistics.quotient(one, other)


def mean(of: Iterable[Interval | None]) -> Interval | None:
    """The geometric mean of those that are known; None if none is."""
    known = [one for one in of if one is not None]
    return statistics.geometric_mean(known) if known else None


def by_cell(records: Iterable[Record]) -> dict[Cell, Measurement]:
    """The measurement of each cell."""
    return {record.measurement.cell: record.measurement for record in records}


_GROUPS = {
    Payoff.GAIN: "faster for",
    Payoff.LOSS: "slower for",
    Payoff.NONE: "without a gain for",
    Payoff.UNKNOWN: "without a clear difference for",
}


def groups(ratios: Mapping[str, Interval]) -> str:
    """Which of them are faster, slower, or neither, by name: "faster for a (0.80 [0.78, 0.82])".

    The largest difference of a group comes first.
    """
    parts = []
    for kind, words in _GROUPS.items():
        own = {name: ratio for name, ratio in ratios.items() if payoff(ratio) is kind}
        ordered = sorted(own, key=lambda name: -abs(math.log(own[name].value)))
        if own:
            parts.append(f"{words} {listed(f'{name} ({own[name]})' for name in ordered)}")
    return "; ".join(parts)


def sheet(
    columns: Sequence[str],
    lines: Mapping[Cell, Sequence[str] | None],
    measured: Mapping[Cell, Measurement],
) -> Sheet:
    """A line for each cell, by model: its figures, or how it ended where there are none."""
    made = []
    for cell in sorted(lines, key=lambda cell: (cell.workload, cell.batch_size)):
        own = lines[cell]
        if own is None:
            own = no_number(measured[cell].outcome, len(columns))
        made.append([*cell_columns(cell), *own])
    return Sheet([*CELL, *columns], frozenset(("batch", *columns)), made)


def text(value: Interval | None, scale: float = 1.0, spec: str = ".2f") -> str:
    """A figure with its interval; a dash without one."""
    return "-" if value is None else format(value.scaled(scale), spec)


def missing(question: str, measured: Mapping[Cell, Measurement]) -> str:
    """The sentence where no cell of the question has figures."""
    if not measured:
        return _parts.NOTHING
    ends = sorted({one.outcome.status.value for one in measured.values()})
    return f"{question} has no figures here: {len(measured)} cells ended as {listed(ends)}."

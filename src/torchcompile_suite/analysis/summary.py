"""A measurement as one row that answers: does it pay, how surely, and after how many calls?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from ..cell import Cell, Measurement, Outcome
from ..results.records import Record
from . import statistics
from .statistics import Interval


class Row(NamedTuple):
    """One cell of one release on one machine.

    Times are seconds with their 95 % intervals over launches; ``ratio`` is mode over eager, so
    below 1 is a gain. Everything but ``cell``, ``release`` and ``outcome`` is None where there is
    no number: a failed cell, or the compile cost of eager.
    """

    machine: str
    release: str
    cell: Cell
    outcome: Outcome
    eager_s: Interval | None = None
    latency_s: Interval | None = None
    ratio: Interval | None = None
    cold_compile_s: float | None = None
    warm_compile_s: float | None = None
    peak_memory_bytes: int | None = None
    break_even_calls: float | None = None


def row(record: Record) -> Row:
    """The record's measurement as a row."""
    measurement = record.measurement
    known = Row(record.machine, record.release, measurement.cell, measurement.outcome)
    if not measurement.outcome.ok:
        return known
    launches = statistics.counted(measurement.launches)
    eager = statistics.measured_eager(launches)
    latency = statistics.geometric_interval(
        [statistics.launch_latency(launch.pairs_s) for launch in launches]
    )
    ratio = statistics.measured_ratio(launches, measurement.sequential)
    known = known._replace(
        eager_s=eager,
        latency_s=latency,
        ratio=ratio,
        peak_memory_bytes=max((launch.peak_memory_bytes or 0 for launch in launches), default=None),
    )
    if measurement.cell.mode == "eager":
        return known
    cold = _cost(measurement, "cold")
    return known._replace(
        cold_compile_s=cold,
        warm_compile_s=_cost(measurement, "warm"),
        break_even_calls=(
            None if cold is None else statistics.calls_to_break_even(cold, eager.value, ratio.value)
        ),
    )


def _cost(measurement: Measurement, kind: str) -> float | None:
    """The mean compile cost over the launches of that kind, in seconds; None without any."""
    costs = statistics.compile_costs(measurement.launches, kind)
    return math.fsum(costs) / len(costs) if costs else None


def version_key(version: str) -> tuple[tuple[int, ...], float]:
    """Orders versions as releases are: 2.15 after 2.9, a nightly before what it led to."""
    numbers, _, day = version.partition(".dev")
    found = tuple(int(part) for part in numbers.split(".") if part.isdecimal())
    return found, int(day) if day.isdecimal() else math.inf


def rows(records: Iterable[Record], modes: Iterable[str]) -> list[Row]:
    """All records as rows, by machine, release, workload, batch size and mode (as listed)."""
    order = {mode: place for place, mode in enumerate(modes)}

    def key(found: Row) -> tuple[object, ...]:
        cell = found.cell
        place = order.get(cell.mode, len(order))
        at = (cell.workload, cell.batch_size, cell.variant, place, cell.mode)
        return (found.machine, version_key(found.release), *at)

    return sorted((row(record) for record in records), key=key)

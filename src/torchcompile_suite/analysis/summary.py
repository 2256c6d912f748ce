"""A measurement as one row that answers: does it pay, how surely, and after how many calls?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

import msgspec
from packaging.version import InvalidVersion, Version

from .. import modes
from ..cell import Cell
from ..measurement import Measurement, Outcome
from ..modes import EAGER
from ..results.records import Record
from . import statistics
from .statistics import Interval


class Row(msgspec.Struct, frozen=True):
    """One cell of one release on one machine.

    Times are seconds with their 95 % intervals over launches. ``ratio`` is mode over eager, so
    below 1 is a gain. ``eager_s`` and ``latency_s`` are of calls that follow one another; the
    ``single`` ones, on an accelerator, of calls that are each waited for. ``break_even_calls`` is
    an estimate (`break_even` says what can be claimed). All fields after ``outcome`` are None where
    there is no number: for a failed cell, for the compile costs of eager, and for the memory of a
    settled heap.
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
    eager_peak_memory_bytes: int | None = None
    break_even_calls: float | None = None
    eager_single_s: Interval | None = None
    single_s: Interval | None = None


def row(record: Record) -> Row:
    """The record's measurement as a row."""
    measurement = record.measurement
    known = Row(record.machine, record.release, measurement.cell, measurement.outcome)
    if not measurement.outcome.ok:
        return known
    launches = statistics.counted(measurement.launches)
    undisturbed = statistics.undisturbed(measurement.launches)
    eager = statistics.measured_eager(launches)
    ratio = statistics.measured_ratio(launches, measurement.sequential)
    eager_single, single = statistics.measured_single_calls(launches) or (None, None)
    compiled = measurement.cell.mode != EAGER
    cold, warm = (mean_cost(measurement, kind) if compiled else None for kind in ("cold", "warm"))
    paid = None if cold is None else statistics.calls_to_break_even(cold, eager.value, ratio.value)
    return msgspec.structs.replace(
        known,
        eager_s=eager,
        latency_s=statistics.measured_latency(launches),
        ratio=ratio,
        cold_compile_s=cold,
        warm_compile_s=warm,
        peak_memory_bytes=_most(launch.peak_memory_bytes for launch in undisturbed),
        eager_peak_memory_bytes=_most(launch.eager_peak_memory_bytes for launch in undisturbed),
        break_even_calls=paid,
        eager_single_s=eager_single,
        single_s=single,
    )


def _most(peaks_bytes: Iterable[int | None]) -> int | None:
    return max((peak for peak in peaks_bytes if peak is not None), default=None)


def mean_cost(measurement: Measurement, kind: str) -> float | None:
    """Mean compile cost in seconds over the undisturbed launches of that kind ("cold" or "warm").

    There is one cold launch. If it was disturbed, its cost is too large, but better than none.
    None without such a launch.
    """
    costs = statistics.compile_costs(measurement.launches, kind) or statistics.compile_costs(
        measurement.launches, kind, every=True
    )
    return math.fsum(costs) / len(costs) if costs else None


@cache
def version_key(version: str) -> Version:
    """Sort key of releases: 2.15 after 2.9, a nightly build before its release.

    Text that is no version sorts before all versions.
    """
    try:
        return Version(version)
    except InvalidVersion:
        return Version("0.dev0")


def rows(records: Iterable[Record]) -> list[Row]:
    """All records as rows, by machine, release, workload, batch size and mode (`modes.place`)."""

    def key(of: Row) -> tuple[object, ...]:
        cell = of.cell
        at = (cell.workload, cell.batch_size, cell.variant, modes.place(cell.mode), cell.mode)
        return (of.machine, version_key(of.release), *at)

    return sorted((row(record) for record in records), key=key)

"""The figures of every cell of a point: times, ratio, compile costs, break-even, phases."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from ...analysis import statistics
from ...analysis.ends import REMEDY, Ends, both_ends
from ...analysis.payoff import asks_whether_it_pays, best, break_even, payoff
from ...analysis.summary import Row
from ...cell import DEFAULT_HEAP, Cell
from ...modes import EAGER
from .. import cells
from ..content import Entry, Machine
from ..packs import figure, figures
from .common import Table, spread, table

PHASES = {
    "dynamo": "Dynamo",
    "aot_autograd": "AOTAutograd",
    "inductor": "Inductor",
    "kernel_build": "kernel build",
}
# The names of the data are published and do not change.
COLUMNS = [
    *("cell", "workload", "batch_size", "mode", "variant", "question", "label"),
    *("outcome", "reason", "verdict", "fastest"),
    *spread("eager_s"),
    *spread("mode_s"),
    *spread("ratio"),
    *("cold_compile_s", "warm_compile_s", "peak_memory_bytes", "break_even_calls"),
    *("break_even_s", "break_even_state", "users_compile", "asks"),
    *(f"phase_{name}_s" for name in PHASES),
    *("cache_bytes", "compile_peak_memory_bytes", "slowdown"),
]
END_COLUMNS = [
    *("cell", "cell_default"),
    *(
        f"{end}_{name}"
        for end in ("settled", "default")
        for name in (*spread("eager_s"), *spread("mode_s"), *spread("ratio"))
    ),
    *("default_eager_faults", "default_mode_faults", "eager_share", "mode_share"),
]


def document(machine: Machine, point: str, bucket: int) -> Table:
    """The figures of the cells of a bucket, those of one model and question side by side."""
    entries = [
        entry for entry in machine.of(point) if machine.buckets[entry.row.cell.workload] == bucket
    ]
    fastest = best_modes(entry.row for entry in entries)
    rows = [_row(machine, entry, entry.row.cell in fastest) for entry in entries]
    if not machine.several:
        return table(COLUMNS, rows)
    named = ([*row, entry.row.machine] for row, entry in zip(rows, entries, strict=True))
    return table([*COLUMNS, "machine"], named)


def best_modes(rows: Iterable[Row]) -> set[Cell]:
    """The cells of the fastest mode of each model, and those that cannot be told from it.

    Empty for a model with one mode.
    """
    models: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if cells.compiles(row.cell):
            cell = row.cell
            key = (row.machine, cell.workload, cell.batch_size, cell.variant)
            models.setdefault(key, []).append(row)
    return {cell for modes in models.values() if len(modes) > 1 for cell in best(modes)}


def verdict(row: Row) -> str:
    """Whether compiling pays, in one or two words; empty for eager and for a failed cell."""
    return payoff(row.ratio).value if row.outcome.ok and cells.compiles(row.cell) else ""


def users_compile(cell: Cell) -> bool:
    """Whether the cell is compiled as users do it, and not to analyse a gain or show a mistake."""
    users_choice = {"phase", "dtype", "shapes", "baseline", "accumulation", "layout"}
    return cell.mode != EAGER and cell.differs() <= users_choice


def _row(machine: Machine, entry: Entry, fastest: bool) -> list[Any]:
    row, compiled = entry.row, entry.measurement.compiled
    cell = row.cell
    paid = break_even(row)
    phases = compiled.phases_s if compiled else {}
    slowdown = machine.slowdown(entry)
    return [
        *(machine.ids[cell], cell.workload, cell.batch_size, cell.mode, cell.variant),
        *(cells.question(cell), cells.label(cell)),
        *(row.outcome.status.value, row.outcome.reason, verdict(row), fastest),
        *figures(row.eager_s),
        *figures(row.latency_s),
        *figures(row.ratio),
        *(figure(row.cold_compile_s), figure(row.warm_compile_s), row.peak_memory_bytes),
        *(figure(row.break_even_calls), figure(paid.seconds), paid.state.value),
        *(users_compile(cell), asks_whether_it_pays(cell)),
        *(figure(phases.get(name)) for name in PHASES),
        *((compiled.cache_bytes, compiled.peak_memory_bytes) if compiled else (None, None)),
        figure(slowdown) if slowdown > statistics.MOST_SLOWDOWN else None,
    ]


def ends(machine: Machine, point: str) -> Table:
    """The cells that were measured with the settled and with the default heap, and the remedy."""
    both = [
        each for sides in machine.sides.values() for each in both_ends(sides[point].cells.values())
    ]
    return {"remedy": REMEDY, **table(END_COLUMNS, (_ends(machine, each) for each in both))}


def _ends(machine: Machine, both: Ends) -> list[Any]:
    default = msgspec.structs.replace(both.cell, allocator=DEFAULT_HEAP)
    return [
        *(machine.ids[both.cell], machine.ids[default]),
        *(
            number
            for end in (both.settled, both.default)
            for interval in (end.eager_s, end.mode_s, end.ratio)
            for number in figures(interval)
        ),
        *(figure(both.default.eager_faults), figure(both.default.mode_faults)),
        *(figure(both.eager_share), figure(both.mode_share)),
    ]


def least(rows: Iterable[Row]) -> dict[tuple[str, str, int], float]:
    """The smallest ratio of each model, which decides on its place; infinite without any."""
    found: dict[tuple[str, str, int], float] = {}
    for row in rows:
        key = (row.cell.workload, row.cell.variant, row.cell.batch_size)
        value = row.ratio.value if row.ratio is not None else math.inf
        found[key] = min(found.get(key, math.inf), value)
    return found

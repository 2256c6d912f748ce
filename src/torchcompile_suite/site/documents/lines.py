"""Every cell over the points: its times, ratio and compile costs, with the machine's drift."""

from __future__ import annotations

from typing import Any

import msgspec

from ...analysis import history
from ...analysis.payoff import break_even
from ...analysis.statistics import Interval
from ...cell import DEFAULT_HEAP, Cell
from .. import cells
from ..content import Entry, Machine
from ..packs import figure, figures
from . import figures as of_cells
from .common import spread, table

COLUMNS = [
    *("point", "outcome", "reason", "verdict"),
    *spread("eager_s"),
    *spread("mode_s"),
    *spread("ratio"),
    *("cold_compile_s", "warm_compile_s", "break_even_calls", "break_even_state"),
]


def document(machine: Machine, bucket: int) -> dict[str, Any]:
    """The history of each cell of a bucket. The intervals of the times include the drift."""
    by_cell: dict[Cell, list[Entry]] = {}
    for point in machine.points:
        for entry in machine.of(point):
            if machine.buckets[entry.row.cell.workload] == bucket:
                by_cell.setdefault(entry.row.cell, []).append(entry)
    return {
        machine.ids[cell]: {
            "workload": cell.workload,
            "batch_size": cell.batch_size,
            "mode": cell.mode,
            "variant": cell.variant,
            "baseline": cell.baseline,
            "question": cells.question(cell),
            "compiles": cells.compiles(cell),
            "other_end": _other_end(machine, cell),
            **({"machine": machine.machine_of[cell]} if machine.several else {}),
            **table(COLUMNS, (_line(machine, entry) for entry in entries)),
        }
        for cell, entries in by_cell.items()
    }


def _other_end(machine: Machine, cell: Cell) -> str:
    """The same cell at the other end of the heap, if it was measured; else the empty string."""
    allocators = {"system": DEFAULT_HEAP, DEFAULT_HEAP: "system"}
    if cell.allocator not in allocators:
        return ""
    other = msgspec.structs.replace(cell, allocator=allocators[cell.allocator])
    return machine.ids.get(other, "")


def _line(machine: Machine, entry: Entry) -> list[Any]:
    row = entry.row
    drifting: dict[str, Interval] = {
        point.series: point.value
        for point in history.cell_points([row], machine.drifts[row.machine])
    }
    return [
        *(row.release, row.outcome.status.value, row.outcome.reason, of_cells.verdict(row)),
        *(number for name in history.SERIES for number in figures(drifting.get(name))),
        *(figure(row.cold_compile_s), figure(row.warm_compile_s)),
        *(figure(row.break_even_calls), break_even(row).state.value),
    ]

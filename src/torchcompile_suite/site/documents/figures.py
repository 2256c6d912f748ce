"""The figures of every cell: of a point, and over the points with the machine's drift."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from ...analysis import history
from ...analysis.ends import REMEDY, Ends, both_ends
from ...analysis.payoff import Payoff, best, break_even, payoff
from ...analysis.summary import Row
from ...cell import DEFAULT_HEAP, Cell
from ...modes import EAGER
from .. import cells
from ..axis import Axis
from ..content import Entry, Key, Machine
from ..packs import figure, figures, spread, table

PHASES = ("dynamo", "aot_autograd", "inductor", "kernel_build")
BREAK_EVEN = [f"break_even_{name}" for name in ("calls", "least", "most", "s", "state")]
# Two times and their ratio, as the tables have them.
TIMES = [*spread("eager_s"), *spread("mode_s"), *spread("ratio")]
# The names of the data are published and do not change.
COLUMNS = [
    *("cell", "workload", "batch_size", "mode", "variant", "question", "label"),
    *("outcome", "reason", "verdict", "fastest"),
    *TIMES,
    *("cold_compile_s", "warm_compile_s", "peak_memory_bytes", *BREAK_EVEN),
    *("users_compile", "asks"),
    *(f"phase_{name}_s" for name in PHASES),
    *("cache_bytes", "compile_peak_memory_bytes", "slowdown", "baseline"),
]
END_COLUMNS = [
    *("cell", "cell_default"),
    *(f"{end}_{name}" for end in ("settled", "default") for name in TIMES),
    *("default_eager_faults", "default_mode_faults", "eager_share", "mode_share"),
]
LINE_FACTS = ("workload", "batch_size", "mode", "variant", "baseline")
LINE_COLUMNS = [
    *("point", "outcome", "reason", "verdict"),
    *TIMES,
    *("cold_compile_s", "warm_compile_s", *BREAK_EVEN, "slowdown"),
]


def document(machine: Machine, point: str, bucket: int) -> dict[str, Any]:
    """The figures of the cells of a bucket, those of one model and question side by side."""
    entries = machine.of(point, bucket)
    fastest = best_modes((entry.row for entry in entries), machine.slowed)
    rows = [_row(machine, entry, entry.row.cell in fastest) for entry in entries]
    if not machine.several:
        return table(COLUMNS, rows)
    named = ([*row, entry.row.machine] for row, entry in zip(rows, entries, strict=True))
    return table([*COLUMNS, "machine"], named)


def best_modes(rows: Iterable[Row], slowed: Collection[Key]) -> set[Cell]:
    """The cells of the fastest mode of each model, and those that cannot be told from it.

    Empty for a model with one mode, and for one whose modes a neighbour did not slow alike.
    """
    models = cells.grouped(
        (row for row in rows if cells.compiles(row.cell)),
        lambda row: (row.machine, row.cell.workload, row.cell.batch_size, row.cell.variant),
    )
    alike = (
        modes
        for modes in models.values()
        if len({(row.release, row.cell) in slowed for row in modes if row.ratio}) == 1
    )
    return {cell for modes in alike if len(modes) > 1 for cell in best(modes)}


def verdict(row: Row) -> str:
    """Whether compiling pays, in one or two words; empty for eager and for a failed cell."""
    return payoff(row.ratio).value if row.outcome.ok and cells.compiles(row.cell) else ""


def users_compile(cell: Cell) -> bool:
    """Whether the cell is compiled as users do it, and not to analyse a gain or show a mistake."""
    users_choice = {"phase", "dtype", "shapes", "accumulation", "layout"}
    return cell.mode != EAGER and cell.differs() <= users_choice


def _row(machine: Machine, entry: Entry, fastest: bool) -> list[Any]:
    row, compiled = entry.row, entry.measurement.compiled
    cell = row.cell
    phases = compiled.phases_s if compiled else {}
    return [
        *(machine.ids[cell], cell.workload, cell.batch_size, cell.mode, cell.variant),
        *(cells.question(cell), cells.label(cell)),
        *(row.outcome.status.value, row.outcome.reason, verdict(row), fastest),
        *figures(row.eager_s),
        *figures(row.latency_s),
        *figures(row.ratio),
        *(figure(row.cold_compile_s), figure(row.warm_compile_s), row.peak_memory_bytes),
        *paid(row),
        *(users_compile(cell), cell.asks_whether_it_pays),
        *(figure(phases.get(name)) for name in PHASES),
        *((compiled.cache_bytes, compiled.peak_memory_bytes) if compiled else (None, None)),
        *(figure(machine.slowed.get((row.release, cell))), cell.baseline),
    ]


def paid(row: Row) -> list[Any]:
    """The columns `BREAK_EVEN` of a row."""
    found = break_even(row)
    numbers = (row.break_even_calls, found.least, found.most, found.seconds)
    return [*map(figure, numbers), found.state.value]


def ends(machine: Machine, point: str) -> dict[str, Any]:
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


def lines(machine: Machine, bucket: int, fastest: Mapping[str, str]) -> dict[str, Any]:
    """The history of each cell of a bucket. The intervals of the times include the drift.

    ``fastest``: in words, at which point a cell is the fastest, by its name (`fastest.sentences`).
    """
    mine = (entry for point in machine.points for entry in machine.of(point, bucket))
    by_cell = cells.grouped(mine, lambda entry: entry.row.cell)
    return {
        machine.ids[cell]: {
            **{name: getattr(cell, name) for name in LINE_FACTS},
            "question": cells.question(cell),
            "timed": cells.timed(cells.question(cell)),
            "compiles": cells.compiles(cell),
            "other_end": _other_end(machine, entries[0].row),
            "fastest": fastest.get(machine.ids[cell], ""),
            "since": since(machine.axis, [entry.row for entry in entries]),
            **({"machine": entries[0].row.machine} if machine.several else {}),
            **table(LINE_COLUMNS, (_line(machine, entry) for entry in entries)),
        }
        for cell, entries in by_cell.items()
    }


def since(axis: Axis, rows: Sequence[Row]) -> str:
    """Since which point compiling surely pays for a cell, from its row at each, oldest first.

    It surely pays at a point whose verdict is a gain. Each point is judged alone: the one before
    may have been as fast. Empty for a cell with one point, or whose ratio is not of compiling.
    """
    if len(rows) < 2 or not cells.pays(rows[0].cell):
        return ""
    pays = [payoff(row.ratio) is Payoff.GAIN for row in rows]
    lasting = len(list(takewhile(bool, reversed(pays))))
    if lasting == len(rows):
        return f"Compiling surely pays in all {len(rows)} {axis.noun}s."
    if lasting:
        first = axis.facts(rows[-lasting].release).label
        before = rows[-lasting - 1]
        label = axis.facts(before.release).label
        why = (
            f"{label} has no number"
            if before.ratio is None or math.isnan(before.ratio.value)
            else f"{label} has one launch"
            if not before.ratio.known
            else f"{label} is slower"
            if payoff(before.ratio) is Payoff.LOSS
            else f"the interval of {label} reaches 1"
        )
        return f"Compiling surely pays in every measured {axis.noun} since {first}; {why}."
    if not any(pays):
        return f"Compiling surely pays in none of {len(rows)} {axis.noun}s."
    last = max(place for place, gains in enumerate(pays) if gains)
    return (
        f"The last {axis.noun} in which compiling surely pays is "
        f"{axis.facts(rows[last].release).label}."
    )


def _other_end(machine: Machine, row: Row) -> str:
    """The row's cell at the other end of the heap, if the same machine has it; else "".

    A class of machines may have the two ends from two machines. Their times do not compare.
    """
    allocators = {"system": DEFAULT_HEAP, DEFAULT_HEAP: "system"}
    if row.cell.allocator not in allocators:
        return ""
    other = msgspec.structs.replace(row.cell, allocator=allocators[row.cell.allocator])
    return machine.ids[other] if machine.home.get(other) == row.machine else ""


def _line(machine: Machine, entry: Entry) -> list[Any]:
    row = entry.row
    drifting = history.drifting(row, machine.drifts[row.machine])
    return [
        *(row.release, row.outcome.status.value, row.outcome.reason, verdict(row)),
        *(number for name in history.SERIES for number in figures(drifting.get(name))),
        *(figure(row.cold_compile_s), figure(row.warm_compile_s)),
        *paid(row),
        figure(machine.slowed.get((row.release, row.cell))),
    ]

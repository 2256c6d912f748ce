"""The cost of compiling: cold and warm, by phase, and when it is paid back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ...analysis.break_even import State, break_even
from ...analysis.summary import Row
from ...cell import Cell
from ...modes import EAGER
from ...presentation import wording
from .. import charts, paths
from ..content import Content, Entry, Machine, label
from ..page import Figure, Page, Section, Table, Value
from . import common

PHASES = {
    "dynamo": "Dynamo",
    "aot_autograd": "AOTAutograd",
    "inductor": "Inductor",
    "kernel_build": "kernel build",
}


def pages(content: Content) -> Iterator[Page]:
    """One page for each machine and release."""
    return common.page_a_release(content, _page)


def path(machine: Machine) -> str:
    """The page of the newest release."""
    return paths.compiling(machine.name, machine.releases[-1])


def _page(content: Content, machine: Machine, release: str) -> Page:
    entries = [
        entry
        for entry in machine.of(release)
        if entry.row.cold_compile_s is not None and _as_users_compile(entry.row.cell)
    ]
    costs = sorted(entry.row.cold_compile_s or 0.0 for entry in entries)
    answer = ["No cell was compiled with this release on this machine."]
    if costs:
        states = Counter(break_even(entry.row).state for entry in entries)
        answer = [
            f"A cold compile took {costs[0]:.1f} to {costs[-1]:.1f} s; the median of "
            f"{common.plural(len(costs), 'cell')} is {costs[len(costs) // 2]:.1f} s. Compiling "
            f"pays beyond doubt in {states[State.CALLS]} of them and never in "
            f"{states[State.NEVER]}; for {states[State.CANNOT_TELL]} the measurement does not "
            "decide.",
            "Cold: no cache. Warm: with Inductor's disk cache from an earlier process. Each cell "
            "has one cold compile, so its time has no interval.",
        ]
    return Page(
        paths.compiling(machine.name, release),
        "compiling",
        f"What does compiling cost? PyTorch {label(release)}",
        answer,
        [
            *common.machines(content, machine, path),
            common.releases(machine, release, lambda other: paths.compiling(machine.name, other)),
        ],
        [_phases(machine, entries), *_over_time(machine)] if entries else [],
        [_flat(entry) for entry in entries],
    )


def _as_users_compile(cell: Cell) -> bool:
    """Whether the cell is compiled as users do it, and not to analyse a gain or show a mistake."""
    users_choice = {"phase", "dtype", "shapes", "baseline", "accumulation"}
    return cell.mode != EAGER and cell.differs() <= users_choice


def _flat(entry: Entry) -> dict[str, Any]:
    compiled = entry.measurement.compiled
    phases = compiled.phases_s if compiled else {}
    return {
        **common.flat(entry.row),
        "break_even_s": break_even(entry.row).seconds,
        **{f"phase_{name}_s": phases.get(name) for name in PHASES},
        "cache_bytes": compiled.cache_bytes if compiled else None,
        "compile_peak_memory_bytes": compiled.peak_memory_bytes if compiled else None,
    }


def _phases(machine: Machine, entries: list[Entry]) -> Section:
    costly = sorted(entries, key=lambda entry: -(entry.row.cold_compile_s or 0.0))
    shown = {entry.row.cell for entry in costly[: common.MOST_LINES]}
    bars = [
        charts.Part(str(entry.row.cell), title, compiled.phases_s.get(name, 0.0))
        for entry in entries
        if entry.row.cell in shown
        if (compiled := entry.measurement.compiled) is not None
        for name, title in PHASES.items()
    ]
    figure = None
    if bars:
        figure = Figure(
            charts.parts(bars, list(PHASES.values()), "seconds of the cold compile"),
            "The cold compile of each cell by phase, in seconds."
            if len(shown) == len(entries)
            else f"The cold compile by phase, in seconds, of the {len(shown)} slowest cells.",
        )
    lines: list[list[Value]] = [
        [
            common.linked(machine, entry.row, str(entry.row.cell)),
            wording.seconds(entry.row.cold_compile_s),
            wording.seconds(entry.row.warm_compile_s),
            *_phase_values(entry),
            str(break_even(entry.row)),
            _seconds_after(entry.row),
        ]
        for entry in entries
    ]
    columns = ["cold s", "warm s", *PHASES.values(), "pays after", "seconds to pay"]
    table = Table(
        "Seconds lost to calls that compiled, at a cold and at a warm start. The phases are those "
        "of the cold start. Compiling pays after this number of calls, if the gain is beyond "
        "doubt. Seconds to pay: the cold compile, then these calls.",
        ["cell", *columns],
        frozenset(columns),
        lines,
    )
    return Section("By phase", "phases", figure=figure, tables=[table])


def _phase_values(entry: Entry) -> list[str]:
    compiled = entry.measurement.compiled
    return [
        wording.seconds(compiled.phases_s.get(name) if compiled is not None else None)
        for name in PHASES
    ]


def _seconds_after(row: Row) -> str:
    point = break_even(row)
    return f"{point.seconds:,.0f}" if point.state is State.CALLS else ""


def _over_time(machine: Machine) -> list[Section]:
    """Cold and warm compile of each cell by release; no section for a single release."""
    if len(machine.releases) < 2:
        return []
    by_cell: dict[Cell, dict[str, Row]] = {}
    for entry in machine.entries:
        if entry.row.cold_compile_s is not None and _as_users_compile(entry.row.cell):
            by_cell.setdefault(entry.row.cell, {})[entry.row.release] = entry.row
    lines: list[list[Value]] = []
    for cell, rows in by_cell.items():
        if len(rows) < 2:
            continue
        last = rows[max(rows, key=machine.releases.index)]
        lines.append(
            [
                common.linked(machine, last, str(cell)),
                *(_cold_and_warm(rows.get(release)) for release in machine.releases),
            ]
        )
    if not lines:
        return []
    columns = [label(release) for release in machine.releases]
    table = Table(
        "Seconds of the cold / warm compile.", ["cell", *columns], frozenset(columns), lines
    )
    return [Section("By release", "releases", tables=[table])]


def _cold_and_warm(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{wording.seconds(row.cold_compile_s)} / {wording.seconds(row.warm_compile_s)}"

"""One cell on one machine: its history, and the numbers and their origin for each release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ... import matrix
from ...analysis import history, statistics
from ...analysis.break_even import break_even
from ...cell import Cell, Launch, Measurement
from ...modes import EAGER
from ...presentation import wording
from ...releases import catalogue
from ...releases.catalogue import UnknownRelease
from .. import charts, paths
from ..content import Content, Entry, Machine, label
from ..page import Figure, Page, Section, Table, Value
from . import common, compiler

# `Measurement.stopped` -> why there were no more launches.
STOPPED = {
    "fixed": "The number of launches was fixed.",
    "precise": "It ended because the interval was narrow enough.",
    "budget": "It ended because the time budget was spent.",
    "": "It failed.",
}
UNITS = {"eager": "ms a call", "compiled": "ms a call", "ratio": "time ratio"}


def pages(content: Content) -> Iterator[Page]:
    """One page for each machine and cell."""
    grouped = [
        (machine, cell, entries)
        for machine in content.machines
        for cell, entries in _grouped(machine).items()
    ]
    drawn = len(grouped) <= common.MOST_DRAWN_CELLS
    return (_page(machine, cell, entries, drawn) for machine, cell, entries in grouped)


def _grouped(machine: Machine) -> dict[Cell, list[Entry]]:
    by_cell: dict[Cell, list[Entry]] = {}
    for entry in machine.entries:
        by_cell.setdefault(entry.row.cell, []).append(entry)
    return by_cell


def _page(machine: Machine, cell: Cell, entries: list[Entry], drawn: bool) -> Page:
    latest = entries[-1].row
    answer = f"With PyTorch {label(latest.release)} on {machine.name}: "
    if latest.ratio is None:
        answer += f"{latest.outcome.status.value}: {latest.outcome.reason}."
    else:
        answer += (
            f"{wording.milliseconds(latest.latency_s)} ms a call; {cell.baseline} takes "
            f"{wording.milliseconds(latest.eager_s)} ms. The ratio is "
            f"{wording.ratio(latest.ratio)}."
        )
    sections = []
    if len(entries) > 1:
        sections.append(_history(machine, cell, entries, drawn))
    sections += [_release(machine, entry) for entry in reversed(entries)]
    return Page(
        paths.cell(machine.name, cell),
        "cell",
        str(cell),
        [answer],
        [],
        sections,
        [_flat(entry, number, launch) for entry in entries for number, launch in _launches(entry)],
    )


def _launches(entry: Entry) -> list[tuple[int, Launch]]:
    return list(enumerate(entry.measurement.launches, 1))


def _history(machine: Machine, cell: Cell, entries: list[Entry], drawn: bool) -> Section:
    rows = [entry.row for entry in entries]
    points = [
        point._replace(
            release=label(point.release),
            value=point.value if point.series == "ratio" else point.value.scaled(1e3),
        )
        for point in history.cell_points(rows, machine.drift)
        if cell.mode != EAGER or cell.baseline != EAGER or point.series == "eager"
    ]
    releases = [label(release) for release in machine.releases]
    units = {name: unit for name, unit in UNITS.items() if any(p.series == name for p in points)}
    figure = None
    if points and drawn:
        figure = Figure(
            charts.history(points, releases, units), f"{cell}: times and ratio by release."
        )
    lines: list[list[Value]] = [
        [
            common.linked(machine, row, label(row.release)),
            wording.milliseconds(row.eager_s),
            wording.milliseconds(row.latency_s),
            common.paying(machine, row),
            wording.seconds(row.cold_compile_s),
            wording.seconds(row.warm_compile_s),
            str(break_even(row)),
        ]
        for row in rows
    ]
    columns = ["eager ms", "mode ms", "ratio", "cold s", "warm s", "pays after"]
    table = Table(
        "Times, ratio and compile costs by release.",
        ["release", *columns],
        frozenset(columns),
        lines,
    )
    return Section("History", "history", figure=figure, tables=[table])


def _release(machine: Machine, entry: Entry) -> Section:
    measurement = entry.measurement
    outcome = measurement.outcome
    text = [
        f"Measured {measurement.started_at} in {measurement.duration_s:.0f} s, in "
        f"{common.plural(len(measurement.launches), 'launch')}. "
        f"{STOPPED[measurement.stopped]}"
    ]
    if not outcome.ok:
        text.append(f"{outcome.status.value}: {outcome.reason}")
    factor = machine.slowdown(entry)
    if factor > statistics.MOST_SLOWDOWN:
        text.append(
            f"During the measurement, {statistics.neighbour(factor)}. It should be measured again."
        )
    tables = [_table(measurement)]
    if measurement.compiled is not None:
        tables.append(_compiled(measurement))
    if measurement.environment is not None:
        tables.append(_environment(measurement))
    command = reproduce(measurement.cell, entry.row.release)
    if not command:
        text.append(
            "No command: the suite does not contain this workload, or does not know this release."
        )
    return Section(
        f"PyTorch {label(entry.row.release)}",
        paths.slug(entry.row.release),
        text,
        tables=tables,
        code=command,
    )


def reproduce(cell: Cell, release: str) -> str:
    """The command that measures the cell again; empty if the suite lacks the workload or release.

    The pattern is safe between the double quotes of a shell: all names are `cell.Name`.
    """
    pattern = matrix.pattern(cell)
    try:
        tag = catalogue.find(release).tag
    except UnknownRelease:
        return ""
    if pattern is None:
        return ""
    return f'asv run {tag}^! --bench "{pattern}"'


def _table(measurement: Measurement) -> Table:
    lines: list[list[Value]] = []
    for number, launch in enumerate(measurement.launches, 1):
        pairs = launch.pairs_s
        times = ["-", "-", "-"]
        if pairs:
            times = [
                f"{statistics.launch_eager_latency(pairs) * 1e3:.4g}",
                f"{statistics.launch_latency(pairs) * 1e3:.4g}",
                f"{statistics.launch_ratio(pairs):.4f}",
            ]
        first = f"{launch.warm_up_s[0]:.3g}" if launch.warm_up_s else "-"
        note = launch.disturbed or ("" if launch.outcome.ok else launch.outcome.reason)
        lines.append(
            [
                str(number),
                launch.kind,
                *times,
                str(len(pairs)),
                first,
                f"{launch.interference.others_share:.1%}" if launch.interference else "-",
                f"{launch.calibration_s * 1e6:.0f}" if launch.calibration_s else "-",
                _faults(launch),
                launch.heap or "not known",
                note or "counts",
            ]
        )
    columns = ["launch", "start", "eager ms", "mode ms", "ratio", "pairs", "first call s"]
    columns += ["load", "calibration us", "page faults"]
    return Table(
        "Each launch: the medians over its pairs of turns. Load: the share of the processors that "
        "other processes used. Calibration: the time of a fixed loop, which takes longer while "
        "another guest of the host uses the same cores. Page faults: of a call in eager and in the "
        "mode. The data at the end of the page has all pairs.",
        [*columns, "heap", "note"],
        frozenset(columns[2:]),
        lines,
    )


def _faults(launch: Launch) -> str:
    if launch.eager_paging is None or launch.paging is None:
        return "-"
    return f"{launch.eager_paging.faults:,.0f}, {launch.paging.faults:,.0f}"


def _compiled(measurement: Measurement) -> Table:
    compiled = measurement.compiled
    assert compiled is not None
    lines: list[list[Value]] = []
    for field, title in compiler.COLUMNS.items():
        value = compiled.value(field)
        lines.append([title, compiler.shown(value, field), compiled.unknown.get(field, "")])
    lines += [
        [f"break at {graph_break.where}", "", graph_break.reason]
        for graph_break in compiled.graph_breaks
    ]
    columns = ["property", "value", "note"]
    return Table("What the compiler captured and generated.", columns, frozenset(["value"]), lines)


def _environment(measurement: Measurement) -> Table:
    environment = measurement.environment
    assert environment is not None
    facts = {
        "torch": environment.torch,
        "torch's git commit": environment.torch_git,
        "Python": environment.python,
        "CPU": environment.cpu,
        "device": environment.device_name,
        "driver": environment.driver,
        "threads": str(environment.threads),
        "allocator": environment.allocator,
        "compiler": environment.compiler,
        "kernel": environment.kernel,
        "variables": ", ".join(f"{key}={value}" for key, value in environment.variables.items()),
        "packages": ", ".join(f"{key} {value}" for key, value in environment.packages.items()),
        "suite": environment.suite,
    }
    lines: list[list[Value]] = [[key, value] for key, value in facts.items() if value]
    return Table("Environment.", ["property", "value"], frozenset(), lines)


def _flat(entry: Entry, number: int, launch: Launch) -> dict[str, Any]:
    """The data of a launch with its raw pairs. The column names are published and do not change."""
    return {
        "release": entry.row.release,
        "cell": str(entry.row.cell),
        "process": number,
        "start": launch.kind,
        "outcome": launch.outcome.status.value,
        "set_aside": launch.disturbed,
        "method": launch.method,
        "yardstick_s": launch.calibration_s,
        "heap": launch.heap,
        "calls_a_sample": launch.calls_a_sample,
        "pairs_s": launch.pairs_s,
        "warm_up_s": launch.warm_up_s,
    }

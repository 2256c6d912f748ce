"""What changed between two releases beyond noise, and which time changed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from ...analysis import change
from ...analysis.change import Change, ChangeError, Comparison, Difference
from ...cell import Cell, Compiled
from ...presentation import sheets, wording
from .. import charts, paths
from ..content import Content, Machine, label
from ..page import Choice, Figure, Link, Marked, Option, Page, Section, Table, Value
from . import common, compiler

KINDS = {
    Difference.BETTER: "gain",
    Difference.WORSE: "loss",
    Difference.SAME: "none",
    Difference.UNKNOWN: "unknown",
}
# Exact counts: each difference is real. JSON name of the field of `Compiled` -> its published name
# in the data of the page.
COUNTED = {
    "graphs": "graphs",
    "graph_breaks": "graph breaks",
    "recompiles": "recompiles",
    "kernels": "kernels",
    "launches": "launches a call",
    "guards": "guards",
}
# Limit for the lines of a chart that can still be read.
MOST_DRAWN = 40


def pages(content: Content) -> Iterator[Page]:
    """One page for each machine and pair of releases, the earlier release first."""
    return (
        _page(content, machine, before, after)
        for machine in content.machines
        for before, after in combinations(machine.releases, 2)
    )


def path(machine: Machine) -> str:
    """The page of the two newest releases; the machine must have two."""
    before, after = machine.releases[-2:]
    return paths.changes(machine.name, before, after)


def _page(content: Content, machine: Machine, before: str, after: str) -> Page:
    made = Page(
        paths.changes(machine.name, before, after),
        "changes",
        f"What changed from {label(before)} to {label(after)}?",
        [],
        _choices(content, machine, before, after),
    )
    try:
        comparison = change.compare(machine.name, machine.side(before), machine.side(after))
    except ChangeError:
        made.answer = ["No cell was measured with both releases, so nothing can be compared."]
        return made
    counted = _counted(machine, before, after)
    made.answer = [
        wording.judgement(comparison),
        f"At most {change.FALSE_DISCOVERY_RATE:.0%} of the changes that are reported here are "
        "expected to be false discoveries. Not changed: the whole interval is within "
        f"{change.MARGIN:.0%} of no change. Above 1 is slower, or more memory.",
    ]
    made.sections = [
        section
        for section in (
            _moved(made.path, machine, after, comparison),
            _means(comparison),
            _counts_section(machine, after, counted),
            _everything(machine, after, comparison),
            _gaps(comparison),
        )
        if section is not None
    ]
    made.data = [
        {
            "cell": str(cell.cell),
            "figure": name,
            "verdict": effect.difference.value,
            "moved": cell.moved if name == "time ratio" else "",
            **common.spread("factor", effect.factor),
            "p": effect.p,
            "q": effect.q,
        }
        for cell in comparison.changes
        for name, effect in cell.effects.items()
    ] + [
        {"cell": str(cell), "figure": COUNTED[field], "verdict": "", "before": was, "after": now}
        for cell, field, was, now in counted
    ]
    return made


def _choices(content: Content, machine: Machine, before: str, after: str) -> list[Choice]:
    def to(one: str, other: str) -> str:
        return paths.changes(machine.name, one, other)

    order = machine.releases
    at_before, at_after = order.index(before), order.index(after)
    comparable = [other for other in content.machines if len(other.releases) > 1]
    machines = [Option(other.name, path(other), other is machine) for other in comparable]
    return [
        *([Choice("Machine", machines)] if len(machines) > 1 else []),
        Choice(
            "From",
            [Option(label(name), to(name, after), name == before) for name in order[:at_after]],
        ),
        Choice(
            "To",
            [
                Option(label(name), to(before, name), name == after)
                for name in order[at_before + 1 :]
            ],
        ),
    ]


def _line(machine: Machine, after: str, cell: Change, name: str) -> list[Value]:
    effect = cell.effects[name]
    moved = (cell.moved or "cannot tell") if name == "time ratio" else ""
    return [
        Link(str(cell.cell), paths.in_cell(machine.name, cell.cell, after)),
        name,
        wording.ratio(effect.factor),
        Marked(effect.difference.value, KINDS[effect.difference]),
        moved if effect.difference.changed else "",
    ]


def _moved(path: str, machine: Machine, after: str, comparison: Comparison) -> Section | None:
    """The changes beyond noise, worst first; None without any."""
    moved = sorted(
        (
            (cell, name)
            for cell in comparison.changes
            for name, effect in cell.effects.items()
            if effect.difference.changed
        ),
        key=lambda pair: -pair[0].effects[pair[1]].factor.value,
    )
    if not moved:
        return None
    drawn = [*moved[: MOST_DRAWN // 2], *moved[MOST_DRAWN // 2 :][-MOST_DRAWN // 2 :]]
    bars = [
        charts.Bar(
            f"{name}: {cell.cell}",
            cell.effects[name].difference.value,
            cell.effects[name].factor,
            paths.in_cell(machine.name, cell.cell, after),
        )
        for cell, name in drawn
    ]
    some = "" if len(drawn) == len(moved) else f" The chart shows the {len(drawn)} largest."
    series = [Difference.BETTER.value, Difference.WORSE.value]
    return Section(
        "Beyond noise",
        "changes",
        [f"{common.plural(len(moved), 'figure')} changed beyond noise, worst first.{some}"],
        Figure(
            charts.ratios(bars, series, path, "after over before"),
            "The figures that changed: after over before, with 95 % intervals.",
        ),
        [
            Table(
                "The figures that changed beyond noise. The last column is for time ratios: it "
                "names the time that changed.",
                ["cell", "figure", "after/before", "difference", "time that changed"],
                frozenset(["after/before"]),
                [_line(machine, after, cell, name) for cell, name in moved],
            )
        ],
    )


def _means(comparison: Comparison) -> Section:
    sheet = sheets.means(comparison)
    caption = (
        f"Geometric means over the {common.plural(comparison.compared, 'cell')} measured with both "
        "releases."
    )
    return Section(
        "On average", "means", tables=[Table(caption, sheet.columns, sheet.numbers, _lines(sheet))]
    )


def _lines(sheet: sheets.Sheet) -> list[list[Value]]:
    return [list(line) for line in sheet.lines]


def _everything(machine: Machine, after: str, comparison: Comparison) -> Section:
    lines = [
        _line(machine, after, cell, name) for cell in comparison.changes for name in cell.effects
    ]
    table = Table(
        "All figures of the cells that were measured with both releases.",
        ["cell", "figure", "after/before", "difference", "time that changed"],
        frozenset(["after/before"]),
        lines,
    )
    return Section("All figures", "all", tables=[table])


def _gaps(comparison: Comparison) -> Section | None:
    lines: list[list[Value]] = [
        [str(cell.cell), cell.gap] for cell in comparison.changes if cell.gap
    ]
    if not lines:
        return None
    table = Table(
        "The cells that cannot be compared, with the reasons.",
        ["cell", "reason"],
        frozenset(),
        lines,
    )
    return Section("Not compared", "gaps", tables=[table])


def _counted(machine: Machine, before: str, after: str) -> list[tuple[Cell, str, int, int]]:
    """The counts of each cell that differ between the two releases."""
    sides = [
        {made.cell: made.compiled for made in machine.measurements(release) if made.compiled}
        for release in (before, after)
    ]
    return [
        (cell, field, was, now)
        for cell, earlier in sides[0].items()
        if cell in sides[1]
        for field in COUNTED
        if (was := _count(earlier, field)) is not None
        and (now := _count(sides[1][cell], field)) is not None
        and was != now
    ]


def _count(compiled: Compiled, field: str) -> Any:
    value = compiled.value(field)
    return len(value) if isinstance(value, list) else value


def _counts_section(
    machine: Machine, after: str, counted: list[tuple[Cell, str, int, int]]
) -> Section | None:
    if not counted:
        return None
    lines: list[list[Value]] = [
        [
            Link(str(cell), paths.in_cell(machine.name, cell, after)),
            compiler.COLUMNS[field],
            f"{was:,}",
            f"{now:,}",
        ]
        for cell, field, was, now in counted
    ]
    table = Table(
        "The counts that differ. Counts are exact: they have no noise.",
        ["cell", "count", "before", "after"],
        frozenset(["before", "after"]),
        lines,
    )
    return Section("What the compiler made", "counts", tables=[table])

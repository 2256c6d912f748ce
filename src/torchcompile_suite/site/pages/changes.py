"""What changed between two releases beyond noise, and who moved."""

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
from . import common

KINDS = {
    Difference.BETTER: "gain",
    Difference.WORSE: "loss",
    Difference.SAME: "none",
    Difference.UNKNOWN: "unknown",
}
# Counted, not timed: any difference is a real one.
COUNTED = {
    "graphs": "graphs",
    "graph_breaks": "graph breaks",
    "recompiles": "recompiles",
    "kernels": "kernels",
    "launches": "launches a call",
    "guards": "guards",
}
# What a drawing of at most this many lines can still be read in.
MOST_DRAWN = 40


def pages(content: Content) -> Iterator[Page]:
    """One for each machine and pair of releases, the earlier one first."""
    return (
        _page(content, machine, before, after)
        for machine in content.machines
        for before, after in combinations(machine.releases, 2)
    )


def path(machine: Machine) -> str:
    """The newest release against the one before; a page without any pair leads to the verdicts."""
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
        made.answer = ["No cell was measured with both releases, so there is nothing to compare."]
        return made
    counted = _counted(machine, before, after)
    made.answer = [
        wording.judgement(comparison),
        f"False discoveries are held at {change.FALSE_DISCOVERY_RATE:.0%} over all figures; "
        f"not changed means surely within {change.MARGIN:.0%}. Above 1 is slower, or more memory.",
    ]
    made.sections = [
        each
        for each in (
            _moved(made.path, machine, after, comparison),
            _means(comparison),
            _counts_section(machine, after, counted),
            _everything(machine, after, comparison),
            _gaps(comparison),
        )
        if each is not None
    ]
    made.data = [
        {
            "cell": str(each.cell),
            "figure": name,
            "verdict": effect.difference.value,
            "moved": each.moved if name == "time ratio" else "",
            **common.spread("factor", effect.factor),
            "p": effect.p,
            "q": effect.q,
        }
        for each in comparison.changes
        for name, effect in each.effects.items()
    ] + [
        {"cell": str(cell), "figure": what, "verdict": "", "before": was, "after": now}
        for cell, what, was, now in counted
    ]
    return made


def _choices(content: Content, machine: Machine, before: str, after: str) -> list[Choice]:
    def to(one: str, other: str) -> str:
        return paths.changes(machine.name, one, other)

    order = machine.releases
    at_before, at_after = order.index(before), order.index(after)
    able = [each for each in content.machines if len(each.releases) > 1]
    machines = [Option(each.name, path(each), each is machine) for each in able]
    return [
        *([Choice("Machine", machines)] if len(machines) > 1 else []),
        Choice(
            "From",
            [Option(label(each), to(each, after), each == before) for each in order[:at_after]],
        ),
        Choice(
            "To",
            [
                Option(label(each), to(before, each), each == after)
                for each in order[at_before + 1 :]
            ],
        ),
    ]


def _line(machine: Machine, after: str, each: Change, name: str) -> list[Value]:
    effect = each.effects[name]
    moved = (each.moved or "cannot tell") if name == "time ratio" else ""
    return [
        Link(str(each.cell), paths.in_cell(machine.name, each.cell, after)),
        name,
        wording.ratio(effect.factor),
        Marked(effect.difference.value, KINDS[effect.difference]),
        moved if effect.difference.changed else "",
    ]


def _moved(path: str, machine: Machine, after: str, comparison: Comparison) -> Section | None:
    """The changes beyond noise: worst first."""
    found = sorted(
        (
            (each, name)
            for each in comparison.changes
            for name, effect in each.effects.items()
            if effect.difference.changed
        ),
        key=lambda pair: -pair[0].effects[pair[1]].factor.value,
    )
    if not found:
        return None
    drawn = [*found[: MOST_DRAWN // 2], *found[MOST_DRAWN // 2 :][-MOST_DRAWN // 2 :]]
    bars = [
        charts.Bar(
            f"{name}: {each.cell}",
            each.effects[name].difference.value,
            each.effects[name].factor,
            paths.in_cell(machine.name, each.cell, after),
        )
        for each, name in drawn
    ]
    some = "" if len(drawn) == len(found) else f" The drawing has the {len(drawn)} largest."
    series = [Difference.BETTER.value, Difference.WORSE.value]
    return Section(
        "Beyond noise",
        "changes",
        [f"{common.plural(len(found), 'figure')} changed beyond noise, worst first.{some}"],
        Figure(
            charts.ratios(bars, series, path, "after over before"),
            "Figures that changed, after over before, with intervals around 1.",
        ),
        [
            Table(
                "What changed beyond noise. Who moved: whose time made the ratio change.",
                ["cell", "figure", "after/before", "verdict", "who moved"],
                frozenset(["after/before"]),
                [_line(machine, after, each, name) for each, name in found],
            )
        ],
    )


def _means(comparison: Comparison) -> Section:
    sheet = sheets.means(comparison)
    caption = f"Over the {common.plural(comparison.compared, 'cell')} measured with both releases."
    return Section(
        "On average", "means", tables=[Table(caption, sheet.columns, sheet.numbers, _lines(sheet))]
    )


def _lines(sheet: sheets.Sheet) -> list[list[Value]]:
    return [list(line) for line in sheet.lines]


def _everything(machine: Machine, after: str, comparison: Comparison) -> Section:
    lines = [
        _line(machine, after, each, name) for each in comparison.changes for name in each.effects
    ]
    table = Table(
        "Every figure of every cell measured with both.",
        ["cell", "figure", "after/before", "verdict", "who moved"],
        frozenset(["after/before"]),
        lines,
    )
    return Section("All figures", "all", tables=[table])


def _gaps(comparison: Comparison) -> Section | None:
    lines: list[list[Value]] = [
        [str(each.cell), each.gap] for each in comparison.changes if each.gap
    ]
    if not lines:
        return None
    table = Table(
        "Cells that cannot be compared, with the reason.", ["cell", "because"], frozenset(), lines
    )
    return Section("Not compared", "gaps", tables=[table])


def _counted(machine: Machine, before: str, after: str) -> list[tuple[Cell, str, int, int]]:
    """What the compiler made of each cell where the two releases differ."""
    sides = [
        {each.cell: each.compiled for each in machine.measurements(release) if each.compiled}
        for release in (before, after)
    ]
    return [
        (cell, title, was, now)
        for cell, earlier in sides[0].items()
        if cell in sides[1]
        for field, title in COUNTED.items()
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
        [Link(str(cell), paths.in_cell(machine.name, cell, after)), what, f"{was:,}", f"{now:,}"]
        for cell, what, was, now in counted
    ]
    table = Table(
        "Counts that differ. They are exact, so no noise has to be allowed for.",
        ["cell", "count", "before", "after"],
        frozenset(["before", "after"]),
        lines,
    )
    return Section("What the compiler made", "counts", tables=[table])

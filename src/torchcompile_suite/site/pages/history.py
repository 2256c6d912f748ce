"""By release: eager, compiled and their ratio, as geometric means over a fixed cohort."""

from __future__ import annotations

from ...analysis import history
from ...analysis.payoff import asks_whether_it_pays
from ...cell import Cell
from ...presentation.wording import ratio
from .. import charts, paths
from ..content import Content, Machine, label
from ..page import Figure, Link, Page, Section, Table, Value
from . import common
from .payoff import COMPILED

UNITS = {
    "eager": "time against the first release",
    "compiled": "time against the first release",
    "ratio": "time ratio, compiled over eager",
}


def pages(content: Content) -> list[Page]:
    """One for each machine."""
    return [_page(content, machine) for machine in content.machines]


def _page(content: Content, machine: Machine) -> Page:
    sections: list[Section] = []
    said: list[str] = []
    data = []
    for mode in COMPILED:
        rows = [
            entry.row
            for entry in machine.entries
            if entry.row.cell.mode == mode and asks_whether_it_pays(entry.row.cell)
        ]
        releases = [each for each in machine.releases if any(r.release == each for r in rows)]
        found = history.cohort(rows, releases)
        if len(releases) < 2 or not found.cells:
            continue
        points = history.mean_points(rows, releases, found.cells, machine.drift)
        by = {(point.release, point.series): point.value for point in points}
        first, last = releases[0], releases[-1]
        cells = f"{len(found.cells)} of {common.plural(found.of, 'cell')}"
        said.append(
            f"Mode {mode}, {cells} measured in all {len(releases)} releases: the ratio went from "
            f"{ratio(by[first, 'ratio'])} with {label(first)} to {ratio(by[last, 'ratio'])} with "
            f"{label(last)}; eager time to {ratio(by[last, 'eager'])} of what it was, compiled "
            f"time to {ratio(by[last, 'compiled'])}."
        )
        shown = [point._replace(release=label(point.release)) for point in points]
        drawn = charts.history(shown, [label(each) for each in releases], UNITS)
        lines: list[list[Value]] = [
            [label(each), *(ratio(by[each, series]) for series in UNITS)] for each in releases
        ]
        table = Table(
            f"Geometric means over {cells}; times relative to {label(first)}.",
            ["release", *UNITS],
            frozenset(UNITS),
            lines,
        )
        caption = f"Geometric means by release in mode {mode}: eager, compiled and their ratio."
        sections.append(
            Section(
                f"Mode {mode}",
                mode,
                [
                    f"The cohort is fixed: {cells} have numbers in every release shown. The bands "
                    "of the times allow for when they were measured: the same eager time, measured "
                    f"at another moment, may be off by {common.percent(machine.drift)}. Ratios are "
                    "free of that."
                ],
                Figure(drawn, caption),
                [table, _cohort(machine, last, found.cells)],
            )
        )
        data += [
            {
                "mode": mode,
                "release": point.release,
                "series": point.series,
                "cells": len(found.cells),
                "of_cells": found.of,
                **common.spread("value", point.value),
            }
            for point in points
        ]
    return Page(
        paths.history(machine.name),
        "history",
        f"History on {machine.name}",
        [
            *(said or ["Two releases with common cells make a history; here there is none yet."]),
            *common.older_method(machine),
        ],
        common.machines(content, machine, lambda each: paths.history(each.name)),
        sections,
        data,
    )


def _cohort(machine: Machine, release: str, cells: frozenset[Cell]) -> Table:
    return Table(
        f"The cohort, and its ratios with {label(release)}; each leads to its own history.",
        ["cell", "ratio"],
        frozenset(["ratio"]),
        [
            [
                Link(str(row.cell), paths.cell(machine.name, row.cell)),
                common.paying(machine, row),
            ]
            for row in machine.rows(release)
            if row.cell in cells
        ],
    )

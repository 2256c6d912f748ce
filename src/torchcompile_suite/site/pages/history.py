"""By release: eager, compiled and their ratio, as geometric means over a fixed set of cells."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...analysis import history
from ...analysis.payoff import asks_whether_it_pays
from ...analysis.statistics import Interval
from ...cell import Cell
from ...presentation.wording import ratio
from .. import charts, paths
from ..content import Content, Machine, label
from ..page import Figure, Link, Page, Section, Table, Value
from . import common
from .payoff import COMPILED

UNITS = {
    "eager": "time relative to the first release",
    "compiled": "time relative to the first release",
    "ratio": "time ratio, compiled over eager",
}


class _Mode(NamedTuple):
    """The history of one mode: its releases, the cells that all of them have, and the means."""

    name: str
    releases: list[str]
    cohort: history.Cohort
    points: list[history.Point]

    @property
    def cells(self) -> str:
        """How many cells are averaged, of how many, in words."""
        return f"{len(self.cohort.cells)} of {common.plural(self.cohort.of, 'cell')}"

    def mean(self, release: str, series: str) -> Interval:
        """The mean of a series at a release."""
        return next(
            point.value
            for point in self.points
            if (point.release, point.series) == (release, series)
        )


def pages(content: Content) -> list[Page]:
    """One page for each machine."""
    return [_page(content, machine) for machine in content.machines]


def _page(content: Content, machine: Machine) -> Page:
    modes = [mode for name in COMPILED if (mode := _mode(machine, name)) is not None]
    answer = [_sentence(mode) for mode in modes] or [
        "A history needs two releases with common cells. This machine has none yet."
    ]
    return Page(
        paths.history(machine.name),
        "history",
        f"History on {machine.name}",
        [*answer, *common.older_method(machine)],
        common.machines(content, machine, lambda other: paths.history(other.name)),
        [_section(machine, mode) for mode in modes],
        [line for mode in modes for line in _data(mode)],
    )


def _mode(machine: Machine, name: str) -> _Mode | None:
    """The history of a mode; None without two releases that have cells in common."""
    rows = [
        entry.row
        for entry in machine.entries
        if entry.row.cell.mode == name and asks_whether_it_pays(entry.row.cell)
    ]
    measured = {row.release for row in rows}
    releases = [release for release in machine.releases if release in measured]
    cohort = history.cohort(rows, releases)
    if len(releases) < 2 or not cohort.cells:
        return None
    points = history.mean_points(rows, releases, cohort.cells, machine.drift)
    return _Mode(name, releases, cohort, points)


def _sentence(mode: _Mode) -> str:
    first, last = mode.releases[0], mode.releases[-1]
    return (
        f"Mode {mode.name}, {mode.cells} measured in all {len(mode.releases)} releases: the ratio "
        f"was {ratio(mode.mean(first, 'ratio'))} with {label(first)} and is "
        f"{ratio(mode.mean(last, 'ratio'))} with {label(last)}. Relative to {label(first)}, the "
        f"eager time is {ratio(mode.mean(last, 'eager'))} and the compiled time "
        f"{ratio(mode.mean(last, 'compiled'))}."
    )


def _section(machine: Machine, mode: _Mode) -> Section:
    points = [point._replace(release=label(point.release)) for point in mode.points]
    chart = charts.history(points, [label(release) for release in mode.releases], UNITS)
    lines: list[list[Value]] = [
        [label(release), *(ratio(mode.mean(release, series)) for series in UNITS)]
        for release in mode.releases
    ]
    table = Table(
        f"Geometric means over {mode.cells}; times are relative to {label(mode.releases[0])}.",
        ["release", *UNITS],
        frozenset(UNITS),
        lines,
    )
    caption = f"Geometric means by release in mode {mode.name}: eager, compiled and their ratio."
    text = (
        f"The means are over a fixed set of cells: {mode.cells} have numbers in every release "
        "shown. The bands of the times include the between-run drift: the eager time of the same "
        f"work, measured in another run, may differ by {common.percent(machine.drift)}. Ratios "
        "have no drift."
    )
    return Section(
        f"Mode {mode.name}",
        mode.name,
        [text],
        Figure(chart, caption),
        [table, _cohort(machine, mode.releases[-1], mode.cohort.cells)],
    )


def _cohort(machine: Machine, release: str, cells: frozenset[Cell]) -> Table:
    return Table(
        f"The averaged cells and their ratios with {label(release)}, with links to the history of "
        "each cell.",
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


def _data(mode: _Mode) -> list[dict[str, Any]]:
    return [
        {
            "mode": mode.name,
            "release": point.release,
            "series": point.series,
            "cells": len(mode.cohort.cells),
            "of_cells": mode.cohort.of,
            **common.spread("value", point.value),
        }
        for point in mode.points
    ]

"""Geometric means over the points: eager, compiled and their ratio, over a fixed set of cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...analysis import history
from ...analysis.statistics import Interval
from ...analysis.summary import Row
from ...presentation.wording import plural, ratio
from .. import cells
from ..content import Machine, labels
from ..packs import figure, figures
from .common import spread, table

# The value of the choice of the batch size that takes all of them.
ALL = "all"
COLUMNS = ["point", *(column for name in history.SERIES for column in spread(name))]


class Group(NamedTuple):
    """Cells that are shown together: those of a question, and of a batch size or of all of them."""

    question: str
    batch: str

    def has(self, row: Row) -> bool:
        """Whether the row belongs to the group. Eager over eager belongs to none."""
        return (
            cells.compiles(row.cell)
            and cells.question(row.cell) == self.question
            and self.batch in (ALL, str(row.cell.batch_size))
        )


def groups(rows: Iterable[Row]) -> list[Group]:
    """The groups with cells: by question in the order of `cells.ABOUT`, the fullest batch first."""
    found: dict[str, dict[int, int]] = {}
    for row in rows:
        if cells.compiles(row.cell):
            sizes = found.setdefault(cells.question(row.cell), {})
            sizes[row.cell.batch_size] = sizes.get(row.cell.batch_size, 0) + 1
    made = []
    for question in (name for name in cells.ABOUT if name in found):
        sizes = found[question]
        ordered = sorted(sizes, key=lambda size: (-sizes[size], size))
        made += [Group(question, str(size)) for size in ordered]
        if len(sizes) > 1:
            made.append(Group(question, ALL))
    return made


def document(machine: Machine, question: str) -> dict[str, Any]:
    """The means of a question: batch size -> mode -> means. Times are relative to the first point.

    A mode without two points that have cells in common is missing.
    """
    every = [entry.row for entry in machine.entries]
    return {
        "drift": figure(machine.drift),
        "batches": {
            group.batch: modes
            for group in groups(every)
            if group.question == question
            and (modes := _modes(machine, [row for row in every if group.has(row)]))
        },
    }


def _modes(machine: Machine, rows: Sequence[Row]) -> dict[str, Any]:
    made = {}
    for mode in dict.fromkeys(row.cell.mode for row in rows):
        of_mode = [row for row in rows if row.cell.mode == mode]
        if found := _mode(machine, mode, of_mode):
            made[mode] = found
    return made


def _mode(machine: Machine, mode: str, rows: Sequence[Row]) -> dict[str, Any] | None:
    measured = {row.release for row in rows}
    points = [point for point in machine.points if point in measured]
    cohort = history.cohort(rows, points)
    if len(points) < 2 or not cohort.cells:
        return None
    means = {
        (mean.release, mean.series): mean.value
        for mean in machine.mean_points(rows, points, cohort.cells)
    }
    lines = [
        [point, *(number for name in history.SERIES for number in figures(means[point, name]))]
        for point in points
    ]
    return {
        "cells": len(cohort.cells),
        "of": cohort.of,
        "sentence": _sentence(machine, mode, points, cohort, means),
        **table(COLUMNS, lines),
    }


def _sentence(
    machine: Machine,
    mode: str,
    points: Sequence[str],
    cohort: history.Cohort,
    means: dict[tuple[str, str], Interval],
) -> str:
    first, last = labels(machine, [points[0], points[-1]])
    count = f"{len(cohort.cells)} of {plural(cohort.of, 'cell')}"
    noun = f"{len(points)} {machine.axis.noun}s"
    return (
        f"Mode {mode}, {count} measured in all {noun}: the ratio was "
        f"{ratio(means[points[0], 'ratio'])} with {first} and is "
        f"{ratio(means[points[-1], 'ratio'])} with {last}. Relative to {first}, the eager time is "
        f"{ratio(means[points[-1], 'eager'])} and the compiled time "
        f"{ratio(means[points[-1], 'compiled'])}."
    )

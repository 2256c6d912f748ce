"""What the landing page says of a point and of all points.

Of a point: who gains and who loses, what changed, what it costs. Of all points: the geometric means
of eager, compiled and their ratio, over a fixed set of cells.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from ... import workloads
from ...analysis import history, statistics
from ...analysis.payoff import Payoff, State, break_even, counts
from ...analysis.statistics import Interval
from ...analysis.summary import Row
from ...cell import Cell
from ...modes import EAGER
from ...presentation import sheets
from ...presentation.wording import duration, listed, plural, ratio, without_gain
from .. import cells
from ..content import Machine
from ..packs import figure, figures, spread, table
from . import figures as of_cells
from .pairs import PAIR_COLUMNS, pair

# The value of the choice of the batch size that takes all of them.
ALL = "all"
MEAN_COLUMNS = ["point", *(column for name in history.SERIES for column in spread(name))]
# Models of the picture: more cannot be looked at, and would make the page slow to load. The page of
# all models has the rest.
MOST_MODELS = 40
COLUMNS = [
    *("label", "cell", "mode", "outcome", "reason", "verdict", "fastest", "eager_s"),
    *spread("ratio"),
    *("slowdown", "baseline_time"),
]
# Modes that the sentence of a group names.
_MOST_MODES = 5
# Changes and costs: those that are the largest.
MOST_LINES = 5
COST_COLUMNS = ["cell", "cold_compile_s", "warm_compile_s", *of_cells.BREAK_EVEN]


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
    compiled = (row.cell for row in rows if cells.compiles(row.cell))
    found = cells.grouped(compiled, cells.question)
    made = []
    for question in (name for name in cells.ABOUT if name in found):
        sizes = Counter(cell.batch_size for cell in found[question])
        ordered = sorted(sizes, key=lambda size: (-sizes[size], size))
        made += [Group(question, str(size)) for size in ordered]
        if len(sizes) > 1:
            made.append(Group(question, ALL))
    return made


def document(machine: Machine, point: str, before: str) -> dict[str, Any]:
    """The overview of a point. ``before``: the point before it; empty for the first one."""
    rows = [entry.row for entry in machine.of(point)]
    return {
        "groups": [_group(machine, point, rows, group) for group in groups(rows)],
        "changes": _changes(machine, before, point) if before else None,
        "cost": _cost(machine, rows),
    }


def _group(machine: Machine, point: str, rows: Sequence[Row], group: Group) -> dict[str, Any]:
    mine = [row for row in rows if group.has(row)]
    models = _models(mine)
    shown = list(models.values())
    if len(shown) > MOST_MODELS:
        half = MOST_MODELS // 2
        # Models without a number are last, and would hide the smallest gains.
        having = [rows for rows in shown if any(row.ratio is not None for row in rows)] or shown
        shown = having if len(having) <= MOST_MODELS else [*having[:half], *having[-half:]]
    fastest = of_cells.best_modes(mine, machine.slowed)
    by_mode = _by_mode(mine)
    modes = [_mode(mode, of_mode) for mode, of_mode in by_mode.items()]
    of_models = any(_of_model(row) for row in mine)
    measured = [
        {(row.cell.workload, row.cell.batch_size) for row in of_mode if row.ratio is not None}
        for of_mode in by_mode.values()
    ]
    return {
        "question": group.question,
        "batch": group.batch,
        "about": cells.ABOUT[group.question],
        "of_models": of_models,
        "headline": (
            _headline(machine, point, group, modes)
            + _of_programs(group, of_models)
            + _left_out(len(mine) - sum(map(len, by_mode.values())))
            + _slowed(machine, mine)
        ),
        "baseline": " or ".join(sorted({row.cell.baseline for row in mine})),
        "modes": [{**mode, "mean": figures(mode["mean"])} for mode in modes],
        "models": len(models),
        "alike": all(of_mode == measured[0] for of_mode in measured),
        **table(
            COLUMNS,
            (
                [*_row(machine, row, row.cell in fastest, group.batch == ALL), baseline]
                for of_model in shown
                for baseline in [_baseline(of_model)]
                for row in of_model
            ),
        ),
    }


def _models(rows: Sequence[Row]) -> dict[tuple[str, str, int], list[Row]]:
    """The rows of each model; the model with the largest gain first, those without numbers last."""
    models = cells.grouped(
        rows, lambda row: (row.cell.workload, row.cell.variant, row.cell.batch_size)
    )
    return dict(sorted(models.items(), key=lambda model: _least_ratio(model[1])))


def _least_ratio(rows: Sequence[Row]) -> float:
    return min([math.inf, *(row.ratio.value for row in rows if row.ratio is not None)])


def _of_model(row: Row) -> bool:
    return not workloads.made_for(row.cell.workload)


def _by_mode(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each mode and variant: those of models; all where no model is among them.

    A mean over two ways to start, two backends or two dtypes would answer no question.
    """
    every = list(rows)
    models = list(filter(_of_model, every))
    return cells.grouped(models or every, lambda row: _variant(row.cell))


def _variant(cell: Cell) -> str:
    """The mode, and how the cell differs from others of its question."""
    if cells.question(cell) == "training":
        return sheets.mode_of_phase(cell)
    return sheets.cell_columns(cell)[-1]


def _row(machine: Machine, row: Row, fastest: bool, with_batch: bool) -> list[Any]:
    name = cells.label(row.cell)
    return [
        f"{name}, batch {row.cell.batch_size}" if with_batch else name,
        *(machine.ids[row.cell], row.cell.mode, row.outcome.status.value, row.outcome.reason),
        *(of_cells.verdict(row), fastest),
        figure(row.eager_s.value) if row.eager_s else None,
        *figures(row.ratio),
        figure(machine.slowed.get((row.release, row.cell))),
    ]


def _baseline(rows: Sequence[Row]) -> str:
    """The time of a model's baseline; that of each mode if a neighbour may have slowed some."""
    times = {row.cell.mode: row.eager_s.value for row in rows if row.eager_s}
    if max(times.values(), default=0) <= statistics.MOST_SLOWDOWN * min(times.values(), default=0):
        return duration(next(iter(times.values()), None))
    return ", ".join(f"{duration(time)} ({mode})" for mode, time in times.items())


def _mode(mode: str, rows: Sequence[Row]) -> dict[str, Any]:
    """How many cells of a mode and variant gain and lose, and the mean ratio."""
    ratios = statistics.having(row.ratio for row in rows if row.ratio is not None)
    return {
        "mode": mode,
        "cells": sum(row.ratio is not None for row in rows),
        "without": sum(row.ratio is None for row in rows),
        "counts": counts(rows),
        "baseline": " or ".join(sorted({row.cell.baseline for row in rows})),
        "mean": statistics.geometric_mean(ratios) if ratios else None,
    }


def _headline(machine: Machine, point: str, group: Group, modes: Sequence[dict[str, Any]]) -> str:
    """The answer in one sentence: that of the mode with most cells, or of each if several have."""
    title = machine.axis.facts(point).title
    measured = [mode for mode in modes if mode["cells"]]
    if not measured:
        return f"No {group.question} cell has a number with {title} on {machine.title}."
    most = max(mode["cells"] for mode in measured)
    fullest = [mode for mode in measured if mode["cells"] == most]
    size = "all batch sizes" if group.batch == ALL else f"batch size {group.batch}"
    call = cells.timed(group.question)
    if all(mode["mode"].partition(":")[0] != EAGER for mode in fullest):
        call = f"compiled {call}"
    call = f"{'Measured wrongly, a' if group.question == 'protocol' else 'A'} {call}"
    takes = f"{call} takes {'on average ' * (most > 1)}"
    where = f"{group.question}, {size}, {machine.title}."
    if len(fullest) > 1:  # such as ways to start: none of them stands for the others
        each = listed(
            [f"{ratio(mode['mean'])} ({mode['mode']})" for mode in fullest[:_MOST_MODES]]
            + ["..."] * (len(fullest) > _MOST_MODES)
        )
        baselines = " or ".join(sorted({mode["baseline"] for mode in fullest}))
        return f"{takes}{each} of {baselines}'s time: {title}, {where}"
    mode = fullest[0]
    number: dict[Payoff, int] = mode["counts"]
    return (
        f"{takes}{ratio(mode['mean'])} of {mode['baseline']}'s time: {title}, mode "
        f"{mode['mode']}, {where} It is faster in {number[Payoff.GAIN]} of "
        f"{plural(mode['cells'], 'cell')}{without_gain(number)}."
    )


def _of_programs(group: Group, of_models: bool) -> str:
    """The sentence that says that small programs stand where one expects models; or empty."""
    if of_models or group.question in workloads.MADE_FOR.values():
        return ""
    return " No model was measured: these are small programs, made for other questions."


def _left_out(number: int) -> str:
    """The sentence that says how many cells are in no mean; empty if none."""
    if not number:
        return ""
    return f" In no mean: {plural(number, 'cell')} of workloads that another question has."


def _slowed(machine: Machine, rows: Sequence[Row]) -> str:
    """The sentence that says how many cells should be measured again; empty if none."""
    timed = [row for row in rows if row.ratio is not None]
    slowed = sum((row.release, row.cell) in machine.slowed for row in timed)
    if not slowed:
        return ""
    return (
        f" Measured while the processors were slower than at their best, mostly because of another "
        f"virtual machine: {slowed} of the {plural(len(timed), 'cell')} of all modes. Such times "
        "are too long; a ratio compares turns within a launch."
    )


def _changes(machine: Machine, before: str, after: str) -> dict[str, Any]:
    """The largest changes against the point before; no sentence if no cell has both points."""
    found = pair(machine, before, after)
    sentence, rows = (found["sentence"], found["changes"]["rows"]) if found else ("", [])
    changed = [row for row in rows if row[2] in ("worse", "better")]
    changed.sort(key=lambda row: -abs(math.log(row[4])))
    top = table(PAIR_COLUMNS, changed[:MOST_LINES])
    return {"before": before, "sentence": sentence, **top}


def _cost(machine: Machine, rows: Sequence[Row]) -> dict[str, Any] | None:
    """What compiling costs, and the most expensive compiles; None if nothing was compiled."""
    mine = [
        row for row in rows if row.cold_compile_s is not None and of_cells.users_compile(row.cell)
    ]
    if not mine:
        return None
    mine.sort(key=lambda row: (-(row.cold_compile_s or 0.0), machine.ids[row.cell]))
    costs = [row.cold_compile_s or 0.0 for row in reversed(mine)]
    states = Counter(break_even(row).state for row in mine)
    return {
        "sentence": (
            f"A cold compile took {costs[0]:.1f} to {costs[-1]:.1f} s; the median of "
            f"{plural(len(costs), 'cell')} is {median(costs):.1f} s. By their 95 % intervals, "
            f"compiling pays in {states[State.CALLS]} of them and never in {states[State.NEVER]}; "
            f"for {states[State.CANNOT_TELL]} the measurement does not decide."
        ),
        **table(COST_COLUMNS, (_cost_row(machine, row) for row in mine[:MOST_LINES])),
    }


def _cost_row(machine: Machine, row: Row) -> list[Any]:
    return [
        *(machine.ids[row.cell], figure(row.cold_compile_s), figure(row.warm_compile_s)),
        *of_cells.paid(row),
    ]


def means(machine: Machine, question: str) -> dict[str, Any]:
    """The means of a question: batch size -> mode -> means. Times are relative to the first point.

    A mode without two points that have cells in common is missing.
    """
    every = [entry.row for entry in machine.entries]
    return {
        "batches": {
            group.batch: modes
            for group in groups(every)
            if group.question == question
            and (modes := _means_of_modes(machine, filter(group.has, every)))
        },
    }


def _means_of_modes(machine: Machine, rows: Iterable[Row]) -> dict[str, Any]:
    return {
        mode: means
        for mode, of_mode in _by_mode(rows).items()
        if (means := _means_of_mode(machine, mode, of_mode))
    }


def _means_of_mode(machine: Machine, mode: str, rows: Sequence[Row]) -> dict[str, Any] | None:
    measured = {row.release for row in rows}
    points = [point for point in machine.points if point in measured]
    cohort = history.cohort(rows, points)
    if len(points) < 2 or not cohort.cells:
        return None
    means = history.means(rows, points, cohort.cells, machine.drifts)
    lines = [
        [point, *(number for name in history.SERIES for number in figures(means[point, name]))]
        for point in points
    ]
    return {
        "cells": len(cohort.cells),
        "sentence": _means_in_words(machine, mode, points, cohort, means),
        **table(MEAN_COLUMNS, lines),
    }


def _means_in_words(
    machine: Machine,
    mode: str,
    points: Sequence[str],
    cohort: history.Cohort,
    means: Mapping[tuple[str, str], Interval],
) -> str:
    first, last = (machine.axis.facts(point).label for point in (points[0], points[-1]))
    count = f"{len(cohort.cells)} of {plural(cohort.of, 'cell')}"
    noun = f"{len(points)} {machine.axis.noun}s"
    return (
        f"Mode {mode}, {count} measured in all {noun}: the ratio was "
        f"{ratio(means[points[0], 'ratio'])} with {first} and is "
        f"{ratio(means[points[-1], 'ratio'])} with {last}. Relative to {first}, the eager time is "
        f"{ratio(means[points[-1], 'eager'])} and "
        f"{'the time in the mode' if mode.partition(':')[0] == EAGER else 'the compiled time'} "
        f"{ratio(means[points[-1], 'compiled'])}."
    )

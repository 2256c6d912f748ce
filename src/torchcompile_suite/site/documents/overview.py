"""What the landing page says of a point: who gains and who loses, what changed, what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...analysis import statistics
from ...analysis.payoff import Payoff, State, break_even, counts
from ...analysis.statistics import Interval
from ...analysis.summary import Row
from ...presentation.wording import plural, ratio
from .. import cells
from ..content import Machine
from ..packs import figure, figures
from . import figures as of_cells
from . import means, pairs
from .common import spread, table
from .means import ALL, Group

# Models of the picture: more cannot be looked at, and would make the page slow to load. The page of
# all models has the rest.
MOST_MODELS = 40
COLUMNS = [
    *("label", "cell", "mode", "outcome", "reason", "verdict", "fastest", "eager_s"),
    *spread("ratio"),
]
COSTS = 5
COST_COLUMNS = [
    *("cell", "cold_compile_s", "warm_compile_s"),
    *("break_even_calls", "break_even_s", "break_even_state"),
]


def document(machine: Machine, point: str, before: str) -> dict[str, Any]:
    """The overview of a point. ``before``: the point before it; empty for the first one."""
    rows = [entry.row for entry in machine.of(point)]
    return {
        "groups": [_group(machine, point, rows, group) for group in means.groups(rows)],
        "changes": _changes(machine, before, point) if before else None,
        "cost": _cost(machine, rows),
    }


def _group(machine: Machine, point: str, rows: Sequence[Row], group: Group) -> dict[str, Any]:
    mine = [row for row in rows if group.has(row)]
    models = _models(mine)
    shown = list(models)
    if len(shown) > MOST_MODELS:
        half = MOST_MODELS // 2
        shown = [*shown[:half], *shown[-half:]]
    fastest = of_cells.best_modes(mine)
    modes = [_mode(mine, mode) for mode in dict.fromkeys(row.cell.mode for row in mine)]
    return {
        "question": group.question,
        "batch": group.batch,
        "about": cells.ABOUT[group.question],
        "headline": _headline(machine, point, group, modes),
        "modes": [{**mode, "mean": figures(mode["mean"])} for mode in modes],
        "models": len(models),
        **table(
            COLUMNS,
            (
                _row(machine, row, row.cell in fastest, group.batch == ALL)
                for key in shown
                for row in models[key]
            ),
        ),
    }


def _models(rows: Sequence[Row]) -> dict[tuple[str, str, int], list[Row]]:
    """The rows of each model; the model with the largest gain first, those without numbers last."""
    place = of_cells.least(rows)
    models: dict[tuple[str, str, int], list[Row]] = {}
    for row in sorted(rows, key=lambda row: place[_model(row)]):
        models.setdefault(_model(row), []).append(row)
    return models


def _model(row: Row) -> tuple[str, str, int]:
    return (row.cell.workload, row.cell.variant, row.cell.batch_size)


def _row(machine: Machine, row: Row, fastest: bool, with_batch: bool) -> list[Any]:
    name = cells.label(row.cell)
    return [
        f"{name}, batch {row.cell.batch_size}" if with_batch else name,
        *(machine.ids[row.cell], row.cell.mode, row.outcome.status.value, row.outcome.reason),
        *(of_cells.verdict(row), fastest),
        figure(row.eager_s.value) if row.eager_s else None,
        *figures(row.ratio),
    ]


def _mode(rows: Sequence[Row], mode: str) -> dict[str, Any]:
    """How many cells of a mode gain and lose, and the mean ratio."""
    mine = [row for row in rows if row.cell.mode == mode]
    ratios = [row.ratio for row in mine if row.ratio is not None]
    return {
        "mode": mode,
        "cells": len(ratios),
        "without": len(mine) - len(ratios),
        "counts": {pays.value: number for pays, number in counts(mine).items()},
        "mean": statistics.geometric_mean(ratios) if ratios else None,
    }


def _headline(machine: Machine, point: str, group: Group, modes: Sequence[dict[str, Any]]) -> str:
    """The answer in one sentence: that of the mode with most cells."""
    title = machine.axis.facts(point).title
    measured = [mode for mode in modes if mode["cells"]]
    if not measured:
        return f"No {group.question} cell has a number with {title} on {machine.title}."
    mode = max(measured, key=lambda mode: mode["cells"])
    number = mode["counts"]
    size = "all batch sizes" if group.batch == ALL else f"batch size {group.batch}"
    mean: Interval = mode["mean"]
    others = "".join(
        f", {pays.value} in {number[pays.value]}"
        for pays in Payoff
        if pays is not Payoff.GAIN and number[pays.value]
    )
    return (
        f"{title} on {machine.title}, {group.question}, {size}: mode {mode['mode']} is faster than "
        f"its baseline in {number[Payoff.GAIN.value]} of {plural(mode['cells'], 'cell')}{others}; "
        f"on average a call takes {ratio(mean)} of the baseline's time."
    )


def _changes(machine: Machine, before: str, after: str) -> dict[str, Any]:
    """The largest changes against the point before."""
    pair = pairs.pair(machine, before, after)
    return {
        "before": before,
        "sentence": pair.sentence,
        **table(pairs.COLUMNS, pair.top),
    }


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
            f"{plural(len(costs), 'cell')} is {costs[len(costs) // 2]:.1f} s. Compiling pays "
            f"beyond doubt in {states[State.CALLS]} of them and never in {states[State.NEVER]}; "
            f"for {states[State.CANNOT_TELL]} the measurement does not decide."
        ),
        **table(COST_COLUMNS, (_cost_row(machine, row) for row in mine[:COSTS])),
    }


def _cost_row(machine: Machine, row: Row) -> list[Any]:
    paid = break_even(row)
    return [
        *(machine.ids[row.cell], figure(row.cold_compile_s), figure(row.warm_compile_s)),
        *(figure(row.break_even_calls), figure(paid.seconds), paid.state.value),
    ]

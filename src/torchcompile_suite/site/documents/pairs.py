"""Two points compared, as ``report`` compares them, by `analysis.change`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ...analysis.change import (
    MOST_FINDINGS,
    ChangeError,
    Comparison,
    findings,
    mean_difference,
)
from ...compiled import Compiled
from ...presentation import sheets, stories
from ...presentation.wording import averaged, judgement
from ...results import cached
from ...results.cached import Made
from .. import packs
from ..content import Machine
from ..packs import figure, figures, spread, table
from .launches import COMPILED, counted

# Exact counts, by their JSON name: each difference is real.
COUNTED = ("graphs", "graph_breaks", "recompiles", "kernels", "launches", "guards")
PAIR_COLUMNS = ["cell", "figure", "verdict", "moved", *spread("factor"), "p", "q", "paired"]


def pair(machine: Machine, before: str, after: str) -> dict[str, Any] | None:
    """The comparison; None if no cell was measured at both points.

    Pairs take most of a machine's time. So each is kept until one of its points has another
    measurement.
    """
    key = (*machine.machines, before, after, machine.digests[before], machine.digests[after])
    made = cached.get(
        "pairs", key, lambda: Made(msgspec.json.encode(_pair(machine, before, after)))
    )
    return msgspec.json.decode(made)  # type: ignore[no-any-return]


def _pair(machine: Machine, before: str, after: str) -> dict[str, Any] | None:
    try:
        comparison = machine.compare(before, after)
    except ChangeError:
        return None
    means = comparison.means.items()
    found = findings(comparison)[:MOST_FINDINGS]
    return {
        "sentence": judgement(comparison),
        "whole": packs.sheet(sheets.means(comparison)),
        "most": packs.sheet(sheets.findings(found)),
        "cells": len(comparison.changes),
        "compared": comparison.compared,
        "averaged": averaged(comparison),
        "means": table(
            ["figure", *spread("mean"), "judged", "cells"],
            (
                [name, *figures(mean), mean_difference(name, mean).value, _having(comparison, name)]
                for name, mean in means
            ),
        ),
        "changes": table(PAIR_COLUMNS, _effects(machine, comparison)),
        "gaps": table(
            ["cell", "reason"],
            ([machine.ids[one.cell], one.gap] for one in comparison.changes if one.gap),
        ),
        "counts": table(["cell", "count", "before", "after"], _counts(machine, before, after)),
        "reasons": table(
            ["cell", "says"],
            (
                [machine.ids.get(one.cell, str(one.cell)), one.says]
                for one in stories.reasons(machine.divided, before, after)
            ),
        ),
    }


def _having(comparison: Comparison, name: str) -> int:
    return sum(name in one.effects for one in comparison.changes if one.cell in comparison.in_means)


def _effects(machine: Machine, comparison: Comparison) -> Iterator[list[Any]]:
    for one in comparison.changes:
        for name, effect in one.effects.items():
            yield [
                *(machine.ids[one.cell], name, effect.difference.value, one.moved_by(name)),
                *figures(effect.factor),
                *(figure(effect.p), figure(effect.q), effect.paired),
            ]


def _counts(machine: Machine, before: str, after: str) -> Iterator[list[Any]]:
    """The counts of each cell that differ between the two points."""
    sides = [
        {made.cell: made.compiled for made in machine.measurements(point) if made.compiled}
        for point in (before, after)
    ]
    for cell, earlier in sides[0].items():
        if cell in sides[1]:
            yield from _of_cell(machine.ids[cell], earlier, sides[1][cell])


def _of_cell(name: str, earlier: Compiled, later: Compiled) -> Iterator[list[Any]]:
    for field in COUNTED:
        was, now = counted(earlier, field), counted(later, field)
        if was is not None and now is not None and was != now:
            yield [name, COMPILED[field], was, now]

"""Two points compared, by `analysis.change`: the same comparison as that of ``report``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...analysis.change import Change, ChangeError, Comparison
from ...compiled import Compiled
from ...presentation import wording
from .. import packs
from ..content import Machine
from ..packs import Encoded, figure, figures, spread, table
from .launches import COMPILED, counted

# Exact counts, by their JSON name: each difference is real.
COUNTED = ("graphs", "graph_breaks", "recompiles", "kernels", "launches", "guards")
COLUMNS = ["cell", "figure", "verdict", "moved", *spread("factor"), "p", "q", "paired"]
# Of a probability: nobody needs more.
_DIGITS = 4


def document(machine: Machine, before: str, after: str) -> Encoded:
    """The comparison, from the user's cache if neither point has new measurements.

    None if no cell was measured at both points.
    """
    key = machine.key(before, after)
    return packs.kept("pairs", key, lambda: packs.encode(_pair(machine, before, after)), Encoded)


def _pair(machine: Machine, before: str, after: str) -> dict[str, Any] | None:
    try:
        comparison = machine.compare(before, after)
    except ChangeError:
        return None
    means = comparison.means.items()
    return {
        "sentence": wording.judgement(comparison),
        "cells": len(comparison.changes),
        "compared": comparison.compared,
        "paired": comparison.paired,
        "noise": figure(comparison.noise),
        "means": table(
            ["figure", *spread("mean"), "cells"],
            ([name, *figures(mean), _having(comparison, name)] for name, mean in means),
        ),
        "changes": table(COLUMNS, _rows(machine, comparison)),
        "gaps": table(
            ["cell", "reason"],
            ([machine.ids[one.cell], one.gap] for one in comparison.changes if one.gap),
        ),
        "counts": table(["cell", "count", "before", "after"], _counts(machine, before, after)),
    }


def _having(comparison: Comparison, name: str) -> int:
    return sum(name in one.effects for one in comparison.changes)


def _rows(machine: Machine, comparison: Comparison) -> Iterator[list[Any]]:
    for one in comparison.changes:
        for name, effect in one.effects.items():
            yield [
                *(machine.ids[one.cell], name, effect.difference.value, _moved(one, name)),
                *figures(effect.factor),
                *(round(effect.p, _DIGITS), round(effect.q, _DIGITS), effect.paired),
            ]


def _moved(one: Change, name: str) -> str:
    """Which time changed, for a time ratio that changed; else the empty string."""
    if name != "time ratio" or not one.effects[name].difference.changed:
        return ""
    return one.moved or "cannot tell"


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

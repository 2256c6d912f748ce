"""Two points compared, by `analysis.change`: the same comparison as that of ``report``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec

from ...analysis.change import Change, ChangeError, Comparison
from ...cell import Compiled
from ...presentation import wording
from ...results import cached
from ...results.cached import Made
from .. import packs
from ..content import Machine
from ..packs import Encoded, figure, figures
from .common import COMPILED, counted, spread, table

# Exact counts, by their JSON name: each difference is real.
COUNTED = ("graphs", "graph_breaks", "recompiles", "kernels", "launches", "guards")
COLUMNS = ["cell", "figure", "verdict", "moved", *spread("factor"), "p", "q", "paired"]
# Of a probability: nobody needs more.
_DIGITS = 4
TOP = 5


class Pair(msgspec.Struct):
    """A comparison: its document, encoded, and its largest changes, as rows of the document.

    ``sentence`` is empty if no cell was measured at both points.
    """

    digest: str
    data: bytes
    sentence: str
    top: list[list[Any]]

    @property
    def encoded(self) -> Encoded:
        """The document."""
        return Encoded(self.digest, self.data)


def pair(machine: Machine, before: str, after: str) -> Pair:
    """The comparison, from the user's cache if neither point has new measurements."""
    key = (
        *(machine.name, str(machine.method), machine.axis.noun),
        *(before, machine.origins[before], after, machine.origins[after]),
        # The name of a cell depends on the other cells of the machine where two have the same text.
        *sorted(name for cell, name in machine.ids.items() if name != str(cell)),
    )

    def make() -> Made:
        return Made(msgspec.msgpack.encode(_pair(machine, before, after)))

    return msgspec.msgpack.decode(cached.get("pairs", key, make), type=Pair)


def _pair(machine: Machine, before: str, after: str) -> Pair:
    try:
        comparison = machine.compare(before, after)
    except ChangeError:
        return Pair(*packs.encode(None), "", [])
    rows = list(_rows(machine, comparison))
    document = {
        "sentence": wording.judgement(comparison),
        "cells": len(comparison.changes),
        "compared": comparison.compared,
        "paired": comparison.paired,
        "noise": figure(comparison.noise),
        "means": table(
            ["figure", *spread("mean"), "cells"],
            (
                [name, *figures(mean), _having(comparison, name)]
                for name, mean in comparison.means.items()
            ),
        ),
        "changes": table(COLUMNS, rows),
        "gaps": table(
            ["cell", "reason"],
            ([machine.ids[one.cell], one.gap] for one in comparison.changes if one.gap),
        ),
        "counts": table(["cell", "count", "before", "after"], _counts(machine, before, after)),
    }
    changed = [row for row in rows if row[2] in ("worse", "better")]
    changed.sort(key=lambda row: -abs(math.log(row[4])))
    return Pair(*packs.encode(document), wording.judgement(comparison), changed[:TOP])


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

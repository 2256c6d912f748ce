"""The largest changes: what shows alike in many cells is one finding."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import NamedTuple

from .comparison import Change, Comparison
from .discovery import Difference, Effect

# A figure that changed in one direction in so many cells is one finding: a cause of one cell is
# rarely the cause of five.
ALIKE = 5
# So many are shown first.
MOST_FINDINGS = 10


class Finding(NamedTuple):
    """A figure that changed in one direction: in one cell, or in several, the largest change first.

    ``of``: the cells with their effects. ``measured``: the number of cells with the figure.
    """

    name: str
    difference: Difference
    of: list[tuple[Change, Effect]]
    measured: int


def findings(comparison: Comparison) -> list[Finding]:
    """What changed beyond noise: figures that changed in many cells, then the other cells.

    Each of the other cells has one finding, its largest change. A change is as large as its
    interval is sure of.
    """
    alike: dict[tuple[str, Difference], list[tuple[Change, Effect]]] = defaultdict(list)
    for change in comparison.changes:
        for name, effect in change.effects.items():
            if effect.difference.changed:
                alike[name, effect.difference].append((change, effect))
    many = {key: of for key, of in alike.items() if len(of) >= ALIKE}
    found = [_finding(comparison, *key, of) for key, of in many.items()]
    found.sort(key=lambda one: -len(one.of))
    of_one = []
    for change in comparison.changes:
        rest = [
            (name, effect)
            for name, effect in change.effects.items()
            if effect.difference.changed and (name, effect.difference) not in many
        ]
        if rest:
            name, effect = max(rest, key=lambda each: _sure(each[1]))
            of_one.append(_finding(comparison, name, effect.difference, [(change, effect)]))
    of_one.sort(key=lambda one: -_sure(one.of[0][1]))
    return found + of_one


def _finding(
    comparison: Comparison, name: str, difference: Difference, of: list[tuple[Change, Effect]]
) -> Finding:
    measured = sum(name in change.effects for change in comparison.changes)
    return Finding(name, difference, sorted(of, key=lambda each: -_sure(each[1])), measured)


def _sure(effect: Effect) -> float:
    """The log of the factor that the whole interval has at least."""
    return min(abs(math.log(bound)) for bound in (effect.factor.low, effect.factor.high))

"""Since which point compiling surely pays for a cell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from ...analysis.payoff import Payoff, payoff
from ...analysis.summary import Row
from ..axis import Axis


def sentence(axis: Axis, rows: Sequence[Row]) -> str:
    """The answer for a cell that is compiled, from its row at each point, oldest first.

    It surely pays at a point whose verdict is a gain. Empty for a cell with one point.
    """
    if len(rows) < 2:
        return ""
    pays = [payoff(row.ratio) is Payoff.GAIN for row in rows]
    lasting = len(list(takewhile(bool, reversed(pays))))
    if lasting == len(rows):
        return f"Compiling surely pays in all {len(rows)} {axis.noun}s."
    if lasting:
        first = axis.facts(rows[-lasting].release).label
        return f"Compiling surely pays in every measured {axis.noun} since {first}."
    if not any(pays):
        return f"Compiling surely pays in none of {len(rows)} {axis.noun}s."
    last = max(place for place, gains in enumerate(pays) if gains)
    return (
        f"The last {axis.noun} in which compiling surely pays is "
        f"{axis.facts(rows[last].release).label}."
    )

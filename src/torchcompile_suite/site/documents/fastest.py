"""At which point the compiled calls of a cell are the fastest, and which points keep up with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from ...analysis.change import Difference
from ...analysis.statistics import Interval, inverse
from ...analysis.summary import Row
from ...presentation.wording import duration, listed, plural, ratio
from .. import cells
from ..content import Machine
from .figures import users_compile
from .pairs import PAIR_COLUMNS, pair

# The chance that a point which is as fast as all others is said to be slower.
_LEVEL = 0.05
# A longer list of points says less than their number.
_MOST_NAMED = 4
_Changes = Mapping[str, dict[str, Any]]


class _Other(NamedTuple):
    """Another point than the fastest. ``times``: its time over the shortest one."""

    point: str
    slower: bool
    times: Interval


def sentences(machine: Machine) -> dict[str, str]:
    """The answer for each cell that is compiled as users do it, by its name.

    Two points are compared as ``report`` compares them: of two runs that followed each other no
    time is compared. A cell without two points that can be compared has no sentence.
    """
    rows = (entry.row for point in machine.points for entry in machine.of(point))
    timed = [row for row in rows if row.latency_s and row.outcome.ok and users_compile(row.cell)]
    changes_of = cache(partial(_changes, machine))
    found = {}
    for cell, of_cell in cells.grouped(timed, lambda row: row.cell).items():
        name = machine.ids[cell]
        best = min(range(len(of_cell)), key=lambda place: _time(of_cell[place]))
        others = list(_others(name, [row.release for row in of_cell], best, changes_of))
        if others:
            found[name] = _sentence(machine, of_cell[best], others, len(of_cell))
    return found


def _time(row: Row) -> float:
    assert row.latency_s is not None
    return row.latency_s.value


def _changes(machine: Machine, before: str, after: str) -> _Changes:
    """How compiled times changed, by the name of the cell."""
    found = pair(machine, before, after)
    rows = found["changes"]["rows"] if found else []
    named = (dict(zip(PAIR_COLUMNS, row, strict=True)) for row in rows)
    return {row["cell"]: row for row in named if row["figure"] == "compiled"}


def _others(
    name: str, points: Sequence[str], best: int, changes_of: Callable[[str, str], _Changes]
) -> Iterator[_Other]:
    """The points that can be compared with the best, which is ``points[best]``, oldest first.

    Of many equal points one looks fastest and one slowest. So a difference has to be sure among all
    pairs of points (Bonferroni).
    """
    pairs = len(points) * (len(points) - 1) / 2
    for place, point in enumerate(points):
        if place == best:
            continue
        later = place > best
        change = changes_of(*(points[one] for one in sorted((place, best)))).get(name)
        if change is None or None in (change["factor_low"], change["factor_high"]):
            continue
        factor = Interval(*(change[f"factor{part}"] for part in ("", "_low", "_high")))
        # The change is after over before.
        times = factor if later else inverse(factor)
        wanted = Difference.WORSE if later else Difference.BETTER
        slower = change["verdict"] == wanted.value and change["p"] * pairs <= _LEVEL
        yield _Other(point, slower, times)


def _sentence(machine: Machine, best: Row, others: Sequence[_Other], points: int) -> str:
    """Of the slower points it names the newest of all, or else the slowest.

    ``points``: the number of all that were timed; the sentence says if not all can be compared.
    """

    def label(point: str) -> str:
        return machine.axis.facts(point).label

    time = duration(_time(best))
    compared = len(others) + 1
    of = f"Of the {compared} of {plural(points, machine.axis.noun)} whose times can be compared: "
    of *= compared < points
    slower = [other for other in others if other.slower]
    if not slower:
        noun = f"other {machine.axis.noun}"
        rest = f"difference to the {noun} is"
        if len(others) > 1:
            rest = f"differences to the {plural(len(others), noun)} are"
        return (
            f"{of}{label(best.release)} has the shortest compiled time ({time}); the {rest} within "
            "noise."
        )
    equal = [label(other.point) for other in others if not other.slower]
    if len(equal) > _MOST_NAMED:
        equal = [f"{len(equal)} of {len(others)} others"]
    keep_up = f"Not surely slower: {listed(equal)}; " if equal else ""
    if not equal and len(others) > 1:
        keep_up = f"Slower: all {len(others)} others; "
    last = others[-1] if others[-1].slower else max(slower, key=lambda other: other.times.value)
    first = "fastest" if of else "Fastest"
    return (
        f"{of}{first} with {label(best.release)}, {time} a compiled call. {keep_up}"
        f"{label(last.point)} takes {ratio(last.times)} times as long."
    )

"""What a compiled call costs beyond its kernels, and the smallest graph that gains."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ... import matrix
from ...analysis import summary
from ...analysis.statistics import Interval
from ...analysis.summary import Row
from ...cell import Compiled
from ...modes import place
from ...results.records import Record
from ..sheets import Sheet, no_number
from ..wording import count, listed, plural, ratio
from . import Answer, _parts
from ._between import Between, gains, time, with_interval

QUESTION = "What does a compiled call cost, and which graphs are too small to gain?"

_NAME = re.compile(r"small_(\d+)x(\d+)")  # as `workloads.overhead` gives them
_US = 1e-6
_FIGURES = [
    *("eager us", "compiled us", "ratio [95 %]", "guards", "guard check us"),
    "kernel launches",
]
COLUMNS = ["operators", "inputs", "mode", *_FIGURES]


class _Graph(NamedTuple):
    """A graph of small operators in a mode."""

    operators: int
    inputs: int
    row: Row
    compiled: Compiled | None

    @property
    def size(self) -> str:
        return f"{plural(self.operators, 'operator')} with {plural(self.inputs, 'input')}"


class _Timed(NamedTuple):
    """A graph that has numbers: seconds of a call in eager and compiled, and their ratio."""

    graph: _Graph
    eager_s: Interval
    latency_s: Interval
    ratio: Interval


def answer(records: Sequence[Record]) -> Answer:
    """The answer from graphs of small operators, whose arithmetic is nothing."""
    graphs = _graphs(records)
    sheet = Sheet(COLUMNS, frozenset(COLUMNS) - {"mode"}, [_line(graph) for graph in graphs])
    timed = [_timed(graph) for graph in graphs if graph.row.cell.mode == "default"]
    known = [one for one in timed if one is not None]
    if not known:
        return Answer(_parts.without_numbers([graph.row for graph in graphs]), sheet)
    rest = _parts.failed([graph.row for graph in graphs])
    return Answer(f"{_costs(known, Between(records))}; {_least(known)}.{rest}", sheet)


def _graphs(records: Sequence[Record]) -> list[_Graph]:
    found = []
    for record in records:
        cell = record.measurement.cell
        size = _NAME.fullmatch(cell.workload)
        if size is not None and matrix.on_any_device(cell) in matrix.OVERHEAD.by_cell:
            row = summary.row(record)
            operators, inputs = map(int, size.groups())
            found.append(_Graph(operators, inputs, row, record.measurement.compiled))
    return sorted(found, key=lambda one: (one.inputs, one.operators, place(one.row.cell.mode)))


def _timed(graph: _Graph) -> _Timed | None:
    row = graph.row
    if row.eager_s is None or row.latency_s is None or row.ratio is None:
        return None
    return _Timed(graph, row.eager_s, row.latency_s, row.ratio)


def _line(graph: _Graph) -> list[str]:
    row = graph.row
    first = [f"{graph.operators:,}", str(graph.inputs), row.cell.mode]
    if not row.outcome.ok:
        return [*first, *no_number(row.outcome, len(_FIGURES))]
    compiled = graph.compiled or Compiled()
    check_s = compiled.guard_check_s
    return [
        *first,
        time(row.eager_s, _US),
        time(row.latency_s, _US),
        ratio(row.ratio),
        count(compiled.guards),
        "-" if check_s is None else f"{check_s / _US:.3g}",
        count(compiled.kernel_launches),
    ]


def _costs(known: Sequence[_Timed], between: Between) -> str:
    """What a call costs: of the smallest graph, of the longest, and of the one with most inputs."""
    least = min(known, key=lambda one: (one.graph.inputs, one.graph.operators))
    longest = max(
        (one for one in known if one.graph.inputs == least.graph.inputs),
        key=lambda one: one.graph.operators,
    )
    text = (
        f"A compiled call of {least.graph.size} costs {with_interval(least.latency_s, _US)} us"
        f"{_checks(least)}, in eager {with_interval(least.eager_s, _US)} us"
    )
    if longest is not least:
        text += (
            f"; of {longest.graph.size} {with_interval(longest.latency_s, _US)} us"
            f"{_checks(longest)}, in eager {with_interval(longest.eager_s, _US)} us"
        )
    more = _of_inputs(known, least.graph.inputs, between)
    return f"{text}; {more}" if more else text


def _checks(one: _Timed) -> str:
    compiled = one.graph.compiled
    if compiled is None or compiled.guard_check_s is None:
        return ""
    return f" ({compiled.guard_check_s / _US:.3g} us of it check guards)"


def _of_inputs(known: Sequence[_Timed], fewest: int, between: Between) -> str:
    """How much more a call costs with the most inputs, for the same operators; empty if unknown."""
    few = {one.graph.operators: one for one in known if one.graph.inputs == fewest}
    pairs = [
        (one, few[one.graph.operators])
        for one in known
        if one.graph.inputs > fewest and one.graph.operators in few
    ]
    if not pairs:
        return ""
    most, base = max(pairs, key=lambda pair: (pair[0].graph.inputs, -pair[0].graph.operators))
    times = between.over(most.latency_s, base.latency_s)
    return (
        f"with {plural(most.graph.inputs, 'input')} instead of {fewest}, a call of "
        f"{plural(most.graph.operators, 'operator')} takes {times} times as long{_checks(most)}"
    )


def _least(known: Sequence[_Timed]) -> str:
    """The smallest graph that gains, by number of inputs."""
    by_inputs: dict[int, list[_Timed]] = {}
    for one in known:
        by_inputs.setdefault(one.graph.inputs, []).append(one)
    gain, none = [], []
    for inputs, mine in by_inputs.items():
        first = next((one for one in mine if gains(one.ratio)), None)
        if first is None:
            sizes = ", ".join(f"{one.graph.operators:,}" for one in mine)
            none.append(f"of those with {plural(inputs, 'input')} (operators: {sizes}) none gains")
        else:
            gain.append(f"{first.graph.size} ({first.ratio} of eager's time)")
    text = [f"the smallest graph that gains has {listed(gain)}"] if gain else []
    return "; ".join([*text, *none])

"""What a compiled call costs beyond its kernels, and the smallest graph that gains."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

from ... import matrix
from ...analysis import summary
from ...analysis.payoff import Payoff, payoff
from ...analysis.statistics import Interval
from ...analysis.summary import Row
from ...compiled import Compiled
from ...modes import place
from ...results.records import Record
from ..sheets import Columns, sheet
from ..wording import count, listed, number, plural, ratio
from . import common
from .common import Answer, Between, reason

_NAME = re.compile(r"small_(\d+)x(\d+)")  # as `workloads.overhead` gives them
_US = 1e6


class _Graph(NamedTuple):
    """A graph of small operators in a mode."""

    operators: int
    inputs: int
    row: Row
    compiled: Compiled

    @property
    def size(self) -> str:
        return f"{plural(self.operators, 'operator')} with {plural(self.inputs, 'input')}"


def _microseconds(interval: Interval | None) -> str:
    return "-" if interval is None else number(interval.value, ".3g", _US)


_PLACE: Columns[_Graph] = {
    "operators": lambda one: count(one.operators),
    "inputs": lambda one: str(one.inputs),
    "mode": lambda one: one.row.cell.mode,
}
_FIGURES: Columns[_Graph] = {
    "eager us": lambda one: _microseconds(one.row.eager_s),
    "compiled us": lambda one: _microseconds(one.row.latency_s),
    "ratio [95 %]": lambda one: ratio(one.row.ratio),
    "guards": lambda one: count(one.compiled.guards),
    "guard check us": lambda one: number(one.compiled.guard_check_s, ".3g", _US),
    "kernel launches": lambda one: count(one.compiled.kernel_launches),
}


def overhead(records: Sequence[Record]) -> Answer:
    """The cost of a call, from graphs of small operators, whose arithmetic is nothing."""
    graphs = _graphs(records)
    rows = [graph.row for graph in graphs]
    table = sheet(graphs, _PLACE, _FIGURES, reason=reason)
    known = [graph for graph in graphs if graph.row.cell.mode == "default" and graph.row.ratio]
    if not known:
        return Answer(common.without_numbers(rows), table)
    costs = _costs(known, Between(records))
    return Answer(f"{costs}; {_least(known)}.{common.failed(rows)}", table)


def _graphs(records: Sequence[Record]) -> list[_Graph]:
    found = []
    for record in records:
        cell = record.measurement.cell
        size = _NAME.fullmatch(cell.workload)
        if size is not None and matrix.on_any_device(cell) in matrix.OVERHEAD.by_cell:
            compiled = record.measurement.compiled or Compiled()
            operators, inputs = map(int, size.groups())
            found.append(_Graph(operators, inputs, summary.row(record), compiled))
    return sorted(found, key=lambda one: (one.inputs, one.operators, place(one.row.cell.mode)))


def _costs(known: Sequence[_Graph], between: Between) -> str:
    """What a call costs: of the smallest graph, of the longest, and of the one with most inputs."""
    least = min(known, key=lambda one: (one.inputs, one.operators))
    longest = max(
        (one for one in known if one.inputs == least.inputs), key=lambda one: one.operators
    )
    text = f"A compiled call of {least.size} costs {_both(least)}"
    if longest is not least:
        text += f"; of {longest.size} {_both(longest)}"
    more = _of_inputs(known, least.inputs, between)
    return f"{text}; {more}" if more else text


def _both(one: _Graph) -> str:
    compiled, eager = (number(of, ".3g", _US) for of in (one.row.latency_s, one.row.eager_s))
    return f"{compiled} us{_checks(one)}, in eager {eager} us"


def _checks(one: _Graph) -> str:
    check_s = one.compiled.guard_check_s
    return "" if check_s is None else f" ({number(check_s, '.3g', _US)} us of it check guards)"


def _of_inputs(known: Sequence[_Graph], fewest: int, between: Between) -> str:
    """How much more a call costs with the most inputs, for the same operators; empty if unknown."""
    few = {one.operators: one for one in known if one.inputs == fewest}
    more = [one for one in known if one.inputs > fewest and one.operators in few]
    if not more:
        return ""
    most = max(more, key=lambda one: (one.inputs, -one.operators))
    times = between.over(most.row.latency_s, few[most.operators].row.latency_s)
    return (
        f"with {plural(most.inputs, 'input')} instead of {fewest}, a call of "
        f"{plural(most.operators, 'operator')} takes {times} times as long{_checks(most)}"
    )


def _least(known: Sequence[_Graph]) -> str:
    """The smallest graph that gains, by number of inputs."""
    gain, none = [], []
    for inputs, graphs in itertools.groupby(known, key=lambda one: one.inputs):
        mine = list(graphs)
        first = next((one for one in mine if payoff(one.row.ratio) is Payoff.GAIN), None)
        if first is None:
            sizes = ", ".join(count(one.operators) for one in mine)
            none.append(f"of those with {plural(inputs, 'input')} (operators: {sizes}) none gains")
        else:
            gain.append(f"{first.size} ({first.row.ratio} of eager's time)")
    text = [f"the smallest graph that gains has {listed(gain)}"] if gain else []
    return "; ".join([*text, *none])

"""What is made for a question: small graphs, ways to write attention, models in int8."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence

import msgspec

from ... import matrix
from ...analysis.payoff import Payoff, payoff
from ...analysis.statistics import Interval
from ...cell import QUANTISATIONS, Cell
from ...modes import EAGER, MODES, place
from ...results.records import Record
from ..sheets import MODEL, Columns
from ..wording import count, listed, milliseconds, number, of_known, plural, ratio, seconds
from . import common
from .common import Answer, Figures, by_mode, mean, told

_US = 1e6


def _microseconds(interval: Interval | None) -> str:
    return "-" if interval is None else number(interval.value, ".3g", _US)


_SMALL = re.compile(r"small_(\d+)x(\d+)")  # as `workloads.overhead` gives them
_GRAPH: Columns[Figures] = {
    "operators": lambda one: count(_size(one)[1]),
    "inputs": lambda one: str(_size(one)[0]),
    "mode": lambda one: one.cell.mode,
}
_OVERHEAD: Columns[Figures] = {
    "eager us": lambda one: _microseconds(one.row.eager_s),
    "compiled us": lambda one: _microseconds(one.row.latency_s),
    "ratio [95 %]": lambda one: ratio(one.row.ratio),
    "guards": lambda one: count(one.compiled.guards),
    "guard check us": lambda one: number(one.compiled.guard_check_s, ".3g", _US),
    "kernel launches": lambda one: count(one.compiled.launches),
}


def overhead(records: Sequence[Record]) -> Answer:
    """What a compiled call costs beyond its kernels, and the smallest graph that gains.

    From graphs of small operators, whose arithmetic is nothing.
    """
    graphs = common.figures(records, _made_for(matrix.OVERHEAD, _SMALL))
    found = sorted(graphs.values(), key=lambda one: (_size(one), place(one.cell.mode)))
    known = [one for one in found if one.cell.mode == "default" and one.row.ratio]
    sentence = f"{_costs(known)}; {_least(known)}." if known else ""
    return told(sentence, [one.row for one in found], common.table(found, _GRAPH, _OVERHEAD))


def _made_for(question: matrix.Question, name: re.Pattern[str]) -> Callable[[Cell], bool]:
    return lambda cell: (
        name.fullmatch(cell.workload) is not None and matrix.on_any_device(cell) in question.by_cell
    )


def _size(one: Figures) -> tuple[int, int]:
    """The number of inputs of a graph, and that of its operators."""
    operators, inputs = one.cell.workload.removeprefix("small_").split("x")
    return int(inputs), int(operators)


def _named(one: Figures) -> str:
    inputs, operators = _size(one)
    return f"{plural(operators, 'operator')} with {plural(inputs, 'input')}"


def _costs(known: Sequence[Figures]) -> str:
    """What a call costs: of the smallest graph, of the longest, and of the one with most inputs."""
    least, *_ = known
    fewest, _ = _size(least)
    few = {_size(one)[1]: one for one in known if _size(one)[0] == fewest}
    *_, longest = few.values()
    text = f"A compiled call of {_named(least)} costs {_both(least)}"
    if longest is not least:
        text += f"; of {_named(longest)} {_both(longest)}"
    # How much more it costs with the most inputs, for the same operators.
    more = [one for one in known if _size(one)[0] > fewest and _size(one)[1] in few]
    if not more:
        return text
    inputs = _size(more[-1])[0]
    most = next(one for one in more if _size(one)[0] == inputs)
    operators = _size(most)[1]
    times = most._replace(beside=few[operators]).over("row.latency_s")
    return (
        f"{text}; with {plural(inputs, 'input')} instead of {fewest}, a call of "
        f"{plural(operators, 'operator')} takes {times} times as long{_checks(most)}"
    )


def _both(one: Figures) -> str:
    compiled, eager = (number(of, ".3g", _US) for of in (one.row.latency_s, one.row.eager_s))
    return f"{compiled} us{_checks(one)}, in eager {eager} us"


def _checks(one: Figures) -> str:
    check_s = one.compiled.guard_check_s
    return "" if check_s is None else f" ({number(check_s, '.3g', _US)} us of it check guards)"


def _least(known: Sequence[Figures]) -> str:
    """Of the measured graphs with a number of inputs, the smallest that gains."""
    parts = []
    for inputs, graphs in itertools.groupby(known, key=lambda one: _size(one)[0]):
        mine = list(graphs)
        sizes = ", ".join(count(_size(one)[1]) for one in mine)
        of = f"of those with {plural(inputs, 'input')} (operators measured: {sizes})"
        first = next((one for one in mine if payoff(one.row.ratio) is Payoff.GAIN), None)
        if first is None:
            parts.append(f"{of} none surely gains")
        else:
            size = plural(_size(first)[1], "operator")
            parts.append(
                f"{of} the smallest that gains has {size} ({first.row.ratio} of eager's time)"
            )
    return "; ".join(parts)


# Way -> its name in a sentence, and the way in eager that everybody has for the same result.
_WAYS = {
    "spelled_out": ("attention spelled out", "sdpa"),
    "sdpa": ("SDPA", "sdpa"),
    "flex": ("FlexAttention", "sdpa"),
    "sdpa_causal": ("SDPA with a causal mask", "sdpa_causal"),
    "flex_causal": ("FlexAttention with a causal mask", "sdpa_causal"),
}
_ATTENTION = re.compile(rf"attention_({'|'.join(_WAYS)})_(\d+)")  # as `workloads.attention` does
_WAY: Columns[Figures] = {
    "length": lambda one: str(_way(one.cell)[0]),
    "way": lambda one: _WAYS[_way(one.cell)[1]][0],
    "mode": lambda one: one.cell.mode,
}
_TIMES: Columns[Figures] = {
    "eager ms": lambda one: milliseconds(one.row.eager_s),
    "compiled ms": lambda one: milliseconds(one.row.latency_s),
    "compiled over eager [95 %]": lambda one: ratio(one.row.ratio),
    "compiled over SDPA in eager [95 %]": lambda one: ratio(one.over_beside),
    "compile s": lambda one: seconds(one.row.cold_compile_s),
}


def attention(records: Sequence[Record]) -> Answer:
    """Attention in several ways, at several lengths."""
    found = ways_of_attention(records)
    parts = []
    for way, (name, _) in _WAYS.items():
        times = [
            f"{one.over_beside} at length {_way(one.cell)[0]}"
            for one in found
            if one.over_beside and _way(one.cell)[1] == way and one.cell.mode == "default"
        ]
        if times:
            parts.append(f"{name} {listed(times)}")
    said = f"Compiled, in times of SDPA in eager with the same mask: {'; '.join(parts)}."
    rows = [one.row for one in found]
    return told(said if parts else "", rows, common.table(found, _WAY, _TIMES))


def ways_of_attention(records: Sequence[Record]) -> list[Figures]:
    """The ways that were measured, by length, way and mode.

    ``over_beside``: compiled over SDPA in eager with the same mask. SDPA is that of the same mode,
    so that the two were measured in the same run, as a rule.
    """
    ways = list(_WAYS)
    found = common.figures(records, _made_for(matrix.ATTENTION, _ATTENTION), _sdpa)
    made = []
    for cell, one in found.items():
        over = one.row.ratio if _sdpa(cell) == cell else one.over("row.latency_s", "row.eager_s")
        made.append(one._replace(over_beside=over))
    return sorted(
        made,
        key=lambda one: (_way(one.cell)[0], ways.index(_way(one.cell)[1]), place(one.cell.mode)),
    )


def _way(cell: Cell) -> tuple[int, str]:
    """The length, and the way."""
    _, _, named = cell.workload.partition("_")
    way, _, length = named.rpartition("_")
    return int(length), way


def _sdpa(cell: Cell) -> Cell:
    """SDPA with the same mask."""
    length, way = _way(cell)
    return msgspec.structs.replace(cell, workload=f"attention_{_WAYS[way][1]}_{length}")


_QUANTISATION: Columns[Figures] = {
    **MODEL,
    "quantisation": lambda one: one.cell.dtype,
    "mode": lambda one: one.cell.mode,
}
_INT8: Columns[Figures] = {
    "float32 eager ms": lambda one: milliseconds(one.row.eager_s),
    "int8 ms": lambda one: milliseconds(one.row.latency_s),
    "over float32 eager [95 %]": lambda one: ratio(one.row.ratio),
    "over float32 in the same mode [95 %]": lambda one: ratio(one.over_beside),
    "error against float32": lambda one: number(one.float32_error, ".2g"),
}


def quantisation(records: Sequence[Record]) -> Answer:
    """Modules whose linear layers have int8 weights."""
    found = _quantised(records)
    table = common.table(found, _QUANTISATION, _INT8)
    rows = [one.row for one in found]
    if parts := [part for dtype in QUANTISATIONS if (part := _of_dtype(dtype, found))]:
        timed = [(row.ratio, row.cell) for row in rows if row.ratio]
        least, cell = min(timed, key=lambda pair: pair[0].value)
        sentence = (
            f"{'; '.join(parts)}. The least time over float32 in eager: {least} "
            f"({cell.workload}, {cell.dtype}, mode {cell.mode})."
        )
        return told(sentence, rows, table)
    sentence, table = told("", rows, table)
    if len(reasons := {str(row.outcome) for row in rows}) == 1:
        sentence = f"None of {plural(len(rows), 'cell')} has a number: {reasons.pop()}."
        table = table._replace(lines=[])
    # What is not quantised still has an answer for float32.
    asked = {(row.cell.workload, row.cell.batch_size) for row in rows}
    plain = common.rows(
        records,
        lambda cell: (
            not cell.differs() and cell.mode != EAGER and (cell.workload, cell.batch_size) in asked
        ),
    )
    if rows and (float32 := by_mode(plain)):
        sentence += f" Float32 compiled, of its time in eager: {float32}."
    return Answer(sentence, table)


def _quantised(records: Sequence[Record]) -> list[Figures]:
    """The quantised cells; ``over_beside``: over float32 in the same mode."""
    found = common.figures(
        records,
        lambda cell: cell.quantised and cell.differs() == {"dtype", "baseline"},
        lambda cell: Cell(cell.workload, cell.batch_size, cell.mode, device=cell.device),
    )
    made = []
    for cell, one in found.items():
        over = one.row.ratio if cell.mode == EAGER else one.over("row.latency_s")
        made.append(one._replace(over_beside=over))
    return sorted(made, key=_by_quantisation)


def _by_quantisation(one: Figures) -> tuple[object, ...]:
    dtype = list(QUANTISATIONS).index(one.cell.dtype)
    return one.cell.workload, one.cell.batch_size, dtype, place(one.cell.mode)


def _of_dtype(dtype: str, found: Sequence[Figures]) -> str:
    """What one way to quantise does, by mode; empty if it has no number."""
    parts = []
    for mode in MODES:
        mine = [one for one in found if (one.cell.dtype, one.cell.mode) == (dtype, mode)]
        ratios = [one.row.ratio for one in mine if one.row.ratio]
        if not ratios:
            continue
        gain = sum(payoff(one) is Payoff.GAIN for one in ratios)
        how = "alone" if mode == EAGER else f"compiled (mode {mode})"
        text = (
            f"{how} faster in {gain} of {plural(len(ratios), 'model')}, on average {mean(ratios)}"
            f"{of_known(ratios)}"
        )
        over = [one.over_beside for one in mine if one.over_beside]
        if mode != EAGER and over:
            text += f", and {mean(over)} of float32 compiled"
            text += f" ({len(over)} of them)" * (len(over) < len(ratios))
        parts.append(text)
    return f"{dtype}, of the time of float32 in eager: {', '.join(parts)}" if parts else ""

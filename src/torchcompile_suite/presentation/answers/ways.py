"""Ways to compile a model: with frozen weights, its repeated block once, a policy for shapes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Mapping, Sequence

from msgspec.structs import replace

from ...analysis import statistics
from ...analysis.payoff import Payoff, best, payoff
from ...analysis.statistics import Interval
from ...analysis.summary import Row
from ...cell import DEFAULT_HEAP, Cell
from ...matrix import POLICIES
from ...results.records import Record
from ..sheets import PLACE, Columns, Sheet
from ..wording import count, listed, number, plural, ratio
from . import common
from .common import Answer, Figures, mean, missing


def _whole(cell: Cell) -> Cell:
    return replace(cell, way="whole")


def _compared(records: Sequence[Record], ways: Container[str]) -> list[Figures]:
    """The cells that are compiled in one of the ways, by model; each model compiled whole first."""
    asked = [cell for record in records if (cell := record.measurement.cell).way in ways]
    cells = dict.fromkeys(one for cell in asked for one in (_whole(cell), cell))
    found = common.figures(records, cells.__contains__, _whole)
    return sorted((found[cell] for cell in cells if cell in found), key=_by_model)


def _by_model(one: Figures) -> tuple[str, int]:
    return one.cell.workload, one.cell.batch_size


_TIMES: Columns[Figures] = {
    "eager ms": lambda one: number(one.row.eager_s, ".3g", 1e3),
    "compiled ms": lambda one: number(one.row.latency_s, ".3g", 1e3),
    "over eager [95 %]": lambda one: ratio(one.row.ratio),
}
_FREEZING: Columns[Figures] = {
    **_TIMES,
    "over plain compile [95 %]": lambda one: ratio(one.over("row.ratio")),
    "cold s": lambda one: number(one.cold_s, ".1f"),
    "warm s": lambda one: number(one.warm_s, ".1f"),
    "error": lambda one: number(one.error, ".1e"),
    "MiB": lambda one: number(one.memory_bytes, ".0f", 2**-20),
}


def freezing(records: Sequence[Record]) -> Answer:
    """Freezing against plain torch.compile, and against eager.

    A line for each frozen cell, and for the plain one beside it. Memory on a CPU is that of the
    cells with the default heap.
    """
    found = _compared(records, ("freezing",))
    frozen = [one for one in found if one.cell.way == "freezing"]
    return _answer("Freezing", _of_freezing(frozen), frozen, common.table(found, PLACE, _FREEZING))


def _answer(question: str, sentence: str, of: Sequence[Figures], drawn: Sheet) -> Answer:
    """The answer with how many cells failed; without a sentence, why there is none."""
    if not sentence:
        return Answer(missing(question, of), drawn)
    failed = sum(not one.row.outcome.ok for one in of)
    return Answer(sentence + common.without_number(failed), drawn)


def _of_freezing(frozen: Sequence[Figures]) -> str:
    settled = [one for one in frozen if one.cell.allocator != DEFAULT_HEAP]
    timed = [one for one in settled if one.over("row.ratio")]
    ratios = {_name(one.cell): time for one in timed if (time := one.over("row.ratio"))}
    if not ratios:
        return ""
    several = len(ratios) > 1
    models = f"{len(ratios)} models" if several else next(iter(ratios))
    # A mean leaves out what has no interval: the two would be over different models.
    both = {name: one for name, one in zip(ratios, timed, strict=True) if ratios[name].known}
    sure = [one for one in both.values() if one.row.ratio and one.row.ratio.known] or timed
    some = f" of {len(sure)}" * (len(sure) < len(ratios))
    average = f" (geometric mean{some})" if several else ""
    over_plain = mean(one.over("row.ratio") for one in sure)
    parts = [
        f"With frozen weights a call of {models} takes {over_plain} of its time with plain "
        f"torch.compile{average}, and {mean(one.row.ratio for one in sure)} of eager's time"
    ]
    if several:
        parts.append(_groups(ratios))
    prices = {
        "a cold compile": [one.over("cold_s") for one in timed],
        "a warm one": [one.over("warm_s") for one in timed],
        # A settled heap holds more by design. On an accelerator there is no other cell.
        "the peak memory": [
            one.over("memory_bytes")
            for one in frozen
            if one.cell.allocator == DEFAULT_HEAP or one.cell.device != "cpu"
        ],
    }
    known = []
    for words, found in prices.items():
        if of := [one for one in found if one is not None]:
            some = f" (of {plural(len(of), 'model')})" if len(of) < len(ratios) else ""
            known.append(f"{words} {mean(of)}{some}")
    if known:
        parts.append(f"over plain torch.compile, {listed(known)} times as much")
    return "; ".join(parts) + "."


def _name(cell: Cell) -> str:
    """The model, and how the cell differs from plain inference, but for its way."""
    variant = _whole(cell).variant
    mode = "" if cell.mode == "default" else f", {cell.mode}"
    batch = "" if cell.batch_size == 1 else f", batch {cell.batch_size}"
    return f"{cell.workload}{batch}{mode}{f', {variant}' if variant else ''}"


_GROUPS = {
    Payoff.GAIN: "faster for",
    Payoff.LOSS: "slower for",
    Payoff.NONE: "without a gain for",
    Payoff.UNKNOWN: "without a clear difference for",
}


def _groups(ratios: Mapping[str, Interval]) -> str:
    """Which of them are faster, slower, or neither, by name: "faster for a (0.80 [0.78, 0.82])".

    The largest difference of a group comes first.
    """
    parts = []
    for kind, words in _GROUPS.items():
        own = {name: ratio for name, ratio in ratios.items() if payoff(ratio) is kind}
        ordered = sorted(own, key=lambda name: -abs(math.log(own[name].value)))
        if own:
            parts.append(f"{words} {listed(f'{name} ({own[name]})' for name in ordered)}")
    return "; ".join(parts)


_REGIONAL: Columns[Figures] = {
    "blocks": lambda one: str(one.compiled.blocks or "-"),
    "compiled ms": _TIMES["compiled ms"],
    "over eager [95 %]": _TIMES["over eager [95 %]"],
    "over whole [95 %]": lambda one: ratio(one.over("row.ratio")),
    "cold s": lambda one: number(one.cold_s, ".1f"),
    "over whole": lambda one: ratio(one.over("cold_s")),
    "warm s": lambda one: number(one.warm_s, ".1f"),
    "warm over whole": lambda one: ratio(one.over("warm_s")),
    "graphs": lambda one: number(one.compiled.graphs, "d"),
    "kernels": lambda one: number(one.compiled.kernels, "d"),
    "used up after": lambda one: _calls(_used_up_calls(one)),
}


def regional(records: Sequence[Record]) -> Answer:
    """Compile cost and steady state by number of blocks, against the model compiled whole.

    A line for each cell whose block is compiled once, and for the whole model.
    """
    found = _compared(records, _BLOCK_WAYS)
    # How many equal blocks a model has, any of its cells may have recorded.
    blocks: dict[Cell, int] = {}
    for one in found:
        if one.cell.way != "whole":
            whole = _whole(one.cell)
            blocks[whole] = max(one.compiled.blocks, blocks.get(whole, 0))
    found = [
        one._replace(compiled=replace(one.compiled, blocks=blocks[_whole(one.cell)]))
        for one in found
    ]
    ours = [one for one in found if one.cell.way != "whole"]
    return _answer(
        "Regional compilation", _of_regional(ours), ours, common.table(found, PLACE, _REGIONAL)
    )


_BLOCK_WAYS = {
    "regional": "compiling only the repeated block",
    "nested-region": "compiling it whole with the block as a nested region",
}


def _of_regional(ours: Sequence[Figures]) -> str:
    parts = []
    for way, words in _BLOCK_WAYS.items():
        own = [
            one
            for one in ours
            if one.cell.way == way and one.compiled.blocks and one.over("row.ratio")
        ]
        if own:
            own.sort(key=lambda one: (one.compiled.blocks, one.cell.workload))
            parts.append(_way(own, words))
    if not parts:
        return ""
    sentence = "; ".join(parts) + "."
    return sentence[0].upper() + sentence[1:]


def _way(pairs: Sequence[Figures], words: str) -> str:
    """``pairs``: by number of blocks, fewest first."""
    most = pairs[-1]
    whole_cold_s = most.beside.cold_s if most.beside else None
    used_up_calls = _used_up_calls(most)
    said = f"with {most.compiled.blocks} equal blocks ({most.cell.workload}), {words} takes "
    if cold := most.over("cold_s"):
        said += (
            f"{number(most.cold_s, '.1f')} s from a cold start and not "
            f"{number(whole_cold_s, '.1f')} s ({cold}), and a call takes "
        )
    said += f"{most.over('row.ratio')} of the time of the model compiled whole"
    if 0 < used_up_calls < math.inf:
        said += f", which uses up the shorter start after {_calls(used_up_calls)}"
    if len({pair.compiled.blocks for pair in pairs}) == 1:
        return said
    # The fewest blocks with which all models start faster, as all with more blocks do.
    by_blocks = itertools.groupby(reversed(pairs), lambda one: one.compiled.blocks)
    alike = (list(group) for _, group in by_blocks)
    faster = list(itertools.takewhile(lambda group: all(map(_starts_faster, group)), alike))
    if not faster:
        shorter = cold is None or _starts_faster(most)
        return said if shorter else f"{said}; it does not shorten the cold start"
    first = faster[-1][-1]
    shortened = ratio(first.over("cold_s"))
    return (
        f"{said}; it shortens the cold start from {first.compiled.blocks} blocks on ({shortened})"
    )


def _starts_faster(one: Figures) -> bool:
    """Whether the cold compile is shorter by more than cold compiles differ anyway."""
    cold = one.over("cold_s")
    return cold is not None and cold.value < 1 - statistics.COMPILE_MARGIN


def _used_up_calls(one: Figures) -> float:
    """After how many of the slower calls the shorter cold compile is used up.

    Infinite if calls are not surely slower, 0 if there is nothing to use up.
    """
    if not _starts_faster(one):
        return 0
    assert one.beside is not None
    assert one.cold_s is not None
    assert one.beside.cold_s is not None
    saved_s = one.beside.cold_s.value - one.cold_s.value
    time = one.over("row.ratio")
    if time is None or payoff(time) is not Payoff.LOSS:
        return math.inf
    assert one.beside.row.latency_s is not None
    return math.ceil(saved_s / (one.beside.row.latency_s.value * (time.value - 1)))


def _calls(calls: float) -> str:
    if math.isinf(calls):
        return "never"
    return f"{calls:,.0f} call{'s' * (round(calls) != 1)}" if calls else "-"


_SHAPES: Columns[Figures] = {
    **_TIMES,
    "graphs": lambda one: count(one.compiled.graphs),
    "first pass s": lambda one: number(one.first_s, ".1f"),
    "warm s": lambda one: number(one.warm_s, ".1f"),
    "refused: again": lambda one: count(one.compiled.recaptures.get("tail")),
    "refused: new shapes": lambda one: count(one.compiled.recaptures.get("new shapes")),
}


def dynamic_shapes(records: Sequence[Record]) -> Answer:
    """The policies for shapes of each model: a pass over its requests, and the first one.

    ``refused``: requests that ``fail_on_recompile`` refuses, in a second pass over the same
    requests, and of new shapes at the end: of the next batch size, so a bucket for it is new, too.
    """
    found = sorted(common.figures(records, _shapes_vary).values(), key=_by_model)
    streams: dict[str, list[Figures]] = {}
    for one in found:
        if one.row.outcome.ok:
            stream = replace(one.cell, shapes="static")
            streams.setdefault(str(stream), []).append(one)
    sentences = [_of_stream(name, own) for name, own in sorted(streams.items())]
    drawn = common.table(found, PLACE, _SHAPES)
    return _answer("The choice of a policy for shapes", " ".join(sentences), found, drawn)


def _shapes_vary(cell: Cell) -> bool:
    return cell.shapes != "static" and cell.way == "whole" and cell.protocol == "right"


def _of_stream(name: str, policies: Sequence[Figures]) -> str:
    """``policies``: those of one stream of requests, none of them failed."""
    parts = [_fastest(name, {one.cell: one.row for one in policies})]
    first = sorted((one.first_s.value, one.cell.shapes) for one in policies if one.first_s)
    if len(first) > 1:
        (least_s, least), (most_s, most) = first[0], first[-1]
        parts.append(
            f"the first pass takes {least_s:.1f} s with {least}, and {most_s:.1f} s with {most}"
        )
    for which, words in (("tail", "in a second pass"), ("new shapes", "for another batch size")):
        counts = {one.cell.shapes: one.compiled.recaptures.get(which) for one in policies}
        if all(counted is None for counted in counts.values()):
            continue  # the release has no fail_on_recompile
        # The records of a site and of a command need not have one order.
        refused = [f"{policy} ({counts[policy]})" for policy in POLICIES if counts.get(policy)]
        parts.append(
            f"fail_on_recompile refuses requests {words} with {listed(refused)}"
            if refused
            else f"no policy{' that was counted' * (None in counts.values())} recompiles {words}"
        )
    return "; ".join(parts) + "."


def _fastest(name: str, rows: Mapping[Cell, Row]) -> str:
    fastest = best(rows.values(), gains=False)
    if not fastest:
        lowest = min(rows.values(), key=lambda row: row.ratio.value if row.ratio else math.inf)
        return (
            f"{name}: no policy for shapes is surely faster than eager; the nearest is "
            f"{lowest.cell.shapes}, a pass takes {lowest.ratio} of eager's time"
        )
    first, *others = fastest
    said = (
        f"{name}: the fastest policy for shapes is {first.shapes}, a pass takes "
        f"{rows[first].ratio} of eager's time"
    )
    if others:
        named = listed(f"{cell.shapes} ({rows[cell].ratio})" for cell in others)
        said += f", which cannot be told from {named}"
    return said

"""Ways to compile a model: with frozen weights, its repeated block once, a policy for shapes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec

from ...analysis.payoff import Payoff, best, payoff
from ...analysis.statistics import Interval
from ...analysis.summary import Row
from ...cell import DEFAULT_HEAP, Cell
from ...matrix import POLICIES
from ...results.records import Record
from ..sheets import PLACE, Columns, sheet
from ..wording import count, listed, number, ratio
from . import common
from .common import Answer, Figures, by_model, mean, missing, reason

# Measured again, cold compiles of one cell differ by 7 % and warm ones by 10 %. A measurement has
# one cold launch, so its compile time has no interval: a smaller difference is not claimed.
COMPILE_MARGIN = 0.10


class _Compared(NamedTuple):
    """A cell, and the same model compiled whole: None beside itself, and if it was not measured.

    ``blocks``: how many equal blocks the model has, as any of its cells recorded it; 0 if none did.
    """

    own: Figures
    whole: Figures | None
    blocks: int

    @property
    def cell(self) -> Cell:
        return self.own.cell

    @property
    def row(self) -> Row:
        return self.own.row

    def over(self, figure: str) -> Interval | None:
        """A figure (a path of attributes) over the whole model's; None if either is missing."""
        of = attrgetter(figure)
        return None if self.whole is None else common.over(of(self.own), of(self.whole))

    @property
    def time(self) -> Interval | None:
        """The time of a call over that of the whole model."""
        return self.over("row.ratio")

    @property
    def starts_faster(self) -> bool:
        """Whether the cold compile is shorter by more than cold compiles differ anyway."""
        cold = self.over("cold_s")
        return cold is not None and cold.value < 1 - COMPILE_MARGIN

    @property
    def used_up_calls(self) -> float:
        """After how many of the slower calls the shorter cold compile is used up.

        Infinite if calls are not surely slower, 0 if there is nothing to use up.
        """
        if self.whole is None or self.own.cold_s is None or self.whole.cold_s is None:
            return 0
        saved_s = self.whole.cold_s.value - self.own.cold_s.value
        if saved_s <= 0:
            return 0
        if self.time is None or payoff(self.time) is not Payoff.LOSS:
            return math.inf
        assert self.whole.row.latency_s is not None
        return math.ceil(saved_s / (self.whole.row.latency_s.value * (self.time.value - 1)))


def _whole(cell: Cell) -> Cell:
    return msgspec.structs.replace(cell, way="whole")


def _compared(records: Sequence[Record], ways: Container[str]) -> list[_Compared]:
    """The cells that are compiled in one of the ways, each after the model compiled whole."""
    asked = [cell for record in records if (cell := record.measurement.cell).way in ways]
    cells = dict.fromkeys(one for cell in asked for one in (_whole(cell), cell))
    found = common.figures(records, cells.__contains__)
    blocks: dict[Cell, int] = {}
    for cell in asked:
        blocks[_whole(cell)] = max(found[cell].compiled.blocks, blocks.get(_whole(cell), 0))
    return [
        _Compared(
            found[cell],
            found.get(_whole(cell)) if cell.way in ways else None,
            blocks[_whole(cell)],
        )
        for cell in cells
        if cell in found
    ]


_FREEZING: Columns[_Compared] = {
    "eager ms": lambda one: number(one.row.eager_s, ".3g", 1e3),
    "compiled ms": lambda one: number(one.row.latency_s, ".3g", 1e3),
    "over eager [95 %]": lambda one: ratio(one.row.ratio),
    "over plain compile [95 %]": lambda one: ratio(one.time),
    "cold s": lambda one: number(one.own.cold_s, ".1f"),
    "warm s": lambda one: number(one.own.warm_s, ".1f"),
    "error": lambda one: number(one.own.error, ".1e"),
    "MiB": lambda one: number(one.own.memory_bytes, ".0f", 2**-20),
}


def freezing(records: Sequence[Record]) -> Answer:
    """Freezing against plain torch.compile, and against eager.

    A line for each frozen cell, and for the plain one beside it. Memory on a CPU is that of the
    cells with the default heap.
    """
    found = _compared(records, ("freezing",))
    table = sheet(sorted(found, key=by_model), PLACE, _FREEZING, reason=reason)
    return Answer(_of_freezing([one for one in found if one.cell.way == "freezing"]), table)


def _of_freezing(frozen: Sequence[_Compared]) -> str:
    timed = [one for one in frozen if one.time and one.cell.allocator != DEFAULT_HEAP]
    ratios = {_name(one.cell): one.time for one in timed if one.time}
    if not ratios:
        return missing("Freezing", frozen)
    several = len(ratios) > 1
    models = f"{len(ratios)} models" if several else next(iter(ratios))
    average = " (geometric mean)" if several else ""
    parts = [
        f"With frozen weights a call of {models} takes {mean(ratios.values())} of its time with "
        f"plain torch.compile{average}, and {mean(one.row.ratio for one in timed)} of eager's time"
    ]
    if several:
        parts.append(_groups(ratios))
    prices = {
        "a cold compile": mean(one.over("cold_s") for one in timed),
        "a warm one": mean(one.over("warm_s") for one in timed),
        # A settled heap holds more by design. On an accelerator there is no other cell.
        "the peak memory": mean(
            one.over("memory_bytes")
            for one in frozen
            if one.cell.allocator == DEFAULT_HEAP or one.cell.device != "cpu"
        ),
    }
    if known := [f"{words} {price}" for words, price in prices.items() if price is not None]:
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


_REGIONAL: Columns[_Compared] = {
    "blocks": lambda one: str(one.blocks or "-"),
    "compiled ms": lambda one: number(one.row.latency_s, ".3g", 1e3),
    "over eager [95 %]": lambda one: ratio(one.row.ratio),
    "over whole [95 %]": lambda one: ratio(one.time),
    "cold s": lambda one: number(one.own.cold_s, ".1f"),
    "over whole": lambda one: ratio(one.over("cold_s")),
    "warm s": lambda one: number(one.own.warm_s, ".1f"),
    "warm over whole": lambda one: ratio(one.over("warm_s")),
    "graphs": lambda one: number(one.own.compiled.graphs, "d"),
    "kernels": lambda one: number(one.own.compiled.kernels, "d"),
    "used up after": lambda one: _calls(one.used_up_calls),
}


def regional(records: Sequence[Record]) -> Answer:
    """Compile cost and steady state by number of blocks, against the model compiled whole.

    A line for each cell whose block is compiled once, and for the whole model.
    """
    found = _compared(records, _BLOCK_WAYS)
    table = sheet(sorted(found, key=by_model), PLACE, _REGIONAL, reason=reason)
    return Answer(_of_regional([one for one in found if one.cell.way != "whole"]), table)


_BLOCK_WAYS = {
    "regional": "compiling only the repeated block",
    "nested-region": "compiling it whole with the block as a nested region",
}


def _of_regional(ours: Sequence[_Compared]) -> str:
    parts = []
    for way, words in _BLOCK_WAYS.items():
        own = [one for one in ours if one.cell.way == way and one.time and one.blocks]
        if own:
            parts.append(_way(sorted(own, key=lambda one: (one.blocks, one.cell.workload)), words))
    if not parts:
        return missing("Regional compilation", ours)
    sentence = "; ".join(parts) + "."
    return sentence[0].upper() + sentence[1:]


def _way(pairs: Sequence[_Compared], words: str) -> str:
    """``pairs``: by number of blocks, fewest first."""
    most = pairs[-1]
    whole_cold_s = most.whole.cold_s if most.whole else None
    said = (
        f"with {most.blocks} equal blocks ({most.cell.workload}), {words} takes "
        f"{number(most.own.cold_s, '.1f')} s from a cold start and not "
        f"{number(whole_cold_s, '.1f')} s ({ratio(most.over('cold_s'))}), and a call takes "
        f"{most.time} of the time of the model compiled whole"
    )
    if 0 < most.used_up_calls < math.inf:
        said += f", which uses up the shorter start after {_calls(most.used_up_calls)}"
    if len({pair.blocks for pair in pairs}) == 1:
        return said
    # The fewest blocks that start faster, as all with more blocks do.
    faster = list(itertools.takewhile(lambda pair: pair.starts_faster, reversed(pairs)))
    if not faster:
        return f"{said}; it does not shorten the cold start"
    first = faster[-1]
    cold = ratio(first.over("cold_s"))
    return f"{said}; it shortens the cold start from {first.blocks} blocks on ({cold})"


def _calls(calls: float) -> str:
    if math.isinf(calls):
        return "never"
    return f"{calls:,.0f} calls" if calls else "-"


_SHAPES: Columns[Figures] = {
    "eager ms": lambda one: number(one.row.eager_s, ".3g", 1e3),
    "compiled ms": lambda one: number(one.row.latency_s, ".3g", 1e3),
    "over eager [95 %]": lambda one: ratio(one.row.ratio),
    "graphs": lambda one: count(one.compiled.graphs),
    "first pass s": lambda one: number(one.first_s, ".1f"),
    "warm s": lambda one: number(one.warm_s, ".1f"),
    "refused: again": lambda one: count(one.compiled.recaptures.get("tail")),
    "refused: new shapes": lambda one: count(one.compiled.recaptures.get("new shapes")),
}


def dynamic_shapes(records: Sequence[Record]) -> Answer:
    """The policies for shapes of each model: a pass over its requests, and the first one.

    ``refused``: requests that ``fail_on_recompile`` refuses, in a second pass over the same
    requests, and of new shapes at the end.
    """
    found = sorted(common.figures(records, _shapes_vary).values(), key=by_model)
    streams: dict[str, list[Figures]] = {}
    for one in found:
        if one.row.outcome.ok:
            stream = msgspec.structs.replace(one.cell, shapes="static")
            streams.setdefault(str(stream), []).append(one)
    sentences = [_of_stream(name, own) for name, own in sorted(streams.items())]
    return Answer(
        " ".join(sentences) or missing("The choice of a policy for shapes", found),
        sheet(found, PLACE, _SHAPES, reason=reason),
    )


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
    for which, words in (("tail", "a second pass"), ("new shapes", "new shapes")):
        counts = {one.cell.shapes: one.compiled.recaptures.get(which) for one in policies}
        if all(counted is None for counted in counts.values()):
            continue  # the release has no fail_on_recompile
        # The records of a site and of a command need not have one order.
        refused = [f"{policy} ({counts[policy]})" for policy in POLICIES if counts.get(policy)]
        with_which = f"with {listed(refused)}" if refused else "with none of them"
        parts.append(f"fail_on_recompile refuses requests of {words} {with_which}")
    return "; ".join(parts) + "."


def _fastest(name: str, rows: Mapping[Cell, Row]) -> str:
    fastest = best(rows.values())
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

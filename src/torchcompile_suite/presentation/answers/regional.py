"""From how many equal blocks does it pay to compile the block once, and not the whole model?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ...analysis.payoff import Payoff, payoff
from ...analysis.statistics import Interval
from ...cell import Cell, Measurement
from ...results.records import Record
from . import Answer, _compared
from ._compared import COMPILE_MARGIN, Figures, over, text

QUESTION = "From how many equal blocks does it pay to compile only one of them?"

WAYS = ("regional", "nested-region")
_COLUMNS = [
    *("blocks", "compiled ms", "over eager [95 %]", "over whole [95 %]"),
    *("cold s", "over whole", "warm s", "warm over whole", "graphs", "kernels", "used up after"),
]


class _Compared(NamedTuple):
    """A cell whose block is compiled once, and the one that is compiled whole.

    ``blocks``: how many equal blocks. ``time``, ``cold``, ``warm``: over the whole model's. The
    slower calls have used up the shorter cold compile after ``used_up_calls``: infinite if calls
    are not surely slower, 0 if there is nothing to use up.
    """

    cell: Cell
    blocks: int
    own: Figures
    whole: Figures
    time: Interval
    cold: Interval | None
    warm: Interval | None
    used_up_calls: float

    @property
    def starts_faster(self) -> bool:
        """Whether the cold compile is shorter by more than cold compiles differ anyway."""
        return self.cold is not None and self.cold.value < 1 - COMPILE_MARGIN


def answer(records: Sequence[Record]) -> Answer:
    """Compile cost and steady state by number of blocks, against the model compiled whole.

    See the package. A line for each cell whose block is compiled once, and for the whole model.
    """
    measured = _compared.by_cell(records)
    ours = {cell: one for cell, one in measured.items() if cell.way in WAYS}
    found = {cell: _compare(cell, measured) for cell in ours}
    lines: dict[Cell, list[str] | None] = {}
    for cell, pair in found.items():
        whole = _whole(cell)
        if whole in measured and lines.get(whole) is None:
            lines[whole] = _plain(measured[whole], _blocks(whole, ours))
        lines[cell] = _line(pair, measured[cell]) or _plain(measured[cell], _blocks(whole, ours))
    pairs = sorted(
        (pair for pair in found.values() if pair is not None),
        key=lambda pair: (pair.blocks, pair.cell.workload),
    )
    return Answer(_sentence(pairs, ours), _compared.sheet(_COLUMNS, lines, measured))


def _whole(cell: Cell) -> Cell:
    return msgspec.structs.replace(cell, way="whole")


def _blocks(whole: Cell, ours: dict[Cell, Measurement]) -> int:
    """How many equal blocks a model has, as any of its cells recorded it; 0 if none did."""
    return max(
        (
            one.compiled.blocks
            for cell, one in ours.items()
            if _whole(cell) == whole and one.compiled is not None
        ),
        default=0,
    )


def _compare(cell: Cell, measured: dict[Cell, Measurement]) -> _Compared | None:
    """None if either side has no figures."""
    own = _compared.figures(measured[cell])
    whole = _compared.figures(measured.get(_whole(cell)))
    compiled = measured[cell].compiled
    if own is None or whole is None or compiled is None:
        return None
    time = over(own.ratio, whole.ratio)
    assert time is not None
    return _Compared(
        cell,
        compiled.blocks,
        own,
        whole,
        time,
        over(own.cold_s, whole.cold_s),
        over(own.warm_s, whole.warm_s),
        _used_up_calls(own, whole, time),
    )


def _used_up_calls(own: Figures, whole: Figures, time: Interval) -> float:
    if own.cold_s is None or whole.cold_s is None or own.cold_s.value >= whole.cold_s.value:
        return 0
    if payoff(time) is not Payoff.LOSS:
        return math.inf
    saved_s = whole.cold_s.value - own.cold_s.value
    return math.ceil(saved_s / (whole.mode_s.value * (time.value - 1)))


def _plain(measurement: Measurement, blocks: int) -> list[str] | None:
    """The line of a cell that is compared with nothing; None if it failed."""
    own = _compared.figures(measurement)
    if own is None:
        return None
    return [
        str(blocks or "-"),
        text(own.mode_s, 1e3, ".3g"),
        text(own.ratio),
        "-",
        text(own.cold_s, spec=".1f"),
        "-",
        text(own.warm_s, spec=".1f"),
        "-",
        *_counts(measurement),
        "-",
    ]


def _line(pair: _Compared | None, measurement: Measurement) -> list[str] | None:
    if pair is None:
        return None
    return [
        str(pair.blocks),
        text(pair.own.mode_s, 1e3, ".3g"),
        text(pair.own.ratio),
        text(pair.time),
        text(pair.own.cold_s, spec=".1f"),
        text(pair.cold),
        text(pair.own.warm_s, spec=".1f"),
        text(pair.warm),
        *_counts(measurement),
        _calls(pair.used_up_calls),
    ]


def _counts(measurement: Measurement) -> list[str]:
    compiled = measurement.compiled
    counts = (None, None) if compiled is None else (compiled.graphs, compiled.kernels)
    return ["-" if count is None else str(count) for count in counts]


def _calls(calls: float) -> str:
    if math.isinf(calls):
        return "never"
    return f"{calls:,.0f} calls" if calls else "-"


def _sentence(pairs: list[_Compared], ours: dict[Cell, Measurement]) -> str:
    """``pairs``: by number of blocks, fewest first."""
    if not pairs:
        return _compared.missing("Regional compilation", ours)
    parts = []
    for way, words in (
        ("regional", "compiling only the repeated block"),
        ("nested-region", "compiling it whole with the block as a nested region"),
    ):
        own = [pair for pair in pairs if pair.cell.way == way]
        if own:
            parts.append(_way(own, words))
    sentence = "; ".join(parts) + "."
    return sentence[0].upper() + sentence[1:]


def _way(pairs: list[_Compared], words: str) -> str:
    most = pairs[-1]
    cold, whole_cold = text(most.own.cold_s, spec=".1f"), text(most.whole.cold_s, spec=".1f")
    said = (
        f"with {most.blocks} equal blocks ({most.cell.workload}), {words} takes {cold} s from a "
        f"cold start and not {whole_cold} s ({text(most.cold)}), and a call takes {most.time} of "
        "the time of the model compiled whole"
    )
    if 0 < most.used_up_calls < math.inf:
        said += f", which uses up the shorter start after {_calls(most.used_up_calls)}"
    if len({pair.blocks for pair in pairs}) == 1:
        return said
    first = _from(pairs)
    if first is None:
        return f"{said}; it does not shorten the cold start"
    return f"{said}; it shortens the cold start from {first.blocks} blocks on ({text(first.cold)})"


def _from(pairs: list[_Compared]) -> _Compared | None:
    """The pair with the fewest blocks that starts faster, as all with more blocks do."""
    first = None
    for pair in reversed(pairs):
        if not pair.starts_faster:
            break
        first = pair
    return first

"""Does freezing pay: is a call faster than with plain torch.compile, and at what price?"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...analysis.statistics import Interval
from ...cell import DEFAULT_HEAP, Cell, Measurement
from ...results.records import Record
from ..wording import listed
from . import Answer, _compared
from ._compared import Figures, over, text

QUESTION = "Does freezing the weights pay, over plain torch.compile?"

_COLUMNS = [
    *("eager ms", "compiled ms", "over eager [95 %]", "over plain compile [95 %]"),
    *("cold s", "warm s", "error", "MiB"),
]


def answer(records: Sequence[Record]) -> Answer:
    """Freezing against plain torch.compile, and against eager.

    See the package. A line for each frozen cell, and for the plain one beside it. Memory on a CPU
    is that of the cells with the default heap.
    """
    measured = _compared.by_cell(records)
    frozen = {cell: one for cell, one in measured.items() if cell.way == "freezing"}
    found = {cell: _compared.figures(measured[cell]) for cell in _cells(frozen, measured)}
    lines = {cell: _line(cell, found) for cell in found}
    return Answer(_sentence(frozen, found), _compared.sheet(_COLUMNS, lines, measured))


def _cells(frozen: dict[Cell, Measurement], measured: dict[Cell, Measurement]) -> list[Cell]:
    """The frozen cells, each after the plain one, if that was measured."""
    return [one for cell in frozen for one in (_plain(cell), cell) if one in measured]


def _plain(cell: Cell) -> Cell:
    return msgspec.structs.replace(cell, way="whole")


def _line(cell: Cell, found: dict[Cell, Figures | None]) -> list[str] | None:
    own = found[cell]
    if own is None:
        return None
    plain = found.get(_plain(cell)) if cell.way != "whole" else None
    return [
        text(own.eager_s, 1e3, ".3g"),
        text(own.mode_s, 1e3, ".3g"),
        text(own.ratio),
        text(over(own.ratio, plain.ratio) if plain else None),
        text(own.cold_s, spec=".1f"),
        text(own.warm_s, spec=".1f"),
        "-" if own.error is None else f"{own.error:.1e}",
        text(own.memory_bytes, 2**-20, ".0f"),
    ]


def _sentence(frozen: dict[Cell, Measurement], found: dict[Cell, Figures | None]) -> str:
    ratios: dict[str, Interval] = {}
    eager: list[Interval] = []
    cold: list[Interval | None] = []
    warm: list[Interval | None] = []
    memory: list[Interval | None] = []
    for cell in frozen:
        own, plain = found[cell], found.get(_plain(cell))
        if own is None or plain is None:
            continue
        # A settled heap holds more by design. On an accelerator there is no other cell.
        if cell.allocator == DEFAULT_HEAP or cell.device != "cpu":
            memory.append(over(own.memory_bytes, plain.memory_bytes))
        if cell.allocator == DEFAULT_HEAP:
            continue
        ratio = over(own.ratio, plain.ratio)
        if ratio is not None:
            ratios[_name(cell)] = ratio
        eager.append(own.ratio)
        cold.append(over(own.cold_s, plain.cold_s))
        warm.append(over(own.warm_s, plain.warm_s))
    if not ratios:
        return _compared.missing("Freezing", frozen)
    several = len(ratios) > 1
    models = f"{len(ratios)} models" if several else next(iter(ratios))
    average = " (geometric mean)" if several else ""
    parts = [
        f"With frozen weights a call of {models} takes {_compared.mean(ratios.values())} of its "
        f"time with plain torch.compile{average}, and {_compared.mean(eager)} of eager's time"
    ]
    if several:
        parts.append(_compared.groups(ratios))
    prices = [
        f"{words} {price}"
        for words, price in (
            ("a cold compile", _compared.mean(cold)),
            ("a warm one", _compared.mean(warm)),
            ("the peak memory", _compared.mean(memory)),
        )
        if price is not None
    ]
    if prices:
        parts.append(f"over plain torch.compile, {listed(prices)} times as much")
    return "; ".join(parts) + "."


def _name(cell: Cell) -> str:
    """The model, and how the cell differs from plain inference, but for its way."""
    variant = _plain(cell).variant
    mode = "" if cell.mode == "default" else f", {cell.mode}"
    batch = "" if cell.batch_size == 1 else f", batch {cell.batch_size}"
    return f"{cell.workload}{batch}{mode}{f', {variant}' if variant else ''}"

"""Whether compiling pays, and where a gain comes from: means of time ratios, by mode or by part."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ...analysis.change import of_model
from ...analysis.payoff import Payoff, counts
from ...analysis.summary import Row
from ...cell import Cell
from ...results.records import Record
from .. import sheets
from ..wording import plural, without_gain
from . import common
from .common import Answer, by_mode, mean

_SETTLED, _INDUCTOR = "system", "inductor"


def inference(records: Sequence[Record]) -> Answer:
    """Plain inference in float32, by mode."""

    return _answer(
        records,
        lambda cell: of_model(cell) and not cell.differs(),
        lambda rows: _pays(rows, "a call"),
    )


def training(records: Sequence[Record]) -> Answer:
    """Whole optimizer steps, in any precision and number of micro-batches, by mode.

    Those of models, and after them those of workloads that were made for another question.
    """

    def said(rows: Sequence[Row]) -> str:
        models = [row for row in rows if of_model(row.cell)]
        others = [row for row in rows if row not in models]
        sentence = "No step of a model was measured here."
        if any(row.ratio is not None for row in models):
            sentence = _pays(models, "an optimizer step")
        made = by_mode(others)
        return sentence + (f" Made for other questions: {made}." if made else "")

    return _answer(
        records, lambda cell: cell.asks_whether_it_pays and cell.phase == "training", said
    )


def precision(records: Sequence[Record]) -> Answer:
    """Autocast regions in bfloat16, whose baseline is eager in float32, by mode."""
    said = "In bfloat16 a call takes on average, of eager's time in float32: {}."
    return _answer(
        records,
        lambda cell: cell.dtype == "bfloat16" and cell.differs() == {"dtype", "baseline"},
        lambda rows: said.format(by_mode(rows)),
    )


def backends(records: Sequence[Record]) -> Answer:
    """The mean ratio of each backend, over the models that have a number with each of them."""
    asked = {
        _with_inductor(record.measurement.cell)
        for record in records
        if "backend" in record.measurement.cell.differs()
    }
    return _answer(records, lambda cell: _with_inductor(cell) in asked, _by_backend)


def allocator(records: Sequence[Record]) -> Answer:
    """The mean ratio with each allocator, and that of the same cells with a settled heap."""
    # Other protocols, such as many calls, are other questions.
    others = [
        record.measurement.cell
        for record in records
        if "allocator" in record.measurement.cell.differs()
        and record.measurement.cell.protocol == "right"
    ]
    asked = {_settled(cell) for cell in others if cell.device == "cpu"}
    if others and not asked:
        sentence = (
            "No gain of an accelerator comes from malloc: torch's own allocator has the tensors, "
            "and keeps their memory."
        )
        return Answer(sentence, sheets.measured([]))
    return _answer(records, lambda cell: _settled(cell) in asked, _by_allocator)


def _answer(
    records: Sequence[Record], wanted: Callable[[Cell], bool], said: Callable[[list[Row]], str]
) -> Answer:
    """The answer from the rows of the wanted cells; ``said`` tells what those with numbers say."""
    rows = common.rows(records, wanted)
    known = any(row.ratio is not None for row in rows)
    return common.told(said(rows) if known else "", rows, sheets.measured(rows))


def _with_inductor(cell: Cell) -> Cell:
    return msgspec.structs.replace(cell, backend=_INDUCTOR)


def _settled(cell: Cell) -> Cell:
    return msgspec.structs.replace(cell, allocator=_SETTLED)


def _pays(rows: Sequence[Row], call: str) -> str:
    """In how many cells compiling pays, and the means. ``call`` says what is timed."""
    number = counts(rows)
    pays = f"{Payoff.GAIN.value} in {number[Payoff.GAIN]} of {plural(sum(number.values()), 'cell')}"
    pays += without_gain(number)
    average = mean(row.ratio for row in rows)
    return (
        f"Compiled is {pays}; on average {call} takes {average} of eager's time: {by_mode(rows)}."
    )


def _by_backend(rows: Sequence[Row]) -> str:
    measured: dict[str, dict[Cell, Row]] = {}
    for row in rows:
        if row.ratio is not None:
            measured.setdefault(row.cell.backend, {})[_with_inductor(row.cell)] = row
    shared = set.intersection(*(set(of_backend) for of_backend in measured.values()))
    if not shared:
        return f"No model has a number with each of the backends {', '.join(measured)}."
    # Inductor last: each of the others does a part of its work.
    ordered = sorted(measured.items(), key=lambda one: one[0] == _INDUCTOR)
    means = (f"{name} {mean(of[cell].ratio for cell in shared)}" for name, of in ordered)
    return (
        f"In {plural(len(shared), 'cell')} with a number for each backend, a call takes on "
        f"average, of eager's time: {', '.join(means)}."
    )


def _by_allocator(rows: Sequence[Row]) -> str:
    by_cell = {row.cell: row for row in rows if row.ratio is not None}
    pairs: dict[str, list[tuple[Row, Row]]] = {}
    for cell, row in by_cell.items():
        twin = by_cell.get(_settled(cell))
        if twin is not None and twin is not row:
            pairs.setdefault(cell.allocator, []).append((row, twin))
    if not pairs:
        return "No cell has a number both with another malloc and with a settled heap."
    parts = (
        f"with {name} {mean(row.ratio for row, _ in both)}, and with a settled heap "
        f"{mean(twin.ratio for _, twin in both)} ({plural(len(both), 'cell')})"
        for name, both in sorted(pairs.items())
    )
    return f"A compiled call takes on average, of eager's time: {'; '.join(parts)}."

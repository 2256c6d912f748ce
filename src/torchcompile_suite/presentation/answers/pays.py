"""Whether compiling pays, where a gain comes from, and where the time of a compiled call goes.

The first two by means of time ratios, by mode or by part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median

import msgspec

from ...analysis import why as analysis
from ...analysis.change import of_model
from ...analysis.payoff import Payoff, counts
from ...analysis.statistics import Interval
from ...analysis.summary import Row
from ...attribution import Kind
from ...cell import Cell
from ...measurement import Launch
from ...results.records import Record
from .. import sheets, why
from ..sheets import CELL, Sheet, cell_columns
from ..wording import listed, plural, without_gain
from . import common
from .common import NOTHING, Answer, by_mode, mean

_SETTLED, _INDUCTOR = "system", "inductor"
_COPIES = "copies into another layout"
# What a part of the call is called in the sentence.
_KINDS: dict[Kind, str] = {
    "library": "calls of libraries",
    "generated": "generated kernels",
    "copy": _COPIES,
}
_COLUMNS = [*CELL, *why.SUMMED_UP]


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
        elif models:
            sentence = "No step of a model has a number here."
        made = by_mode(others, sheets.mode_of_phase)
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
    means = by_mode(rows, sheets.mode_of_phase)
    return f"Compiled is {pays}; on average {call} takes, of eager's time: {means}."


def _by_backend(rows: Sequence[Row]) -> str:
    measured: dict[str, dict[Cell, Interval]] = {}
    for row in rows:
        if row.ratio is not None:
            measured.setdefault(row.cell.backend, {})[_with_inductor(row.cell)] = row.ratio
    shared = set.intersection(*(set(of_backend) for of_backend in measured.values()))
    if not shared:
        return f"No model has a number with each of the backends {', '.join(measured)}."
    # A mean leaves out what has no interval: of each backend another cell.
    known = {cell for cell in shared if all(of[cell].known for of in measured.values())}
    shared = known or shared
    # Inductor last: each of the others does a part of its work.
    ordered = sorted(measured.items(), key=lambda one: one[0] == _INDUCTOR)
    means = (f"{name} {mean(of[cell] for cell in shared)}" for name, of in ordered)
    asked = (*(row.cell.backend for row in rows), _INDUCTOR)
    lacking = [name for name in dict.fromkeys(asked) if name not in measured]
    without = f" There is no number for {listed(lacking)}." if lacking else ""
    return (
        f"In {plural(len(shared), 'cell')} with a number for each of these backends, a call takes "
        f"on average, of eager's time: {', '.join(means)}.{without}"
    )


def _by_allocator(rows: Sequence[Row]) -> str:
    by_cell = {row.cell: row.ratio for row in rows if row.ratio is not None}
    pairs: dict[str, list[tuple[Cell, Interval, Interval]]] = {}
    for cell, of in by_cell.items():
        twin = by_cell.get(_settled(cell))
        if twin is not None and cell.allocator != _SETTLED:
            pairs.setdefault(cell.allocator, []).append((cell, of, twin))
    if not pairs:
        return "No cell has a number both with another malloc and with a settled heap."
    # Steps, frozen weights and small programs are other questions, too: they stand in the table.
    models = {
        name: plain
        for name, both in pairs.items()
        if (plain := [one for one in both if _plain_but_malloc(one[0])])
    }
    # A mean leaves out what has no interval: of each heap another cell.
    alike = {
        name: [one for one in both if one[1].known and one[2].known] or both
        for name, both in sorted((models or pairs).items())
    }
    call = "A compiled call" if models else "A compiled call of other workloads than plain models"
    parts = (
        f"with {name} {mean(of for _, of, _ in both)}, and with a settled heap "
        f"{mean(twin for _, _, twin in both)} ({plural(len(both), 'cell')})"
        for name, both in alike.items()
    )
    return f"{call} takes on average, of eager's time: {'; '.join(parts)}."


def _plain_but_malloc(cell: Cell) -> bool:
    return cell.differs() == {"allocator"} and of_model(_settled(cell))


def attribution(records: Sequence[Record]) -> Answer:
    """How a compiled call divides, and what each cell loses and gains most."""
    found = [(one.measurement.cell, launches) for one in records if (launches := divided(one))]
    lines = [
        [*cell_columns(cell), *why.summed_up(analysis.compiled_against_eager(launches))]
        for cell, launches in found
    ]
    lines += [
        [*cell_columns(record.measurement.cell), *["-"] * 3, str(record.measurement.outcome), ""]
        for record in records
        if not record.measurement.outcome.ok
    ]
    sheet = Sheet(_COLUMNS, frozenset(_COLUMNS[3:6]), lines)
    if not found:
        sentence = f"None of {plural(len(lines), 'cell')} has a number." if lines else NOTHING
        return Answer(sentence, sheet)
    shares = [(cell, _shares(launches)) for cell, launches in found]
    return Answer(_of_parts(shares) + common.without_number(len(lines) - len(found)), sheet)


def divided(record: Record) -> list[Launch]:
    """The launches that divide the record's calls; none if not all of its launches ended well."""
    made = record.measurement
    return [one for one in made.launches if one.attribution is not None and made.outcome.ok]


def _shares(launches: Sequence[Launch]) -> dict[str, float]:
    """Of the compiled call, by part."""
    splits = [one.attribution.mode for one in launches if one.attribution is not None]
    shares = {
        words: fmean(split.steps_s(kind) / split.call_s for split in splits)
        for kind, words in _KINDS.items()
    }
    rest = fmean(sum(split.rest_s.values()) / split.call_s for split in splits)
    return {**shares, "what is in no kernel": rest}


def _of_parts(found: Sequence[tuple[Cell, Mapping[str, float]]]) -> str:
    _, first = found[0]
    named = [f"{median(shares[part] for _, shares in found):.0%} are {part}" for part in first]
    cell, shares = max(found, key=lambda one: one[1][_COPIES])
    sentence = f"Of a compiled call, {listed(named)} (median of {plural(len(found), 'cell')})."
    if shares[_COPIES] > analysis.WORTH:
        sentence += f" {cell.workload} copies most: {shares[_COPIES]:.0%} of its call."
    return sentence

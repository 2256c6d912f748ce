"""Where the time of a compiled call goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import NamedTuple

from ...analysis import why as analysis
from ...analysis.why import Why
from ...attribution import Kind
from ...cell import Cell
from ...measurement import Launch
from ...results.records import Record
from .. import why
from ..sheets import CELL, Sheet, cell_columns
from ..wording import listed, plural
from .common import NOTHING, Answer

_COPIES = "copies into another layout"
# What a part of the call is called in the sentence.
_KINDS: dict[Kind, str] = {
    "library": "calls of libraries",
    "generated": "generated kernels",
    "copy": _COPIES,
}
_COLUMNS = [*CELL, *why.SUMMED_UP]


class Divided(NamedTuple):
    """A cell whose calls were divided. ``shares``: of the compiled call, by part."""

    cell: Cell
    why: Why
    shares: Mapping[str, float]


def attribution(records: Sequence[Record]) -> Answer:
    """How a compiled call divides, and what each cell loses and gains most."""
    found = [one for record in records if (one := divided(record)) is not None]
    lines = [[*cell_columns(one.cell), *why.summed_up(one.why)] for one in found]
    lines += [
        [*cell_columns(record.measurement.cell), *["-"] * 3, str(record.measurement.outcome), ""]
        for record in records
        if not record.measurement.outcome.ok
    ]
    sheet = Sheet(_COLUMNS, frozenset(_COLUMNS[3:6]), lines)
    return Answer(_sentence(found) if found else NOTHING, sheet)


def divided(record: Record) -> Divided | None:
    """The record's calls; None if it has none, or if not all of its launches ended well."""
    launches = [one for one in record.measurement.launches if one.attribution is not None]
    if not launches or not record.measurement.outcome.ok:
        return None
    cell = record.measurement.cell
    return Divided(cell, analysis.compiled_against_eager(launches), _shares(launches))


def _shares(launches: Sequence[Launch]) -> dict[str, float]:
    splits = [one.attribution.mode for one in launches if one.attribution is not None]
    shares = {
        words: fmean(split.steps_s(kind) / split.call_s for split in splits)
        for kind, words in _KINDS.items()
    }
    rest = fmean(sum(split.rest_s.values()) / split.call_s for split in splits)
    return {**shares, "what is in no kernel": rest}


def _sentence(found: Sequence[Divided]) -> str:
    named = [
        f"{median(one.shares[part] for one in found):.0%} are {part}" for part in found[0].shares
    ]
    most = max(found, key=lambda one: one.shares[_COPIES])
    sentence = f"Of a compiled call, {listed(named)} (median of {plural(len(found), 'cell')})."
    if most.shares[_COPIES] > analysis.WORTH:
        sentence += f" {most.cell.workload} copies most: {most.shares[_COPIES]:.0%} of its call."
    return sentence

"""Where the time of a compiled call goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import NamedTuple

from ...analysis import why as analysis
from ...analysis.statistics import geometric_interval
from ...analysis.why import Why
from ...attribution import Split
from ...cell import Cell
from ...measurement import Launch
from ...results.records import Record
from .. import why
from ..sheets import CELL, Sheet, cell_columns
from ..wording import listed, milliseconds, plural, ratio
from .common import NOTHING, Answer

# What a part of the call is called in the sentence.
_PARTS = {
    "library": "calls of libraries",
    "generated": "generated kernels",
    "copy": "copies into another layout",
    "rest": "what is in no kernel",
}
_COLUMNS = [*CELL, "eager ms", "compiled ms", "ratio [95 %]", "loses most in", "gains most in"]


class Divided(NamedTuple):
    """A cell whose calls were divided. ``shares``: of the compiled call, by part."""

    cell: Cell
    why: Why
    shares: Mapping[str, float]


def attribution(records: Sequence[Record]) -> Answer:
    """How a compiled call divides, and what each cell loses and gains most."""
    found = [one for record in records if (one := divided(record)) is not None]
    lines = [_line(one) for one in found]
    lines += [
        [*cell_columns(record.measurement.cell), *["-"] * 3, str(record.measurement.outcome), ""]
        for record in records
        if not record.measurement.outcome.ok
    ]
    sheet = Sheet(_COLUMNS, frozenset(_COLUMNS[3:6]), lines)
    return Answer(_sentence(found) if found else NOTHING, sheet)


def divided(record: Record) -> Divided | None:
    """The record's calls; None if it has none."""
    launches = [one for one in record.measurement.launches if one.attribution is not None]
    if not launches:
        return None
    cell = record.measurement.cell
    return Divided(cell, analysis.compiled_against_eager(launches), _shares(launches))


def _shares(launches: Sequence[Launch]) -> dict[str, float]:
    splits = [one.attribution.mode for one in launches if one.attribution is not None]
    return {part: fmean(_share(split, part) for split in splits) for part in _PARTS}


def _share(split: Split, part: str) -> float:
    own = sum(step.seconds for step in split.steps if step.kind == part)
    return (sum(split.rest_s.values()) if part == "rest" else own) / split.call_s


def _sentence(found: Sequence[Divided]) -> str:
    shares = {part: median(one.shares[part] for one in found) for part in _PARTS}
    named = [f"{share:.0%} are {_PARTS[part]}" for part, share in shares.items()]
    most = max(found, key=lambda one: one.shares["copy"])
    sentence = f"Of a compiled call, {listed(named)} (median of {plural(len(found), 'cell')})."
    if most.shares["copy"] > analysis.WORTH:
        sentence += f" {most.cell.workload} copies most: {most.shares['copy']:.0%} of its call."
    return sentence


def _line(one: Divided) -> list[str]:
    sides = one.why.before, one.why.after
    times = [milliseconds(geometric_interval(side.calls_s)) for side in sides]
    largest = [why.named(of[0]) if of else "-" for of in why.worth_naming(one.why)]
    return [*cell_columns(one.cell), *times, ratio(one.why.ratio), *largest]

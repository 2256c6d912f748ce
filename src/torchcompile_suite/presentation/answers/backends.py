"""Where a gain comes from: the same models with each backend of torch.compile."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...analysis.summary import Row
from ...cell import Cell
from ...results.records import Record
from .. import sheets
from ..wording import plural
from . import Answer, _parts

QUESTION = "Where does the gain come from: Dynamo, AOTAutograd or Inductor?"
_INDUCTOR = "inductor"


def answer(records: Sequence[Record]) -> Answer:
    """The mean ratio of each backend, over the models that have a number with each of them."""
    asked = {
        _with_inductor(record.measurement.cell)
        for record in records
        if "backend" in record.measurement.cell.differs()
    }
    rows = _parts.rows(records, lambda cell: _with_inductor(cell) in asked)
    measured: dict[str, dict[Cell, Row]] = {}
    for row in rows:
        if row.ratio is not None:
            measured.setdefault(row.cell.backend, {})[_with_inductor(row.cell)] = row
    if not measured:
        return Answer(_parts.without_numbers(rows), sheets.measured(rows))
    shared = set.intersection(*(set(of_backend) for of_backend in measured.values()))
    if not shared:
        sentence = f"No model has a number with each of the backends {', '.join(measured)}."
        return Answer(sentence + _parts.failed(rows), sheets.measured(rows))
    means = (
        f"{name} {_parts.mean(of_backend[cell] for cell in shared)}"
        for name, of_backend in _in_order(measured).items()
    )
    sentence = (
        f"In {plural(len(shared), 'cell')} with a number for each backend, a call takes on "
        f"average, of eager's time: {', '.join(means)}.{_parts.failed(rows)}"
    )
    return Answer(sentence, sheets.measured(rows))


def _with_inductor(cell: Cell) -> Cell:
    return msgspec.structs.replace(cell, backend=_INDUCTOR)


def _in_order(measured: dict[str, dict[Cell, Row]]) -> dict[str, dict[Cell, Row]]:
    """The backends, Inductor last: each of the others does a part of its work."""
    return dict(sorted(measured.items(), key=lambda one: one[0] == _INDUCTOR))

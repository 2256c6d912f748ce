"""The questions that people ask, answered by the results of a point."""

from __future__ import annotations

from typing import Any

from ...presentation import answers
from ...presentation.sheets import Sheet
from ...results.records import Record
from ..content import Machine
from .common import table


def document(machine: Machine, point: str) -> dict[str, Any]:
    """The answers that need times: a sentence and a table for each question.

    An answer compares cells with each other. So those of an assembled history are answers of the
    ``machine`` that shows most of its cells.
    """
    name = machine.fullest(point)
    records = [entry.record for entry in machine.of(point) if entry.row.machine == name]
    return {
        **({"machine": name} if machine.several else {}),
        "questions": [
            {"name": asked.name, "title": asked.title, **_answer(asked, records)}
            for asked in answers.questions()
            if not asked.of_targets
        ],
    }


def _answer(asked: answers.Asked, records: list[Record]) -> dict[str, Any]:
    sentence, sheet = asked.answer(records)
    return {"sentence": sentence, **sheet_table(sheet)}


def sheet_table(sheet: Sheet) -> dict[str, Any]:
    """A table of text. ``numbers``: the columns that are aligned to the right."""
    numbers = [column for column in sheet.columns if column in sheet.numbers]
    return {**table(sheet.columns, sheet.lines), "numbers": numbers}

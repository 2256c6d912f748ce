"""The answer to each question that people ask, in one sentence with its interval, and its table.

One module for each question: its name is the name of the question in commands and addresses. A new
module needs no other change. It has

- ``QUESTION``: the question in words, which ends with a question mark;
- ``answer(records)``: takes the newest records of one machine with one release, of any cells and
  failed ones, too, in any order and without samples, and answers from those of its question. If
  nothing of the question was measured, the sentence says so and the sheet has no line;
- ``OF_TARGETS = True`` if it answers from generated code, which is the same on all machines. Then
  it gets only records of cells with a target, and all others get none of them.

Names that begin with an underscore are no questions.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple

from ... import matrix
from ...errors import SuiteError
from ...results.records import Record
from ..sheets import Sheet


class Answer(NamedTuple):
    """What a question's page begins with.

    ``sentence`` has the figures with their intervals. ``sheet`` has a line for each cell of the
    question in the records: its figures, or why it has none.
    """

    sentence: str
    sheet: Sheet

    @property
    def measured(self) -> bool:
        """Whether the records have a cell of the question, be it a failed one."""
        return bool(self.sheet.lines)


class Asked(NamedTuple):
    """A question that people ask. ``answer`` and ``of_targets``: as the package says."""

    name: str
    title: str
    answer: Callable[[Sequence[Record]], Answer]
    of_targets: bool


class Answered(NamedTuple):
    """A question with its answer.

    ``machine`` is empty for what is the same on all machines; ``release`` is, where no release was
    measured.
    """

    asked: Asked
    machine: str
    release: str
    answer: Answer


def names() -> list[str]:
    """The names of all questions: those of benchmarks first, in their order. Imports no module."""
    found = [module.name for module in pkgutil.iter_modules(__path__)]
    places = list(dict.fromkeys(name.partition(".")[0] for name in matrix.QUESTIONS))
    order = {name: place for place, name in enumerate(places)}
    return sorted(
        (name for name in found if not name.startswith("_")),
        key=lambda name: (order.get(name, len(order)), name),
    )


@cache
def questions() -> list[Asked]:
    """All questions, in the order of `names`."""
    return [_asked(name) for name in names()]


def _asked(name: str) -> Asked:
    module = importlib.import_module(f"{__name__}.{name}")
    return Asked(name, module.QUESTION, module.answer, getattr(module, "OF_TARGETS", False))


def get(name: str) -> Asked:
    """The question of that name. Raises SuiteError."""
    for asked in questions():
        if asked.name == name:
            return asked
    raise SuiteError(f"no question {name!r}; there are: {', '.join(names())}")


def newest(
    asked: Asked, machine: str, records: Iterable[Record], releases: Sequence[str]
) -> Answered:
    """The answer of the last of ``releases`` that has a cell of the question.

    ``records`` are those of the machine, or those of cells with a target. Without a release that
    has a cell, the sentence of the last one says that nothing was measured.
    """
    of_release: dict[str, list[Record]] = {}
    for record in records if asked.of_targets else _newest(records):
        of_release.setdefault(record.release, []).append(record)
    machine = "" if asked.of_targets else machine
    for release in reversed(releases):
        found = asked.answer(of_release.get(release, []))
        if found.measured:
            return Answered(asked, machine, release, found)
    return Answered(asked, machine, releases[-1] if releases else "", asked.answer([]))


def _newest(records: Iterable[Record]) -> Iterable[Record]:
    """The newest record of each release and cell: environments may have one each."""
    ordered = sorted(records, key=lambda record: record.measurement.started_at)
    return {(record.release, record.measurement.cell): record for record in ordered}.values()

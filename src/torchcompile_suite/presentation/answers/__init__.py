"""The answer to each question that people ask, in one sentence with its interval, and its table.

One module for each question. Each has a function ``answer``, which takes the newest records of one
machine with one release, of any cells and failed ones, too, and answers from those of its question.
"""

from __future__ import annotations

from typing import NamedTuple

from ..sheets import Sheet


class Answer(NamedTuple):
    """What a question's page begins with.

    ``sentence`` has the figures with their intervals. ``sheet`` has a line for each cell of the
    question in the records: its figures, or why it has none.
    """

    sentence: str
    sheet: Sheet

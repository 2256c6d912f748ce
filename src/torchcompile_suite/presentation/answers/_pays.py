"""Whether compiling pays: the sentence of inference and of training."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.summary import Row
from .. import sheets
from . import Answer, _parts


def answer(rows: Sequence[Row], call: str) -> Answer:
    """The answer for rows of compiled cells. ``call`` says what is timed."""
    mean = _parts.mean(rows)
    if mean is None:
        return Answer(_parts.without_numbers(rows), sheets.measured(rows))
    sentence = (
        f"Compiled is {_parts.payoffs(rows)}; on average {call} takes {mean} of eager's time: "
        f"{_parts.by_mode(rows)}.{_parts.failed(rows)}"
    )
    return Answer(sentence, sheets.measured(rows))

"""What is generated for GPUs that are not here: launches of a call, exact and without a time."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_low

from ...analysis import generated
from ...analysis.generated import WITH_CUDA_GRAPHS, Row, count_of_launches
from ...results.records import Record
from .. import sheets
from ..wording import plural
from . import Answer, _parts

QUESTION = "What does the compiler generate for a GPU that is not here?"
OF_TARGETS = True


def answer(records: Sequence[Record]) -> Answer:
    """The launches of a call for each target, by phase and mode."""
    rows = generated.rows(records)
    sheet = sheets.generated(rows)
    if not rows:
        return Answer(_parts.NOTHING, sheet)
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.cell.target, row.cell.phase, row.cell.mode), []).append(row)
    parts = [part for at, mine in groups.items() if (part := _launches(at, mine))]
    made = sum(row.generated is not None for row in rows)
    sentence = f"{made} of {plural(len(rows), 'cell')} have code; nothing was timed."
    if parts:
        sentence += f" Launches of a call: {'; '.join(parts)}."
    return Answer(sentence, sheet)


def _launches(at: tuple[str, str, str], rows: Sequence[Row]) -> str:
    """The least, the median and the most launches of a group; empty if it has no code.

    In a mode that uses CUDA graphs a graph is one launch.
    """
    target, phase, mode = at
    name = count_of_launches(rows)
    counts = sorted(row.counts[name] for row in rows if name in row.counts)
    if not counts:
        return ""
    as_one = ", a CUDA graph as one" if name == WITH_CUDA_GRAPHS else ""
    return (
        f"{target}, {phase}, mode {mode}{as_one}: {counts[0]:,} to {counts[-1]:,}, median "
        f"{median_low(counts):,} ({plural(len(counts), 'cell')})"
    )

"""The names of cells, the question that each of them asks, and their division into buckets."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from functools import cache

import msgspec

from .. import matrix
from ..cell import Cell
from ..modes import EAGER

# Cells of a document. A view reads whole documents, so none may grow without a limit.
MOST_IN_BUCKET = 150

# The axes on which a cell differs from plain inference -> its question. The first one counts.
_QUESTIONS = {
    "way": "freezing and regional compilation",
    "start": "cold starts",
    "protocol": "protocol",
    "allocator": "allocator",
    "shapes": "dynamic shapes",
    "backend": "backends",
    "phase": "training",
    "accumulation": "training",
    "dtype": "precision",
    "baseline": "precision",
    "layout": "memory layout",
}

# Question -> what its ratios compare.
ABOUT = {
    "inference": "Ratio: time of a call, compiled over eager. Below 1 is a gain.",
    "training": "Ratio: time of an optimizer step, compiled over eager. Below 1 is a gain.",
    "precision": "Ratio: time in the named precision over time of the baseline.",
    "memory layout": "Ratio: compiled over eager, both with the channels of images last.",
    "quantisation": "Ratio: time with int8 weights over time in float32 in eager.",
    "overhead": "Graphs of small operators, compiled over eager: what a call costs by itself.",
    "attention": "Ratio: compiled over the same way to write attention in eager.",
    "dynamic shapes": "A stream of shapes, compiled over eager; the name says how it is compiled.",
    "freezing and regional compilation": (
        "Ratio: time of a call, compiled over eager. freezing: the weights are constants. "
        "regional, nested-region: the repeated block is compiled once."
    ),
    "backends": "Ratio: time with the named backend over time in eager: where a gain comes from.",
    "allocator": (
        "Ratio: compiled over eager, both with the named malloc; default-heap is malloc as a "
        "script gets it."
    ),
    "cold starts": (
        "Ratio: time from the start of a process to its first result, compiled over eager; the "
        "name says what the compiled process found."
    ),
    "memory over time": (
        "Ratio: time of a call, compiled over eager, in processes whose memory is watched over "
        "thousands of calls."
    ),
    "protocol": (
        "What a naive timing would have reported: each name is a mistake that is made on purpose."
    ),
}


@cache
def question(cell: Cell) -> str:
    """The question that the cell asks; a key of `ABOUT`. Each cell asks one."""
    differs = cell.differs()
    if cell.protocol == "many-calls":
        return "memory over time"
    if "dtype" in differs and cell.quantised:
        return "quantisation"
    if not differs and (made := matrix.made_for(cell.workload)) is not None:
        return made.name.partition(".")[0]
    return next((name for axis, name in _QUESTIONS.items() if axis in differs), "inference")


def compiles(cell: Cell) -> bool:
    """Whether the cell compares two different things. Eager over eager is 1 by definition."""
    return cell.mode != EAGER or cell.baseline != EAGER


def label(cell: Cell) -> str:
    """The workload, and how the cell differs from plain inference."""
    return f"{cell.workload} ({cell.variant})" if cell.variant else cell.workload


def ids(of: Iterable[Cell]) -> dict[Cell, str]:
    """A name for each cell: its text, and all its axes where two cells have the same text."""
    same: dict[str, list[Cell]] = defaultdict(list)
    for cell in dict.fromkeys(of):
        same[str(cell)].append(cell)
    return {
        cell: text if len(cells) == 1 else f"{text} ({_axes(cell)})"
        for text, cells in same.items()
        for cell in cells
    }


def _axes(cell: Cell) -> str:
    """Every axis with its value."""
    fields = msgspec.structs.asdict(cell)
    return ", ".join(f"{name} {value}" for name, value in fields.items())


def buckets(workloads: Iterable[str], cells: int) -> dict[str, int]:
    """The bucket of each workload, for that number of cells at a point.

    The bucket depends on the name and the number of buckets only, and this number is a power of
    two. So more results seldom move a workload.
    """
    count = 1
    while cells > count * MOST_IN_BUCKET:
        count *= 2
    return {
        name: int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") % count
        for name in sorted(set(workloads))
    }

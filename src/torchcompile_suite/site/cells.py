"""The names of cells, the question that each of them asks, and their division into groups."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec

from .. import workloads
from ..cell import Cell
from ..modes import EAGER

_Key = TypeVar("_Key", bound=Hashable)
_Item = TypeVar("_Item")
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
ABOUT = msgspec.toml.decode(
    Path(__file__).with_name("questions.toml").read_bytes(), type=dict[str, str]
)


@cache
def question(cell: Cell) -> str:
    """The question that the cell asks; a key of `ABOUT`. Each cell asks one."""
    differs = cell.differs()
    if cell.protocol == "many-calls":
        return "memory over time"
    if "dtype" in differs and cell.quantised:
        return "quantisation"
    plain = workloads.made_for(cell.workload) or "inference"
    return next((name for axis, name in _QUESTIONS.items() if axis in differs), plain)


def timed(question: str) -> str:
    """What is timed in cells of the question."""
    return {"cold starts": "start", "training": "training step"}.get(question, "call")


def compiles(cell: Cell) -> bool:
    """Whether the cell compares two different things. Eager over eager is 1 by definition."""
    return cell.mode != EAGER or cell.baseline != EAGER


def pays(cell: Cell) -> bool:
    """Whether the ratio says what compiling changes: the same call in eager, timed rightly."""
    compiled = cell.mode != EAGER and cell.baseline == EAGER
    return compiled and question(cell) not in ("protocol", "cold starts")


def label(cell: Cell) -> str:
    """The workload, and how the cell differs from plain inference."""
    return f"{cell.workload} ({cell.variant})" if cell.variant else cell.workload


def ids(of: Iterable[Cell]) -> dict[Cell, str]:
    """A name for each cell: its text, and all its axes where two cells have the same text."""
    names = {}
    for text, cells in grouped(dict.fromkeys(of), str).items():
        for cell in cells:
            axes = (f"{name} {value}" for name, value in msgspec.structs.asdict(cell).items())
            names[cell] = text if len(cells) == 1 else f"{text} ({', '.join(axes)})"
    return names


def grouped(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    """The items of each key, both in their order."""
    groups: dict[_Key, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


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

"""Parts that several documents share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Table = dict[str, Any]


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A table of a document."""
    return {"columns": list(columns), "rows": [list(row) for row in rows]}


def spread(name: str) -> list[str]:
    """The columns of an interval."""
    return [name, f"{name}_low", f"{name}_high"]


def plural(count: int, noun: str) -> str:
    """The count with its noun: 1 cell, 2 cells; 1 launch, 2 launches."""
    if count == 1:
        return f"{count} {noun}"
    return f"{count} {noun}{'es' if noun.endswith(('s', 'ch')) else 's'}"

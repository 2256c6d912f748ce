"""Parts that several documents share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...cell import Compiled

Table = dict[str, Any]
# JSON name of a field of `Compiled` -> the title of its column.
COMPILED = {
    "graphs": "graphs",
    "graph_breaks": "graph breaks",
    "recompiles": "recompiles",
    "operators": "operators",
    "guards": "guards",
    "kernels": "kernels",
    "launches": "kernel launches a call",
    "eager_operators": "operators in eager",
    "nodes_before": "nodes before fusion",
    "nodes_after": "nodes after",
    "bytes_before": "bytes before fusion",
    "bytes_after": "bytes after",
    "eager_bytes": "bytes in eager",
}


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A table of a document."""
    return {"columns": list(columns), "rows": [list(row) for row in rows]}


def spread(name: str) -> list[str]:
    """The columns of an interval."""
    return [name, f"{name}_low", f"{name}_high"]


def counted(compiled: Compiled, name: str) -> int | None:
    """A count of the compiler; of a list its length. None if it is not known."""
    value = compiled.value(name)
    return len(value) if isinstance(value, list) else value

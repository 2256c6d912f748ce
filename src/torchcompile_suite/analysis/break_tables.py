"""PyTorch's own tables of graph breaks, and ours beside them: integers, compared exactly.

PyTorch keeps a table of what its CI expects of each model, in benchmarks/dynamo of its repository:
``ci_expected_accuracy/*_inference.csv``. ``break_tables.csv`` has the lines of the models that are
workloads here (``python -m evidence.break_tables`` makes it). They are of a release, or of a public
copy of the table (``TABLE@COMMIT``). A copy is of no release, so every release is compared with it
that has no table of its own.

Their ``graph_breaks`` is the sum of ``torch._dynamo.utils.counters["graph_break"]`` over a run
that checks the accuracy (`get_dynamo_stats` in benchmarks/dynamo/common.py). What it compiles calls
the model, and a break is counted again in each function above it. Ours counts each place with its
reason once. So both are 0 or both are not. evidence/ci_breaks.py counts both ways.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..compiled import GraphBreak
from ..measurement import Measurement

FILE = Path(__file__).with_name("break_tables.csv")
# Shapes make no difference to the breaks of these models: copies of this kind are the newest.
CPU, DYNAMIC = "cpu_", "dynamic_cpu_"
TABLES = tuple(
    f"{kind}inductor_{suite}_inference.csv"
    for suite in ("timm", "huggingface")
    for kind in (CPU, "", DYNAMIC)
)
COLUMNS = ("release", "table", "workload", "model", "accuracy", "graph_breaks")


class Expected(NamedTuple):
    """A line of PyTorch's tables.

    ``table``: with ``@`` and its commit, if it is a copy. ``accuracy``: what the CI expects, such
    as pass or fail_to_run.
    """

    table: str
    accuracy: str
    graph_breaks: int


class Compared(NamedTuple):
    """A model's graph breaks here and in PyTorch's table of the same release.

    ``graphs``, ``breaks``: ours; None for a cell without numbers, and ``reason`` says why.
    """

    workload: str
    release: str
    graphs: int | None
    breaks: list[GraphBreak] | None
    expected: Expected
    reason: str = ""

    @property
    def equal(self) -> bool | None:
        """Whether both are 0, or both are not and theirs is not less; None if ours is not known."""
        if self.breaks is None:
            return None
        places, counted = len(self.breaks), self.expected.graph_breaks
        return bool(places) == bool(counted) and places <= counted


@cache
def read(file: Path) -> dict[tuple[str, str, str], Expected]:
    """The lines of the tables, by release, table and workload; the last one of several copies.

    The release is empty in the lines of copies.
    """
    with file.open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(line for line in stream if not line.startswith("#"))
        return {
            (row["release"], row["table"].partition("@")[0], row["workload"]): Expected(
                row["table"], row["accuracy"], int(row["graph_breaks"])
            )
            for row in rows
        }


def expected(release: str, workload: str, device: str) -> Expected | None:
    """The line of a release's table, else that of a copy; None if PyTorch lists none.

    For a CPU that of the table for CPUs, if there is one. Else that of any other table: Dynamo
    captures before any code is generated for the device.
    """
    tables = [table for table in TABLES if device == "cpu" or not table.startswith(CPU)]
    lines = read(FILE)
    found = (lines.get((of, table, workload)) for of in (release, "") for table in tables)
    return next((line for line in found if line is not None), None)


def compared(release: str, measurement: Measurement) -> Compared | None:
    """The model of a cell beside PyTorch's table; None if the table does not have it, or if the
    cell does not capture as PyTorch's run does: inference in mode default, also for a GPU that is
    not here.
    """
    cell = measurement.cell
    line = expected(release, cell.workload, "cuda" if cell.target else cell.device)
    if line is None or cell.mode != "default" or not cell.differs() <= {"target"}:
        return None
    captured = measurement.generated if cell.target else measurement.compiled
    if captured is None:
        outcome = measurement.outcome
        reason = "the record does not say what was captured" if outcome.ok else str(outcome)
        return Compared(cell.workload, release, None, None, line, reason)
    return Compared(cell.workload, release, captured.graphs, captured.graph_breaks, line)

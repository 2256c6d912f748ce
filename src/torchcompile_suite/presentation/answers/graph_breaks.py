"""Graph breaks of timm models, beside PyTorch's own tables of the same release."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis import break_tables
from ...analysis.break_tables import Compared
from ...results.records import Record
from ..sheets import Sheet
from ..wording import plural
from . import Answer, _parts

QUESTION = "Do the timm models have the graph breaks that PyTorch's own tables list?"
# Captures need no machine and take seconds. Both kinds of cells capture the same graphs.
OF_TARGETS = True

COLUMNS = [
    *(
        "model",
        "release",
        "target",
        "graphs",
        "graph breaks",
        "PyTorch's table",
        "PyTorch's number",
    ),
    *("equal", "why"),
]
_NUMBERS = frozenset(("graphs", "graph breaks", "PyTorch's number"))


def answer(records: Sequence[Record]) -> Answer:
    """Which models have as many graph breaks as PyTorch's table of the release lists."""
    found = [
        (record, compared)
        for record in records
        if (compared := break_tables.compared(record.release, record.measurement)) is not None
    ]
    found.sort(key=lambda pair: (pair[1].workload, pair[0].measurement.cell.target))
    # Two machines that generated code for the same cell say the same.
    lines = list(dict.fromkeys(tuple(_line(record, compared)) for record, compared in found))
    sheet = Sheet(COLUMNS, _NUMBERS, [list(line) for line in lines])
    known = [compared for _, compared in found if compared.equal is not None]
    if not known:
        return Answer(_parts.NOTHING if not found else "No model has numbers.", sheet)
    models = {compared.workload for compared in known}
    other = sorted({compared.workload for compared in known if not compared.equal})
    listed = f"{len(models) - len(other)} of {plural(len(models), 'timm model')}"
    sentence = f"{listed} that PyTorch's tables list have exactly the listed number of graph breaks"
    if other:
        sentence += f"; another number: {', '.join(other)}"
    return Answer(f"{sentence}.", sheet)


def _line(record: Record, compared: Compared) -> list[str]:
    cell, expected = record.measurement.cell, compared.expected
    number = "-" if compared.breaks is None else str(len(compared.breaks))
    equal = {True: "yes", False: "no", None: "-"}[compared.equal]
    return [
        *(compared.workload, compared.release, cell.target or cell.device),
        "-" if compared.graphs is None else str(compared.graphs),
        *(number, expected.table, str(expected.graph_breaks), equal, _why(compared)),
    ]


def _why(compared: Compared) -> str:
    """Why there is no number, or what explains a difference: our breaks, how their run ended."""
    if compared.breaks is None:
        return compared.reason
    if compared.equal:
        return ""
    ours = [f"here {one.where}: {one.reason}" for one in compared.breaks]
    theirs = compared.expected.accuracy
    return "; ".join([*ours, *([] if theirs == "pass" else [f"PyTorch's run: {theirs}"])])

"""What needs no times: what is generated for GPUs that are not here, and graph breaks."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_low

from ...analysis import break_tables
from ...analysis import generated as code
from ...analysis.break_tables import Compared
from ...results.records import Record
from .. import sheets
from ..sheets import Sheet
from ..wording import number, plural
from .common import NOTHING, Answer, without_number


def codegen(records: Sequence[Record]) -> Answer:
    """The launches of a call for each target, by phase and mode: exact and without a time."""
    rows = code.rows(records)
    table = sheets.generated(rows)
    if not rows:
        return Answer(NOTHING, table)
    groups: dict[tuple[str, str, str], list[code.Row]] = {}
    for row in rows:
        groups.setdefault((row.cell.target, row.cell.phase, row.cell.mode), []).append(row)
    parts = [part for at, mine in groups.items() if (part := _launches(at, mine))]
    made = sum(row.generated is not None for row in rows)
    sentence = f"There is code of {made} of {plural(len(rows), 'cell')}; nothing was timed."
    if parts:
        sentence += f" Launches of a call, each graph once: {'; '.join(parts)}."
    return Answer(sentence, table)


def _launches(at: tuple[str, str, str], rows: Sequence[code.Row]) -> str:
    """The least, the median and the most launches of a group; empty if it has no code.

    In a mode that uses CUDA graphs a graph is one launch.
    """
    target, phase, mode = at
    name = code.count_of_launches(rows)
    counts = sorted(row.counts[name] for row in rows if name in row.counts)
    if not counts:
        return ""
    as_one = ", a CUDA graph as one" if name == code.WITH_CUDA_GRAPHS else ""
    return (
        f"{target}, {phase}, mode {mode}{as_one}: {counts[0]:,} to {counts[-1]:,}, median "
        f"{median_low(counts):,} ({plural(len(counts), 'cell')})"
    )


_COLUMNS = [
    *("model", "release", "target", "graphs", "graph breaks", "PyTorch's table"),
    *("PyTorch's number", "equal", "why"),
]
_NUMBERS = frozenset(("graphs", "graph breaks", "PyTorch's number"))


def graph_breaks(records: Sequence[Record]) -> Answer:
    """Which models have the graph breaks that PyTorch's table of the release lists.

    Captures need no machine and take seconds. Both kinds of cells capture the same graphs. Of a
    model that breaks, PyTorch's number is larger: it counts a place in each function above it.
    """
    found = [
        (one, record.measurement.cell)
        for record in code.of_any_machine(records)
        if (one := break_tables.compared(record.release, record.measurement)) is not None
    ]
    found.sort(key=lambda pair: (pair[0].workload, pair[1].target))
    lines = dict.fromkeys(tuple(_line(one, cell.target or cell.device)) for one, cell in found)
    sheet = Sheet(_COLUMNS, _NUMBERS, [list(line) for line in lines])
    known = [one for one, _ in found if one.equal is not None]
    if not known:
        return Answer(NOTHING if not found else "No model has numbers.", sheet)
    models = {one.workload for one in known}
    other = sorted({one.workload for one in known if not one.equal})
    sentence = (
        f"{plural(len(models), 'model')} of PyTorch's tables. With graph breaks if the table lists "
        f"some, no more than it, and without if it lists none: {len(models) - len(other)}"
    )
    if other:
        sentence += f"; others: {', '.join(other)}"
    return Answer(f"{sentence}.{without_number(len(found) - len(known))}", sheet)


def _line(compared: Compared, target: str) -> list[str]:
    expected = compared.expected
    breaks = None if compared.breaks is None else len(compared.breaks)
    equal = {True: "yes", False: "no", None: "-"}[compared.equal]
    return [
        *(compared.workload, compared.release, target),
        *(number(compared.graphs, "d"), number(breaks, "d")),
        *(expected.table, str(expected.graph_breaks), equal, _why(compared)),
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

"""What the compiler saw and made: graphs, breaks, guards, kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...cell import Compiled
from .. import paths
from ..content import Content, Entry, Machine, label
from ..page import Page, Section, Table, Value
from . import common

COLUMNS = {
    "graphs": "graphs",
    "graph_breaks": "breaks",
    "recompiles": "recompiles",
    "operators": "operators",
    "guards": "guards",
    "kernels": "kernels",
    "launches": "launches a call",
    "eager_operators": "eager launches",
    "nodes_before": "nodes before",
    "nodes_after": "after fusion",
    "bytes_before": "MB before",
    "bytes_after": "MB after",
    "eager_bytes": "eager MB",
}


def pages(content: Content) -> Iterator[Page]:
    """One for each machine and release."""
    return (
        _page(content, machine, release)
        for machine in content.machines
        for release in machine.releases
    )


def path(machine: Machine) -> str:
    """Of the newest release."""
    return paths.compiler(machine.name, machine.releases[-1])


def _page(content: Content, machine: Machine, release: str) -> Page:
    found = [
        (entry, compiled)
        for entry in machine.of(release)
        if (compiled := entry.measurement.compiled) is not None
    ]
    whole = sum(1 for _, each in found if each.graphs == 1 and not each.graph_breaks)
    broken = sum(1 for _, each in found if each.graph_breaks)
    answer = ["No measurement of this release says what was compiled."]
    if found:
        answer = [
            f"Of {common.plural(len(found), 'compiled cell')} {whole} became one whole graph and "
            f"{broken} had graph breaks.",
            "Fusion joins the nodes of a graph into kernels: fewer launches, and fewer bytes "
            "carried to memory and back.",
        ]
    return Page(
        paths.compiler(machine.name, release),
        "compiler",
        f"What did the compiler see? PyTorch {label(release)}",
        answer,
        [
            *common.machines(content, machine, path),
            common.releases(machine, release, lambda each: paths.compiler(machine.name, each)),
        ],
        _sections(machine, found),
        [_flat(entry, compiled) for entry, compiled in found],
    )


def _sections(machine: Machine, found: list[tuple[Entry, Compiled]]) -> list[Section]:
    if not found:
        return []
    numbers: list[list[Value]] = [
        [
            common.linked(machine, entry.row, str(entry.row.cell)),
            *(_shown(compiled, field) for field in COLUMNS),
        ]
        for entry, compiled in found
    ]
    breaks: list[list[Value]] = [
        [common.linked(machine, entry.row, str(entry.row.cell)), each.where, each.reason]
        for entry, compiled in found
        for each in compiled.graph_breaks
    ]
    skips: list[list[Value]] = [
        [common.linked(machine, entry.row, str(entry.row.cell)), reason]
        for entry, compiled in found
        for reason in compiled.cudagraph_skips
    ]
    made = [
        Section(
            "Graphs and kernels",
            "kernels",
            ["A dash: this release or device does not tell; the cell's page says why."],
            tables=[
                Table(
                    "What the compiler saw and made, at a cold start.",
                    ["cell", *COLUMNS.values()],
                    frozenset(COLUMNS.values()),
                    numbers,
                )
            ],
        )
    ]
    if breaks:
        columns = ["cell", "where", "reason"]
        table = Table("Where the graph had to be left.", columns, frozenset(), breaks)
        made.append(Section("Graph breaks", "breaks", tables=[table]))
    if skips:
        table = Table("Why no CUDA graph was recorded.", ["cell", "reason"], frozenset(), skips)
        made.append(Section("CUDA graphs skipped", "skips", tables=[table]))
    return made


def shown(value: Any, field: str) -> str:
    """A number of a `Compiled` as people read it: bytes in millions; a dash for an unknown one."""
    if value is None:
        return "-"
    if isinstance(value, list):
        return str(len(value))
    return f"{value / 1e6:,.2f}" if field.endswith("bytes") or "bytes_" in field else f"{value:,}"


def _shown(compiled: Compiled, field: str) -> str:
    return shown(compiled.value(field), field)


def _flat(entry: Entry, compiled: Compiled) -> dict[str, Any]:
    values = {field: compiled.value(field) for field in COLUMNS}
    return {
        "cell": str(entry.row.cell),
        **{name: len(each) if isinstance(each, list) else each for name, each in values.items()},
        "guard_check_s": compiled.guard_check_s,
        "break_reasons": "; ".join(f"{b.where}: {b.reason}" for b in compiled.graph_breaks),
    }

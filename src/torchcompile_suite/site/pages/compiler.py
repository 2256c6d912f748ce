"""What the compiler captured and generated: graphs, breaks, guards, kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...cell import Compiled
from .. import paths
from ..content import Content, Entry, Machine, label
from ..page import Page, Section, Table, Value
from . import common

# JSON name of a field of `Compiled` -> the title of its column.
COLUMNS = {
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
    "bytes_before": "MB before fusion",
    "bytes_after": "MB after",
    "eager_bytes": "MB in eager",
}


def pages(content: Content) -> Iterator[Page]:
    """One page for each machine and release."""
    return common.page_a_release(content, _page)


def path(machine: Machine) -> str:
    """The page of the newest release."""
    return paths.compiler(machine.name, machine.releases[-1])


def _page(content: Content, machine: Machine, release: str) -> Page:
    compiles = [
        (entry, compiled)
        for entry in machine.of(release)
        if (compiled := entry.measurement.compiled) is not None
    ]
    whole = sum(1 for _, made in compiles if made.graphs == 1 and not made.graph_breaks)
    broken = sum(1 for _, made in compiles if made.graph_breaks)
    answer = ["No measurement of this release says what was compiled."]
    if compiles:
        answer = [
            f"Of {common.plural(len(compiles), 'compiled cell')}, {whole} became one whole graph "
            f"and {broken} had graph breaks.",
            "Fusion joins nodes of a graph into one kernel. This saves kernel launches and memory "
            "traffic.",
        ]
    return Page(
        paths.compiler(machine.name, release),
        "compiler",
        f"What does the compiler make? PyTorch {label(release)}",
        answer,
        [
            *common.machines(content, machine, path),
            common.releases(machine, release, lambda other: paths.compiler(machine.name, other)),
        ],
        _sections(machine, compiles),
        [_flat(entry, compiled) for entry, compiled in compiles],
    )


def _sections(machine: Machine, compiles: list[tuple[Entry, Compiled]]) -> list[Section]:
    if not compiles:
        return []
    numbers: list[list[Value]] = [
        [
            common.linked(machine, entry.row, str(entry.row.cell)),
            *(_shown(compiled, field) for field in COLUMNS),
        ]
        for entry, compiled in compiles
    ]
    breaks: list[list[Value]] = [
        [
            common.linked(machine, entry.row, str(entry.row.cell)),
            graph_break.where,
            graph_break.reason,
        ]
        for entry, compiled in compiles
        for graph_break in compiled.graph_breaks
    ]
    skips: list[list[Value]] = [
        [common.linked(machine, entry.row, str(entry.row.cell)), reason]
        for entry, compiled in compiles
        for reason in compiled.cudagraph_skips
    ]
    sections = [
        Section(
            "Graphs and kernels",
            "kernels",
            [
                "A dash means: this release or device does not report the number. The page of the "
                "cell gives the reason."
            ],
            tables=[
                Table(
                    "What the compiler captured and generated at a cold start.",
                    ["cell", *COLUMNS.values()],
                    frozenset(COLUMNS.values()),
                    numbers,
                )
            ],
        )
    ]
    if breaks:
        columns = ["cell", "where", "reason"]
        table = Table("The places in the code that break the graph.", columns, frozenset(), breaks)
        sections.append(Section("Graph breaks", "breaks", tables=[table]))
    if skips:
        table = Table(
            "The reasons why no CUDA graph was recorded.", ["cell", "reason"], frozenset(), skips
        )
        sections.append(Section("CUDA graphs skipped", "skips", tables=[table]))
    return sections


def shown(value: Any, field: str) -> str:
    """A number of a `Compiled` as text: bytes in MB, a list by its length, a dash if unknown."""
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
        **{key: len(value) if isinstance(value, list) else value for key, value in values.items()},
        "guard_check_s": compiled.guard_check_s,
        "break_reasons": "; ".join(f"{b.where}: {b.reason}" for b in compiled.graph_breaks),
    }

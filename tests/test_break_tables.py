"""PyTorch's tables of graph breaks: which line a cell is compared with, and what is equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from evidence import break_tables as evidence_tables

from torchcompile_suite import workloads
from torchcompile_suite.analysis import break_tables, claims
from torchcompile_suite.analysis.claims import Verdict
from torchcompile_suite.cell import Cell
from torchcompile_suite.compiled import Compiled, GraphBreak
from torchcompile_suite.measurement import Measurement, Outcome, Status
from torchcompile_suite.releases import catalogue

from . import examples

CLAIM = "timm-graph-breaks-are-pytorchs"


@pytest.fixture(autouse=True)
def tables(break_lines: Path) -> Path:
    """Invented lines in place of PyTorch's."""
    return break_lines


def captured(
    workload: str, breaks: int | None, torch: str = "2.9.1+cpu", **axes: object
) -> Measurement:
    """The measurement of a cell with that many graph breaks; None for a failed one."""
    made = examples.measurement(workload)
    cell = Cell(workload, 1, "default", **axes)  # type: ignore[arg-type]
    if breaks is None:
        failed = examples.measurement(outcome=Outcome(Status.CRASH, "it fell"))
        return msgspec.structs.replace(failed, cell=cell)
    listed = [GraphBreak("why", f"m.py:{number}") for number in range(breaks)]
    launches = [
        msgspec.structs.replace(one, environment=examples.environment(torch))
        for one in made.launches
    ]
    compiled = Compiled(graphs=breaks + 1, graph_breaks=listed)
    launches[0] = msgspec.structs.replace(launches[0], compiled=compiled)
    return msgspec.structs.replace(made, cell=cell, launches=launches)


def judged(*measurements: Measurement) -> claims.Judged:
    return next(one for one in claims.judge(measurements) if one.claim.id == CLAIM)


def test_each_line_is_of_a_release_and_of_a_workload() -> None:
    """The lines that the package has, not the invented ones; the script makes the same."""
    file = Path(break_tables.__file__).with_name("break_tables.csv")
    lines = break_tables.read(file)
    made = [",".join(line) for line in evidence_tables.lines()]
    kept = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    assert kept[1:] == made
    known = {release.version for release in catalogue.read()}
    assert lines
    for (release, table, workload), line in lines.items():
        name, _, commit = line.table.partition("@")
        assert release in known if not commit else not release
        assert table in break_tables.TABLES
        assert table == name
        assert workloads.get(workload).family in ("timm", "hf")


def test_a_cpu_is_compared_with_the_cpus_table_and_a_gpu_never() -> None:
    cpu, cuda = (break_tables.expected("2.9.1", "mobilenetv2_100", d) for d in ("cpu", "cuda"))
    assert cpu is not None
    assert cuda is not None
    assert (cpu.table, cuda.table) == break_tables.TABLES[:2]
    only_cuda = break_tables.expected("2.9.1", "ghostnet_100", "cpu")
    assert only_cuda is not None
    assert only_cuda.table == break_tables.TABLES[1]
    assert break_tables.expected("2.9.1", "resnet18", "cpu") is None
    assert break_tables.expected("9.9.9", "mobilenetv2_100", "cpu") is None


@pytest.mark.parametrize(
    ("breaks", "equal", "verdict"),
    [(0, True, Verdict.CONFIRMED), (1, False, Verdict.CONTRADICTED)],
)
def test_the_number_is_compared_exactly(breaks: int, equal: bool, verdict: Verdict) -> None:
    measurement = captured("mobilenetv2_100", breaks)
    compared = break_tables.compared("2.9.1", measurement)
    assert compared is not None
    assert compared.equal is equal
    found = judged(measurement, captured("resnet18", 3))
    assert found.verdict is verdict
    assert ("mobilenetv2_100: 1 here, 0 there" in found.reason) is (not equal)


@pytest.mark.parametrize(("breaks", "equal"), [(0, False), (1, True), (4, True), (5, False)])
def test_their_number_counts_a_place_again_in_each_function_above(breaks: int, equal: bool) -> None:
    compared = break_tables.compared("2.9.1", captured("AllenaiLongformerBase", breaks))
    assert compared is not None
    assert compared.expected.graph_breaks == 4
    assert compared.equal is equal
    # The claim is of timm.
    assert judged(captured("AllenaiLongformerBase", breaks)).verdict is Verdict.NOT_MEASURABLE


def test_what_was_not_captured_is_no_difference() -> None:
    compared = break_tables.compared("2.9.1", captured("mobilenetv2_100", None))
    assert compared is not None
    assert compared.equal is None
    assert compared.reason == "crash: it fell"
    assert judged(captured("mobilenetv2_100", None)).verdict is Verdict.NOT_MEASURABLE
    assert "was measured" in judged(captured("resnet18", 0)).reason


@pytest.mark.parametrize("axes", [{"phase": "training"}, {"dtype": "bfloat16"}])
def test_other_cells_are_not_compared(axes: dict[str, Any]) -> None:
    assert break_tables.compared("2.9.1", captured("mobilenetv2_100", 0, **axes)) is None

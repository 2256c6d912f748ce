"""What a release lacks is counted, and told apart from what has a reason to be lacking."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from torchcompile_suite import matrix
from torchcompile_suite.analysis import coverage
from torchcompile_suite.cell import Cell, Compiled, Measurement, Outcome, Status
from torchcompile_suite.cli import app
from torchcompile_suite.host import machine
from torchcompile_suite.results import records

from . import examples

CELL = Cell("resnet18", 1, "default")
TOLD = Compiled(**dict.fromkeys(coverage.NUMBERS[:-1], 1), unknown={"profile": "no queue"})


def measurement(
    cell: Cell, compiled: Compiled | None, outcome: Outcome | None = None
) -> Measurement:
    made = examples.measurement(**({"outcome": outcome} if outcome else {}))
    launches = [msgspec.structs.replace(made.launches[0], compiled=compiled), *made.launches[1:]]
    return msgspec.structs.replace(made, cell=cell, launches=launches)


def test_a_whole_record_has_no_gap() -> None:
    found = coverage.coverage([measurement(CELL, TOLD)], [CELL], "cpu")
    assert found == coverage.Coverage(1, [], [], [])


def test_a_number_without_a_reason_is_a_gap() -> None:
    silent = msgspec.structs.replace(TOLD, guards=None)
    found = coverage.coverage([measurement(CELL, silent)], [CELL], "cpu")
    assert found.unexplained == [f"{CELL}: guards"]
    old = coverage.coverage([measurement(CELL, None)], [CELL], "cpu")
    assert old.unexplained == [f"{CELL}: what the compiler saw"]


def test_an_outcome_with_a_reason_is_none() -> None:
    failed = measurement(CELL, None, Outcome(Status.UNSUPPORTED, "no such mode"))
    found = coverage.coverage([failed], [CELL], "cpu")
    assert (found.ok, found.ended, found.unexplained) == (0, [failed], [])


def test_another_device_s_cells_are_not_these() -> None:
    assert coverage.coverage([measurement(CELL, TOLD)], [CELL], "cuda").missing


def test_the_command_counts_and_fails_at_gaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = records.path(tmp_path / "results" / machine.detect().machine, "a" * 40, "env")
    file.parent.mkdir(parents=True)
    for cell in matrix.core_cells():
        records.append(file, measurement(cell, TOLD))
    done = CliRunner().invoke(app.app, ["coverage"])
    assert done.exit_code == 0, done.output
    assert "unexplained gaps: 0" in done.output
    records.append(file, measurement(matrix.core_cells()[0], None))
    done = CliRunner().invoke(app.app, ["coverage", "v2.9"])
    assert done.exit_code == 1
    assert "unexplained gaps: 1" in done.output

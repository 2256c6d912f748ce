"""Gaps of a release are counted. A cell or number that is missing for a reason is no gap."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from torchcompile_suite import matrix
from torchcompile_suite.analysis import coverage
from torchcompile_suite.cell import METHOD, Cell, Compiled, Measurement, Outcome, Status
from torchcompile_suite.cli import app
from torchcompile_suite.host import machine
from torchcompile_suite.results import records

from . import examples

CELL = Cell("resnet18", 1, "default")
WHOLE = msgspec.convert(
    {**dict.fromkeys(coverage.NUMBERS[:-1], 1), "unknown": {"profile": "no queue"}}, Compiled
)


def measurement(
    cell: Cell, compiled: Compiled | None, outcome: Outcome | None = None
) -> Measurement:
    made = examples.measurement(**({"outcome": outcome} if outcome else {}))
    launches = [msgspec.structs.replace(made.launches[0], compiled=compiled), *made.launches[1:]]
    return msgspec.structs.replace(made, cell=cell, launches=launches)


def test_a_whole_record_has_no_gap() -> None:
    covered = coverage.coverage([measurement(CELL, WHOLE)], [CELL], "cpu")
    assert covered == coverage.Coverage(1, [], [], [])


def test_a_number_without_a_reason_is_a_gap() -> None:
    silent = msgspec.structs.replace(WHOLE, guards=None)
    covered = coverage.coverage([measurement(CELL, silent)], [CELL], "cpu")
    assert covered.unexplained == [f"{CELL}: guards"]
    old = coverage.coverage([measurement(CELL, None)], [CELL], "cpu")
    assert old.unexplained == [f"{CELL}: what the compiler saw"]


def test_an_outcome_with_a_reason_is_no_gap() -> None:
    failed = measurement(CELL, None, Outcome(Status.UNSUPPORTED, "no such mode"))
    covered = coverage.coverage([failed], [CELL], "cpu")
    assert (covered.ok, covered.ended, covered.unexplained) == (0, [failed], [])


def test_another_device_s_cells_are_not_these() -> None:
    assert coverage.coverage([measurement(CELL, WHOLE)], [CELL], "cuda").missing


def test_the_command_counts_and_fails_at_gaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = records.path(tmp_path / "results" / machine.detect().machine, "a" * 40, "env")
    file.parent.mkdir(parents=True)
    for cell in matrix.core_cells():
        records.append(file, measurement(cell, WHOLE))
    done = CliRunner().invoke(app.app, ["coverage"])
    assert done.exit_code == 0, done.output
    assert "unexplained gaps: 0" in done.output
    records.append(file, measurement(matrix.core_cells()[0], None))
    done = CliRunner().invoke(app.app, ["coverage", "v2.9"])
    assert done.exit_code == 1
    assert "unexplained gaps: 1" in done.output


def test_another_machine_s_whole_release_is_shown_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(machine.MACHINE_VARIABLE, "nobody")
    whole, partial = (records.path(tmp_path / "results" / name, "a" * 40, "env") for name in "ab")
    for cell in matrix.core_cells():
        records.append(whole, measurement(cell, WHOLE))
    new = measurement(matrix.core_cells()[0], WHOLE)
    launches = [msgspec.structs.replace(launch, method=METHOD) for launch in new.launches]
    records.append(partial, msgspec.structs.replace(new, launches=launches))
    done = CliRunner().invoke(app.app, ["coverage", "v2.9"])
    assert done.exit_code == 0, done.output
    assert "unexplained gaps: 0" in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("results of a: this machine (nobody) has none of v2.9.1; choose another")
    assert "--machine" in line
    # Times of an older method may favour eager, so that the report shows the other machine.
    done = CliRunner().invoke(app.app, ["report", "v2.9"])
    assert done.stderr.startswith("results of b: "), done.output

"""Whether compiling pays, in a test of a user's."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from torchcompile_suite.analysis.statistics import Interval
from torchcompile_suite.analysis.summary import Row
from torchcompile_suite.cell import Cell
from torchcompile_suite.contract import plugin
from torchcompile_suite.measurement import OK, TOO_BUSY, Outcome, Status

from ..conftest import ROOT, ReleaseEnvironment

CELL = Cell("model", 1, "default")


def row(low: float, high: float, outcome: Outcome = OK) -> Row:
    ratio = Interval((low + high) / 2, low, high)
    return Row("", "", CELL, outcome, ratio=ratio if outcome.ok else None)


@pytest.mark.parametrize(
    ("figures", "found", "says"),
    [
        (row(0.5, 0.7), True, "compiling pays: compiled over eager 0.600 [0.500, 0.700]"),
        (row(0.9, 1.0), True, "pays"),
        (row(1.1, 1.3), False, "does not pay"),
        (row(0.9, 1.1), None, "cannot tell"),
        (row(float("nan"), float("nan")), None, "cannot tell"),
        (row(0, 0, Outcome(Status.UNSETTLED, f"{TOO_BUSY}: others")), None, "cannot tell"),
        (row(0, 0, Outcome(Status.WRONG_RESULT, "differs")), False, "cannot be measured"),
    ],
)
def test_what_an_interval_tells(figures: Row, found: bool | None, says: str) -> None:
    assert plugin.verdict(figures, 1.0) is found
    assert says in plugin.told("Model", figures, 1.0, found)


def test_faster_than_eager_is_not_said_not_to_pay() -> None:
    said = plugin.told("Model", row(0.88, 0.92), 0.8, plugin.verdict(row(0.88, 0.92), 0.8))
    assert said.startswith("Model: compiled code takes more than 0.8 of eager's time: compiled")
    assert "takes at most 0.95" in plugin.told("Model", row(0.88, 0.92), 0.95, True)


# A machine is not noisy on demand, so the figures are given.
UNCLEAR = """
import pytest
from torchcompile_suite.contract import plugin
from torchcompile_suite.measurement import OK
from torchcompile_suite.analysis.summary import Interval, Row


@pytest.mark.parametrize("choice", ["", "pass", "maybe"])
def test_times(compile_contract, monkeypatch, choice):
    row = Row("", "", None, OK, ratio=Interval(1.0, 0.9, 1.1))
    monkeypatch.setattr(plugin, "measured", lambda *_: row)
    assert compile_contract.faster_than_eager(object(), (), cannot_tell=choice) is row


@pytest.mark.parametrize("most", [0.75, 0.85, 0.95])
def test_share(compile_contract, monkeypatch, most):
    row = Row("", "", None, OK, ratio=Interval(0.85, 0.8, 0.9))
    monkeypatch.setattr(plugin, "measured", lambda *_: row)
    assert compile_contract.no_slower_than(most, object(), ()) is row
"""


def test_what_cannot_be_told_is_as_the_user_chose(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert request.config.getini("compile_contract_cannot_tell") == "pass"
    (tmp_path / "pytest.ini").write_text("[pytest]\ncompile_contract_cannot_tell = fail\n")
    (tmp_path / "test_times.py").write_text(UNCLEAR)
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_times.py")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "4 failed, 2 passed, 1 warning" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("\nobject: cannot tell whether compiling pays") == 1
    assert "PytestWarning: object: cannot tell whether compiling pays" in done.stdout
    assert "compile_contract_cannot_tell is pass or fail, and not 'maybe'" in done.stdout
    assert "\nobject: compiled code takes more than 0.75 of eager's time" in done.stdout
    assert "\nobject: cannot tell whether compiled code takes at most 0.85 of" in done.stdout


MEASURED = """
import torch


class Pointwise(torch.nn.Module):
    def forward(self, x):
        for _ in range(8):
            x = torch.tanh(x * 1.01 + 0.1).relu() - 0.2
        return x


def test_faster(compile_contract):
    inputs = torch.randn(512, 512)
    row = compile_contract.faster_than_eager(Pointwise(), inputs, budget_s=60, device="cpu")
    assert row.ratio.high < 1
    assert row.latency_s.value < row.eager_s.value
"""


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_a_module_is_measured(newest: ReleaseEnvironment, tmp_path: Path) -> None:
    (tmp_path / "test_times.py").write_text(MEASURED)
    path = os.pathsep.join([str(ROOT / "src"), sysconfig.get_path("purelib")])
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_times.py")
    done = newest.run(*command, cwd=tmp_path, env=newest.variables(PYTHONPATH=path), timeout=800)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert "warning" not in done.stdout, done.stdout

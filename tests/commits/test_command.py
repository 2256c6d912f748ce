"""The command line of `torchcompile-suite bisect`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from evidence.wheels import Repository
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite import matrix
from torchcompile_suite.cell import Cell
from torchcompile_suite.cli import bisect as command
from torchcompile_suite.cli.app import app
from torchcompile_suite.cli.bisect import cell_named
from torchcompile_suite.commits.measuring import Measuring
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.host import machine


@given(st.sampled_from(matrix.core_cells()))
def test_the_printed_name_of_a_cell_is_read_back(cell: Cell) -> None:
    named = cell_named(str(cell))
    assert str(named) == str(cell)
    assert named.device == machine.device_kind()


def test_a_workload_alone_is_its_plain_cell() -> None:
    assert str(cell_named("resnet18")) == "resnet18, batch 1, default"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a", "b", "--cell", "resnet18"], "no clone of PyTorch"),
        (["a", "b", "--cell", "resnet81"], "similar: resnet18"),
        (["a", "b", "--cell", "resnet18", "--metric", "speed"], "there are: ratio"),
        (["a", "b", "--cell", "resnet18, batch 1, default, divided"], "times no pairs"),
    ],
)
def test_a_wrong_command_line_is_one_clear_line(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["bisect", *arguments])
    assert result.exit_code == 1
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_search_that_cannot_be_resumed_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept is of the same commits, cell, metric, releases and conditions."""
    repository = Repository(tmp_path / "pytorch")
    ends = [repository.commit("good"), repository.commit("bad")]
    monkeypatch.setattr(command, "CACHE", tmp_path / "kept")

    def search(commits: object, measuring: Measuring, watch: object) -> None:
        measuring._journal.refuse(ends[0], "kept")
        raise SuiteError("searched")

    monkeypatch.setattr(command, "bisect", search)

    def said(*more: str) -> str:
        arguments = [*ends, "--cell", "resnet18", "--repo", str(repository.folder), *more]
        result = CliRunner().invoke(app, ["bisect", *arguments])
        assert "searched" in result.stderr
        return result.stderr

    assert "nothing is kept" not in said()
    assert "nothing is kept" not in said("--resume")
    assert said("--resume", "--metric", "latency").count("begins anew") == 1

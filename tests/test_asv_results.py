"""What the suite reads of ASV's files, also from people that we do not know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchcompile_suite.asv import export, staging
from torchcompile_suite.results.parsing import Problem

from .conftest import ROOT
from .irregular import IRREGULAR

MACHINE = "some-machine"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    _describe(tmp_path, MACHINE, json.dumps({"machine": MACHINE, "version": 1}).encode())
    return tmp_path


def _describe(results: Path, name: str, content: bytes) -> None:
    (results / name).mkdir()
    (results / name / "machine.json").write_bytes(content)


def _machines(results: Path) -> tuple[list[str], list[Problem]]:
    problems: list[Problem] = []
    return [file.parent.name for file in staging.machines(results, problems)], problems


BROKEN = {
    "truncated": b"{",
    "a list": b"[]",
    "of another": b'{"machine": "another", "version": 1}',
    "without a name": b'{"version": 1}',
    "not text": b"\xff",
    "newer": b'{"machine": "other", "version": 3}',
    "without a version": b'{"machine": "other"}',
    "a number": b'{"machine": "other", "version": 1, "cpu": 2}',
    "deep": b"[" * 100_000,
    "empty": b"",
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_machine_is_named_in_one_line_and_the_rest_stays(results: Path, what: str) -> None:
    _describe(results, "other", BROKEN[what])
    names, problems = _machines(results)
    assert names == [MACHINE]
    assert [problem.where for problem in problems] == ["other/machine.json"]
    assert "\n" not in problems[0].reason


@pytest.mark.timeout(60)
@pytest.mark.parametrize("place", IRREGULAR)
def test_only_regular_files_are_read(results: Path, place: str) -> None:
    """Reading a FIFO waits for ever, and reading /dev/zero never ends."""
    with IRREGULAR[place](results / "another" / "machine.json"):
        assert _machines(results) == (
            [MACHINE],
            [Problem("another/machine.json", "cannot be read: not a regular file")],
        )
    with IRREGULAR[place](results / export.BENCHMARKS):
        assert export.recorded_benchmarks(results) == {}


@pytest.mark.parametrize("content", [b"", b"[]", b"[" * 100_000, b"\xff\xfe", b'{"version": 2}'])
def test_a_list_of_benchmarks_that_is_none_is_as_good_as_none(
    results: Path, content: bytes
) -> None:
    assert export.recorded_benchmarks(results) == {}
    (results / export.BENCHMARKS).write_bytes(content)
    assert export.recorded_benchmarks(results) == {}


def test_the_committed_results_are_sound() -> None:
    names, problems = _machines(ROOT / "results")
    assert problems == []
    assert len(names) > 1

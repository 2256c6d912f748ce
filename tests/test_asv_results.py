"""ASV's result files from people we do not know."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite.releases import ledger
from torchcompile_suite.results import asv_files

from .conftest import ROOT

COMMITS = ledger.compute()[0]
MACHINE = "some-machine"


def result(**changes: Any) -> dict[str, Any]:
    plain = {
        "commit_hash": next(iter(COMMITS)),
        "date": 1,
        "env_name": "virtualenv-py3.11",
        "params": {"machine": MACHINE},
        "python": "3.11",
        "requirements": {},
        "result_columns": ["result", "params", "version", "stats_ci_99_a", "samples"],
        "results": {"a.B.c": [[1.0, float("nan"), None], [["'x'", "'y'"]], "1", [None]]},
        "version": 2,
    }
    return {**plain, **changes}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / MACHINE
    folder.mkdir()
    (folder / "machine.json").write_text(json.dumps({"machine": MACHINE, "version": 1}))
    (folder / "good.json").write_text(json.dumps(result()))
    return tmp_path


def test_sound_files_are_all_there_is(results: Path) -> None:
    good, problems = asv_files.sound(results, COMMITS)
    assert {file.name for file in good} == {"machine.json", "good.json"}
    assert problems == []


BROKEN: dict[str, bytes] = {
    "truncated": json.dumps(result()).encode()[:-20],
    "not text": b"\xff\xfe\x00",
    "deep": b"[" * 100_000,
    "a list": b"[]",
    "newer": json.dumps(result(version=3)).encode(),
    "foreign commit": json.dumps(result(commit_hash="0" * 40)).encode(),
    "other machine": json.dumps(result(params={"machine": "another"})).encode(),
    "no parameters": json.dumps(result(params=None)).encode(),
    "text for numbers": json.dumps(result(results={"a": ["<script>", None]})).encode(),
    "an object among numbers": json.dumps(result(results={"a": [[{}], None]})).encode(),
    "infinite": json.dumps(result(results={"a": [[float("inf")], None]})).encode(),
    "overflowing": json.dumps(result(results={"a": [-1e300, None]})).encode(),
    "unknown column": json.dumps(result(result_columns=["result", "extra"])).encode(),
    "empty": b"",
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_file_is_named_in_one_line_and_the_rest_stays(results: Path, what: str) -> None:
    (results / MACHINE / "broken.json").write_bytes(BROKEN[what])
    good, problems = asv_files.sound(results, COMMITS)
    assert {file.name for file in good} == {"machine.json", "good.json"}
    assert [problem.where for problem in problems] == [f"{MACHINE}/broken.json"]
    assert "\n" not in problems[0].reason


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b'{"machine": "another", "version": 1}', b'{"version": 1}', b"\xff"]
)
def test_a_broken_machine_takes_its_results_along(results: Path, content: bytes) -> None:
    shutil.copytree(results / MACHINE, results / "other")
    (results / "other" / "machine.json").write_bytes(content)
    good, problems = asv_files.sound(results, COMMITS)
    assert {file.parent.name for file in good} == {MACHINE}
    assert [problem.where for problem in problems] == ["other/machine.json"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(field=st.sampled_from(sorted(result())), value=json_values)
def test_nothing_in_a_file_raises(tmp_path_factory: Any, field: str, value: Any) -> None:
    folder = tmp_path_factory.mktemp("results") / MACHINE
    folder.mkdir()
    (folder / "machine.json").write_text(json.dumps({"machine": MACHINE, "version": 1}))
    (folder / "odd.json").write_text(json.dumps(result(**{field: value})))
    good, problems = asv_files.sound(folder.parent, COMMITS)
    assert len(good) + len(problems) == 2


def test_the_committed_results_are_sound() -> None:
    good, problems = asv_files.sound(ROOT / "results", COMMITS)
    assert problems == []
    assert len(good) > 1

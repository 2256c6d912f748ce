"""ASV's result files from people that we do not know."""

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
from .irregular import IRREGULAR

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
    checked = asv_files.check(results, COMMITS)
    assert {file.name for file in checked.files} == {"machine.json", "good.json"}
    assert checked.problems == []


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
    checked = asv_files.check(results, COMMITS)
    assert {file.name for file in checked.files} == {"machine.json", "good.json"}
    assert [problem.where for problem in checked.problems] == [f"{MACHINE}/broken.json"]
    assert "\n" not in checked.problems[0].reason


@pytest.mark.timeout(60)
@pytest.mark.parametrize("place", IRREGULAR)
@pytest.mark.parametrize("name", ["odd.json", "machine.json"])
def test_only_regular_files_are_read(results: Path, name: str, place: str) -> None:
    """Reading a FIFO waits for ever, and reading /dev/zero never ends."""
    file = results / "another" / name if name == "machine.json" else results / MACHINE / name
    with IRREGULAR[place](file):
        checked = asv_files.check(results, COMMITS)
    assert {file.name for file in checked.files} == {"machine.json", "good.json"}
    (problem,) = checked.problems
    assert problem.where == f"{file.parent.name}/{name}"
    assert problem.reason == "cannot be read: not a regular file"


def test_numbers_are_counted_by_the_version_of_their_benchmark(results: Path) -> None:
    checked = asv_files.check(results, COMMITS)
    for version, newest in (("1", True), ("2", False)):
        values = asv_files.values(checked, {"a.B.c": version})
        assert [value[2:] for value in values if value.measured] == [
            (("a.B.c", ("'x'",)), True, newest)
        ]


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b'{"machine": "another", "version": 1}', b'{"version": 1}', b"\xff"]
)
def test_a_broken_machine_takes_its_results_along(results: Path, content: bytes) -> None:
    shutil.copytree(results / MACHINE, results / "other")
    (results / "other" / "machine.json").write_bytes(content)
    checked = asv_files.check(results, COMMITS)
    assert {file.parent.name for file in checked.files} == {MACHINE}
    assert [problem.where for problem in checked.problems] == ["other/machine.json"]


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
    checked = asv_files.check(folder.parent, COMMITS)
    assert len(checked.files) + len(checked.problems) == 2
    list(asv_files.values(checked, {}))


def test_the_committed_results_are_sound() -> None:
    checked = asv_files.check(ROOT / "results", COMMITS)
    assert checked.problems == []
    assert len(checked.machines) > 1

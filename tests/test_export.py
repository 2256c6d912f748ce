"""ASV's results are made from the measurements: those of files, and those that a run prints. Old
results are carried over.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from asv.console import log
from asv.results import Results
from asv.runner import BenchmarkResult

from torchcompile_suite import matrix
from torchcompile_suite.analysis import statistics
from torchcompile_suite.asv import export, reading, repository, runner, staging
from torchcompile_suite.cell import Cell
from torchcompile_suite.measurement import METHOD, Measurement, Outcome, Status
from torchcompile_suite.releases import ledger
from torchcompile_suite.results import records, sealing
from torchcompile_suite.results.parsing import Problem

from . import examples
from .conftest import ROOT

LEDGER = repository.in_ledger()
COMMIT, RELEASE = next(
    (sha, one) for sha, one in ledger.compute()[0].items() if one.version == "2.9.1"
)
ENV = "virtualenv-py3.11"
NAME = f"{COMMIT[:8]}-{ENV}.json"
LATENCY = "inference.Inference.track_latency"


pytestmark = pytest.mark.usefixtures("empty_cache")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    (folder / "box").mkdir(parents=True)
    facts = {"machine": "box", "cpu": "x", "version": 1}
    (folder / "box" / "machine.json").write_text(json.dumps(facts))
    shutil.copy2(ROOT / "results" / "benchmarks.json", folder)
    return folder


def journal(results: Path, env_name: str = ENV, commit: str = COMMIT) -> Path:
    return records.path(results / "box", commit, env_name)


def made(method: int = METHOD, **changes: Any) -> Measurement:
    measurement = examples.measurement(**changes)
    launches = [
        msgspec.structs.replace(one, method=method if one.pairs_s else one.method)
        for one in measurement.launches
    ]
    return msgspec.structs.replace(measurement, launches=launches)


def derive(results: Path) -> tuple[dict[str, dict[str, Any]], list[Problem]]:
    problems: list[Problem] = []
    derived = export.derive(
        results, [results / "box" / "machine.json"], LEDGER, ROOT / "benchmarks", problems
    )
    return {str(file.path): json.loads(file.content) for file in derived}, problems


def values(content: dict[str, Any], name: str) -> dict[tuple[str, ...], Any]:
    """The values of a benchmark that are not missing, by point."""
    if name not in content["results"]:
        return {}
    row = dict(zip(content["result_columns"], content["results"][name], strict=False))
    points = list(itertools.product(*row["params"]))
    numbers = row["result"] or [None] * len(points)
    return {
        point: number
        for point, number in zip(points, numbers, strict=True)
        if number is None or not math.isnan(number)
    }


def test_a_value_is_what_the_benchmark_returns(results: Path) -> None:
    measurement = made()
    records.append(journal(results), measurement)
    derived, problems = derive(results)
    assert problems == []
    assert list(derived) == [f"box/{NAME}"]
    content = derived[f"box/{NAME}"]
    expected = statistics.launch_latency(measurement.launches[0].pairs_s)
    assert values(content, LATENCY) == {("'resnet18'", "1", "'default'"): pytest.approx(expected)}
    row = dict(zip(content["result_columns"], content["results"][LATENCY], strict=False))
    assert row["version"] == str(METHOD)
    assert row["params"] == [["'resnet18'"], ["1"], ["'default'"]]
    assert row["samples"] == [
        [statistics.launch_latency(one.pairs_s) for one in measurement.launches]
    ]
    assert content["params"] == {"machine": "box", "cpu": "x", "python": "3.11"}
    assert content["commit_hash"] == COMMIT
    assert content["date"] == RELEASE.date.timestamp() * 1000
    # The other metrics of the cell are look-ups, also those of other questions.
    assert values(content, "kernels.Kernels.track_kernels") == {}
    assert values(content, "warm_up.WarmUp.track_calls_until_steady")


def test_asv_reads_it(results: Path, tmp_path: Path) -> None:
    for mode in ("eager", "default"):
        records.append(journal(results), made(mode=mode))
    (file,) = export.derive(
        results, [results / "box" / "machine.json"], LEDGER, ROOT / "benchmarks", []
    )
    (tmp_path / "box").mkdir()
    (tmp_path / file.path).write_bytes(file.content)
    loaded = Results.load(str(tmp_path / file.path), machine_name="box")
    assert loaded.env_name == ENV
    (number,) = loaded.get_result_value(LATENCY, [["'resnet18'"], ["1"], ["'eager'"]])
    assert number is not None
    assert (loaded.params["machine"], loaded.commit_hash) == ("box", COMMIT)


def test_a_failure_is_a_failure_and_an_unsupported_cell_is_missing(results: Path) -> None:
    records.append(journal(results), made(outcome=Outcome(Status.CRASH, "killed")))
    unsupported = made(mode="eager", outcome=Outcome(Status.UNSUPPORTED, "no"))
    records.append(journal(results), unsupported)
    content = derive(results)[0][f"box/{NAME}"]
    assert values(content, LATENCY) == {("'resnet18'", "1", "'default'"): None}


@pytest.mark.parametrize(("version", "shown"), [("2.9.1", True), ("2.15.0", False)])
def test_counts_that_would_be_others_now_are_missing(
    results: Path, version: str, shown: bool
) -> None:
    """ASV shows the counts that the report shows."""
    sha = next(sha for sha, one in ledger.compute()[0].items() if one.version == version)
    measurement = examples.generated(release=version)
    (launch,) = measurement.launches
    assert launch.generated is not None
    older = msgspec.structs.replace(launch.generated, generation=1)
    launches = [msgspec.structs.replace(launch, generated=older)]
    records.append(
        journal(results, commit=sha), msgspec.structs.replace(measurement, launches=launches)
    )
    derived, problems = derive(results)
    assert (bool(derived), problems) == (shown, [])


def test_values_of_an_older_method_are_gone(results: Path) -> None:
    """As in ASV, which drops the values of another version of a benchmark."""
    records.append(journal(results), made(method=1))
    records.append(journal(results), made(method=1, mode="eager"))
    old = derive(results)[0][f"box/{NAME}"]
    row = dict(zip(old["result_columns"], old["results"][LATENCY], strict=False))
    assert row["version"] == "1"
    assert len(values(old, LATENCY)) == 2
    records.append(journal(results), made(mode="eager"))
    new = derive(results)[0][f"box/{NAME}"]
    row = dict(zip(new["result_columns"], new["results"][LATENCY], strict=False))
    assert row["version"] == str(METHOD)
    assert list(values(new, LATENCY)) == [("'resnet18'", "1", "'eager'")]


def test_somebody_elses_workload_is_on_the_axes(results: Path) -> None:
    records.append(journal(results), made(workload="theirs"))
    content = derive(results)[0][f"box/{NAME}"]
    assert list(values(content, LATENCY)) == [("'theirs'", "1", "'default'")]
    recorded = export.read_object(results / "benchmarks.json")
    before = recorded[LATENCY]["params"][0]
    sound = staging.axes_of(json.dumps(content).encode())
    before = {name: one["params"] for name, one in recorded.items() if name != "version"}
    assert "'theirs'" not in before[LATENCY][0]
    for _ in range(2):
        staging.fit_axes(recorded, [sound])
        for name, axes in before.items():
            kept = recorded[name]["params"]
            if name in sound:
                assert kept[0] == ["'theirs'"]
                assert list(map(set, kept)) == list(map(set, sound[name]))
            else:
                assert kept == axes


def test_axes_have_what_was_measured_in_their_own_order() -> None:
    benchmarks = {"a": {"params": [["x", "y", "z"], ["2", "1"]]}, "b": {"params": [["x"]]}}
    results = [{"a": [["other", "z"], ["1"]]}, {"a": [["another", "x"], ["2"]]}]
    staging.fit_axes(benchmarks, results)
    assert benchmarks["a"]["params"] == [["x", "z", "another", "other"], ["2", "1"]]
    assert benchmarks["b"]["params"] == [["x"]]


def test_a_strangers_numbers_do_not_stop_asv(results: Path) -> None:
    """A ratio of 1e19, a call of no time, a start that is no date."""
    measurement = made()
    launches = [
        msgspec.structs.replace(one, pairs_s=[(1e-12, 1e7)], warm_up_s=[0.0, 1e7])
        for one in measurement.launches
    ]
    hostile = msgspec.structs.replace(measurement, launches=launches, started_at="0" * 3600)
    records.append(journal(results), hostile)
    content = derive(results)[0][f"box/{NAME}"]
    (found,) = values(content, "inference.Inference.track_time_ratio").values()
    assert found == pytest.approx(1e19)


def test_a_trial_is_none_of_asvs(results: Path) -> None:
    records.append(journal(results, records.TRIAL), made())
    assert derive(results) == ({}, [])


def test_another_commit_is_named(results: Path) -> None:
    records.append(journal(results, commit="0" * 40), made())
    derived, problems = derive(results)
    assert derived == {}
    assert [str(problem) for problem in problems] == [
        "box/00000000: its measurements are of no commit of the ledger"
    ]


def test_what_was_made_is_made_once(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records.append(journal(results), made())
    sealing.seal(results / "box")
    first = derive(results)
    with monkeypatch.context() as patched:
        patched.setattr(records, "read_segment", lambda *_: pytest.fail("read again"))
        assert derive(results) == first
    records.append(journal(results), made(mode="eager"))
    second = derive(results)[0][f"box/{NAME}"]
    assert len(values(second, LATENCY)) == 2
    (results / "box" / "machine.json").write_text('{"machine": "box", "cpu": "y", "version": 1}')
    assert derive(results)[0][f"box/{NAME}"]["params"]["cpu"] == "y"


def test_a_bad_line_is_named_each_time(results: Path) -> None:
    records.append(journal(results), made())
    with journal(results).open("ab") as stream:
        stream.write(b"{\n")
    for _ in range(2):
        derived, problems = derive(results)
        assert len(derived) == 1
        assert [problem.where for problem in problems] == [f"box/{journal(results).name}:2"]


def test_a_cache_that_cannot_be_written_is_as_good_as_none(
    results: Path, empty_cache: Path
) -> None:
    empty_cache.write_text("a file where the folder should be")
    records.append(journal(results), made())
    assert derive(results)[0]
    assert derive(results)[0]


BENCHMARK = json.loads((ROOT / "results" / "benchmarks.json").read_text())[LATENCY]
CELLS = (Cell("resnet18", 1, "default"), Cell("resnet18", 8, "default"))


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What ASV's console gets."""
    lines: list[str] = []
    for name in ("info", "add_padded"):
        monkeypatch.setattr(log, name, lambda text, **_: lines.append(text))
    return lines


def _run(*measured: Measurement) -> Results:
    """ASV's results of a run that has made these measurements."""
    recorded = export.Recorded(measured)
    points = matrix.INFERENCE.points
    selected = [at for at, point in enumerate(points) if matrix.INFERENCE.cell(*point) in CELLS]
    results = Results.unnamed()
    export.fill(results, [LATENCY], ROOT / "benchmarks", recorded)
    runner._show(BENCHMARK, selected, ROOT / "benchmarks", recorded, results)
    return results


def test_a_run_prints_its_own_cells_and_why_one_failed(printed: list[str]) -> None:
    crash = Outcome(Status.CRASH, "killed")
    results = _run(
        examples.measurement(),
        examples.measurement(batch_size=8, outcome=crash),
        examples.measurement("vit16x6x384"),
    )
    name, info, details = printed
    assert (name, info) == (LATENCY, "1/2 failed")
    good, bad = details.splitlines()
    assert re.fullmatch(r"resnet18, 1, default: 30\.0±\S+ms", good)
    assert bad == "resnet18, 8, default: failed: crash: killed"
    assert results.errcode[LATENCY] == 1, "asv run ends with status 2"


def test_what_a_release_does_not_support_has_not_failed(printed: list[str]) -> None:
    lacks = Outcome(Status.UNSUPPORTED, "no such mode")
    results = _run(examples.measurement(), examples.measurement(batch_size=8, outcome=lacks))
    assert printed[1] == "ok"
    assert printed[2].splitlines()[1] == "resnet18, 8, default: n/a"
    assert results.errcode[LATENCY] == 0


@pytest.mark.parametrize(("now", "nothing"), [(runner.Run(compares=True), "nan"), (None, "None")])
def test_asv_compares_what_the_run_has_measured(
    now: runner.Run | None, nothing: str, printed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`asv continuous` takes what one side lacks for a failure. `asv find` skips failures only."""
    monkeypatch.setattr(runner, "current", lambda: now)
    lacks = Outcome(Status.UNSUPPORTED, "no such mode")
    results = _run(
        examples.measurement(),
        examples.measurement(batch_size=8, outcome=lacks),
        examples.measurement("vit16x6x384"),
    )
    numbers = results.get_result_value(LATENCY, BENCHMARK["params"])
    measured = [at for at, one in enumerate(numbers) if str(one) != nothing]
    points = list(itertools.product(*BENCHMARK["params"]))
    assert [points[at] for at in measured] == [("'resnet18'", "1", "'default'")]
    (at,) = measured
    assert results.get_result_stats(LATENCY, BENCHMARK["params"])[at]["repeat"] == 3


def test_show_prints_measured_cells_only(capsys: pytest.CaptureFixture[str]) -> None:
    params = [["'a'", "'b'"], ["1"], ["'eager'", "'default'"]]
    benchmark = {"name": "m.C.track_x", "params": params, "unit": "seconds", "version": "1"}
    results = Results.unnamed()
    none = [None] * 4
    made = BenchmarkResult([1.0, math.nan, 2.0, None], none, none, 0, "", None)
    results.add_result(benchmark, made)
    reading._MeasuredCells()._print_benchmark("box", results, benchmark)
    name, info, *lines = capsys.readouterr().out.splitlines()
    assert name.startswith("m.C.track_x [box/")
    assert info == "  1/3 failed"
    assert [line.strip() for line in lines if line] == [
        "a, 1, eager: 1.00s",
        "b, 1, eager: 2.00s",
        "b, 1, default: failed",
    ]


# Carrying over.


def old_results(results: Path) -> dict[str, bytes]:
    """Results as older versions committed them: journals. Returns them."""
    for second, mode in enumerate(["eager", "default", "max-autotune", "eager"]):
        started = f"2026-11-21T03:00:{second:02}+00:00"
        records.append(
            journal(results), msgspec.structs.replace(made(mode=mode), started_at=started)
        )
    return {file.name: file.read_bytes() for file in records.journals(results / "box")}


def all_forms(results: Path) -> list[bytes]:
    from torchcompile_suite.results.segments import canonical, read

    files, _ = records.segment_files(results / "box")
    lines = [line for file in files for line in read(file).lines]
    for file in records.journals(results / "box"):
        lines += map(canonical, file.read_bytes().splitlines())
    return sorted(lines)


def test_nothing_is_lost(results: Path) -> None:
    old_results(results)
    before, read, asv = all_forms(results), records.read(results), derive(results)
    count, carried = sealing.carry_over(results)
    assert (count, len(carried.segments), carried.problems) == (4, 1, [])
    assert all_forms(results) == before
    assert len(before) == 4
    assert records.read(results) == read
    assert derive(results) == asv
    assert sealing.carry_over(results) == (4, sealing.Sealed([], []))


def test_the_command_says_what_it_did(results: Path) -> None:
    old_results(results)
    command = [sys.executable, "-m", "torchcompile_suite", "results", "carry-over"]
    done = subprocess.run(command, cwd=results.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("measurements in results: 4; new segments: 1\n")


def test_the_committed_results_are_carried_over() -> None:
    """Nobody commits a journal or a file of ASV's again."""
    listed = subprocess.run(
        ["git", "ls-files", "results"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert [name for name in listed if not name.endswith((".jsonl.xz", "/machine.json"))] == [
        "results/benchmarks.json"
    ]

"""The ASV room without torch: its table of patches, its choice of a machine, what it prints."""

from __future__ import annotations

import inspect
import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asv import util
from asv.commands.run import Run
from asv.console import log
from asv.environment import get_environment_class_by_name, get_environments
from asv.plugins.virtualenv import Virtualenv
from asv.results import Results
from asv.runner import BenchmarkResult
from evidence.wheels import Repository

from torchcompile_suite.asv import environment, export, patches, reading, repository, runner
from torchcompile_suite.asv.command import ROWS_VARIABLE
from torchcompile_suite.commits import overlay
from torchcompile_suite.engine.launches import Refused
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.host import machine
from torchcompile_suite.releases import catalogue, ledger
from torchcompile_suite.results import segments

from .conftest import ROOT
from .irregular import IRREGULAR

# The machine that has most of v2.4 and v2.9, and another one.
CHOSEN, OTHER = "intel-xeon-processor-f6m167-2c-24g-cpu", "amd-epyc-f26m2-2c-24g-cpu"
LATENCY = "inference.Inference.track_latency"


def test_another_asv_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert metadata.version("asv") == patches.TESTED
    assert f'"asv=={patches.TESTED}"' in (ROOT / "pyproject.toml").read_text()
    monkeypatch.setattr(patches, "TESTED", "0.6.5")
    with pytest.raises(util.UserError, match=r"is not the version that .* was tested") as error:
        patches.apply()
    assert "\n" not in str(error.value)
    assert "pip install asv==0.6.5" in str(error.value)


def test_every_patch_has_a_reason_and_is_listed_once() -> None:
    names = [str(patch) for patch in patches.PATCHES]
    assert len(names) == len(set(names))
    assert len(names) <= 9
    assert all(patch.reason and patch.issue for patch in patches.PATCHES)


def test_environments_keep_the_names_of_published_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """ASV finds our classes by their own names; result files have the name of a virtualenv."""
    segment = next(ROOT.glob(f"results/*/*/*{segments.SUFFIX}"))
    conf = _conf("asv.conf.json")
    (made,) = get_environments(conf, None)
    assert type(made) is environment.ReleaseEnvironment
    assert made.name == segments.header(segment).env_name
    plain = Virtualenv(conf, "3.11", {}, {})
    assert (made.name, made.dir_name, made.tool_name) == (
        plain.name,
        plain.dir_name,
        plain.tool_name,
    )
    # A release's environment has its own Python: none of that version has to be in PATH.
    monkeypatch.setattr(Virtualenv, "_find_python", lambda _: None)
    (made,) = get_environments(conf, ["torch-release:3.13"])
    assert made.name == plain.name.replace("3.11", "3.13")
    made._path = sys.prefix
    assert made.run(["-c", "print('runs')"]) == "runs\n"
    assert not list(get_environments(conf, ["torch-release:python"]))
    conf = _conf("asv.commits.conf.json")
    wanted = get_environment_class_by_name(conf.environment_type)
    assert wanted is environment.OverlayEnvironment
    assert conf.dvcs == repository.PyTorchClone.dvcs
    assert not repository.of_releases(conf)


def test_a_commit_is_installed_once_and_a_refused_one_counts_as_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that `asv find` goes on to another commit."""
    conf = _conf("asv.commits.conf.json")
    conf.env_dir = str(tmp_path)
    (made,) = get_environments(conf, None)
    made._set_build_dirs = lambda *_: None
    Path(made._path).mkdir()
    repo = SimpleNamespace(clone="a clone", get_decorated_hash=lambda sha, digits: sha[:digits])
    asked = []

    def install(clone: str, commit: str, folder: Path, *, allow_native_drift: bool) -> None:
        asked.append((clone, commit, folder, allow_native_drift))
        if commit == "b" * 40:
            raise Refused("it needs \x1b[2Janother binary")  # a name of a file

    monkeypatch.setattr(overlay, "install", install)
    said: list[str] = []
    monkeypatch.setattr(log, "warning", said.append)
    for sha in ("a" * 40, "a" * 40, "b" * 40, "b" * 40):
        made.install_project(conf, repo, sha)
        assert made.installed_commit_hash == sha
    assert said == ["not measured: it needs �[2Janother binary"]
    folder = Path(made._path)
    assert asked == [("a clone", sha, folder, False) for sha in ("a" * 40, "b" * 40)]
    monkeypatch.setenv(environment.DRIFT_VARIABLE, "1")
    made.install_project(conf, repo, "c" * 40)
    assert asked[-1] == ("a clone", "c" * 40, folder, True)
    # A refused commit may descend from a build that was added.
    assert made.installed_commit_hash == "c" * 40
    monkeypatch.setattr(catalogue, "everything", catalogue.read)
    assert made.installed_commit_hash == "c" * 40
    monkeypatch.setattr(catalogue, "everything", lambda: catalogue.read()[:-1])
    assert made.installed_commit_hash is None


@pytest.mark.parametrize("build", [[], ["make"]])
def test_a_second_run_changes_no_commit_under_the_first(
    build: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where ASV would not install, because the commit of the first run is its own."""
    conf = _conf("asv.commits.conf.json")
    conf.env_dir, conf.build_command = str(tmp_path), build
    repo = SimpleNamespace(clone="a clone", get_decorated_hash=lambda sha, digits: sha[:digits])
    asked = []
    monkeypatch.setattr(overlay, "install", lambda *_, **__: asked.append("overlaid"))
    monkeypatch.setattr(Virtualenv, "install_project", lambda *_: asked.append("built"))
    (first,) = get_environments(conf, None)
    Path(first._path).mkdir()
    first._set_installed_commit_hash("a" * 40)  # by an earlier run
    assert first.installed_commit_hash is None
    first.install_project(conf, repo, "a" * 40)
    assert first.installed_commit_hash == "a" * 40
    (second,) = get_environments(conf, None)
    for _ in range(2):
        assert second.installed_commit_hash is None
        with pytest.raises(util.UserError, match="another run measures commits here"):
            second.install_project(conf, repo, "b" * 40)
    assert asked == ["built"] * bool(build)


def test_commits_of_a_clone_are_found_with_asvs_date(tmp_path: Path) -> None:
    made = Repository(tmp_path / "pytorch")
    made.write("torch/__init__.py", b"one = 1\n")
    sha = made.commit("first")
    conf = _conf("asv.commits.conf.json")
    conf.repo, conf.branches = str(made.folder), ["HEAD"]
    commits = repository.known_commits(conf)
    assert commits.where == "clone"
    assert commits.find("0" * 8) is None
    found, date_ms = commits.find(sha[:8]) or ("", 0)
    assert found == sha
    assert date_ms == int(made.git("show", "--no-patch", "--format=%at", sha)) * 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"set_commit_hash": "v2.4"}, "--set-commit-hash would record"),
        ({"attribute": {"repeat": 3}}, "--attribute and --cpu-affinity change no"),
    ],
)
def test_what_would_be_wrong_or_without_effect_is_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SuiteError, match=message):
        runner.run(print)(Run, _conf("asv.conf.json"), **options)


def test_tags_are_commits_and_what_does_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(log, "warning", said.append)
    asked: dict[str, Any] = {}
    conf = _conf("asv.conf.json")
    options = {"range_spec": "TAGS", "bench": ["."], "profile": True, "append_samples": True}
    runner.run(lambda _, **given: asked.update(given))(Run, conf, **options)
    assert said == [
        f"{one} does nothing in the suite's benchmarks" for one in ("--append-samples", "--profile")
    ]
    commits = [sha for sha, one in ledger.compute()[0].items() if one in catalogue.read()]
    assert sorted(asked["range_spec"]) == sorted(commits)


@pytest.mark.parametrize(
    ("now", "end"),
    [
        (None, "the same command"),
        (runner.Run(compares=True), "the same command"),
        (runner.Run(), "the same command with --skip-existing"),
    ],
)
def test_ctrl_c_names_an_option_that_there_is(
    now: runner.Run | None, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_measure", lambda *_: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr(runner, "current", lambda: now)
    with pytest.raises(SuiteError, match=f"to continue: {end}$"):
        runner.run_benchmarks(print)([LATENCY], None)


@pytest.mark.parametrize("kind", ["virtualenv:3.11", "existing"])
def test_an_environment_of_asvs_own_has_no_release(kind: str) -> None:
    """Its crashes would be filed beside the numbers of the releases."""
    (made,) = get_environments(_conf("asv.conf.json"), [kind])
    with pytest.raises(SuiteError, match=f"-E {kind[:8]}.* has no release to record; measure"):
        runner._measure({}, [LATENCY], made, Results.unnamed())


def _conf(name: str) -> Any:
    from asv.config import Config

    return Config.load(str(ROOT / name))


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ASV reads of a clone that nobody measured in, with the results of two machines."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "results").mkdir()
    of_machines = [f"results/{name}" for name in ("benchmarks.json", CHOSEN, OTHER)]
    for name in ("asv.conf.json", "benchmarks", *of_machines):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, folder / name)
    return folder


def asv(
    clone: Path, *arguments: str, status: int = 0, variables: Mapping[str, str] | None = None
) -> tuple[str, str]:
    """Standard output and standard error of an ASV command."""
    done = subprocess.run(
        [sys.executable, "-m", "asv", *arguments],
        cwd=clone,
        env={**os.environ, machine.MACHINE_VARIABLE: "nobody", **(variables or {})},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout, done.stderr


def test_compare_needs_no_option_on_any_machine(clone: Path) -> None:
    out, line = asv(clone, "compare", "v2.4", "v2.9")
    rows = [row for row in out.splitlines() if ".track_" in row]
    assert len(rows) > 10
    assert not [row for row in rows if row.count("n/a") == 3]
    assert line.count("\n") == 1
    assert line.startswith(f"results of {CHOSEN}: this machine (nobody) has none of v2.4 and v2.9")
    assert "--machine" in line


def test_compare_shows_the_named_machine_and_no_line(clone: Path) -> None:
    out, line = asv(clone, "compare", "v2.4", "v2.9", "--machine", OTHER)
    assert len(out.splitlines()) > 40
    assert line == ""
    rows = [row for row in out.splitlines() if ".track_" in row]
    assert all(re.search(r"\| (inference|training)\.", row) for row in rows)
    assert f"{ROWS_VARIABLE}=. asv compare v2.4 v2.9" in out
    assert "torchcompile-suite report v2.4 v2.9" in out


def test_compare_can_be_limited_to_cells(clone: Path) -> None:
    wanted = {ROWS_VARIABLE: r"Inference\.track_latency\('resnet18'"}
    out, _ = asv(clone, "compare", "v2.4", "v2.9", variables=wanted)
    rows = [row for row in out.splitlines() if ".track_" in row]
    assert rows
    assert all("track_latency('resnet18'" in row for row in rows)


@pytest.mark.parametrize("measured", [2, 1])
def test_compare_of_other_cells_says_so(
    measured: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def results(_: str, machine_name: str, commit: str) -> list[Results]:
        """Of the same benchmark, and of different places on its axis."""
        made = Results({"machine": machine_name}, {}, commit, 0, "3.11", "env", {})
        if commit == "a" * 40 or measured == 2:
            benchmark = {"name": LATENCY, "params": [[repr(commit[0])]], "version": "1"}
            made.add_result(benchmark, BenchmarkResult([1.0], [None], [None], 0, "", None))
        return [made]

    monkeypatch.setattr(reading, "iter_results_for_machine_and_hash", results)
    conf = _conf("asv.conf.json")
    conf.results_dir = str(ROOT / "results")

    def compare() -> Any:
        commits = ("a" * 40, "b" * 40)
        return reading._MeasuredRows.print_table(conf, *commits, 1.1, False, machine="box")

    if measured == 2:
        assert compare() == (False, False)
        assert "nothing to compare" in capsys.readouterr().out
    else:
        with pytest.raises(util.UserError, match="Did not find results for commit b"):
            compare()


@pytest.mark.parametrize(
    "command", [("compare", "v2.4", "v2.9"), ("run", "v2.9^!", "--bench", "(")]
)
def test_an_expression_that_is_none_is_one_line(clone: Path, command: tuple[str, ...]) -> None:
    out, errors = asv(clone, *command, status=1, variables={ROWS_VARIABLE: "("})
    assert "'(' is no regular expression: missing )" in out.splitlines()[-1]
    assert "Traceback" not in out + errors


def test_show_needs_no_option_either(clone: Path) -> None:
    out, line = asv(clone, "show", "v2.9")
    assert "resnet18, 1, default: " in out
    assert OTHER not in out
    assert ": n/a" not in out
    assert line.startswith(f"results of {CHOSEN}: ")


@pytest.mark.parametrize("command", [("compare", "v2.4", "v2.9"), ("show", "v2.9")])
def test_a_wrong_machine_gets_the_known_ones_in_one_line(
    clone: Path, command: tuple[str, ...]
) -> None:
    out, error = asv(clone, *command, "--machine", "x", status=1)
    (line,) = filter(None, (out + error).splitlines())
    assert f"no results of machine 'x'; there are results of: {OTHER}, {CHOSEN}" in line


def test_no_results_anywhere_is_one_line(clone: Path, tmp_path: Path) -> None:
    for name in ("asv.conf.json", "benchmarks"):
        (tmp_path / name).symlink_to(clone / name)
    out, error = asv(tmp_path, "compare", "v2.4", "v2.9", status=1)
    (line,) = filter(None, (out + error).splitlines())
    assert "nothing was measured yet; start with: nox -s bench" in line


@pytest.mark.parametrize("place", IRREGULAR)
def test_what_is_no_file_is_left_out_in_one_line(clone: Path, tmp_path: Path, place: str) -> None:
    shutil.copytree(clone, tmp_path / "clone")
    folder = tmp_path / "clone" / "results" / CHOSEN
    # ASV's own files are not read at all.
    odd, own = f"2.9.1/odd{segments.SUFFIX}", folder / "asv.json"
    with IRREGULAR[place](folder / odd), IRREGULAR[place](own):
        out, error = asv(tmp_path / "clone", "compare", "v2.4", "v2.9")
    assert ".track_latency" in out
    assert f"left out: {CHOSEN}/{odd}: cannot be read: not a regular file\n" in error
    assert own.name not in error


def test_replacements_take_what_the_originals_take() -> None:
    """ASV calls by keyword: each parameter of a replacement exists in the original."""
    for patch in patches.PATCHES:
        replaced = patch.wrap(lambda *_: None)
        kinds = inspect.Parameter
        own = {
            parameter.name.lstrip("_")
            for parameter in inspect.signature(replaced).parameters.values()
            if parameter.kind not in (kinds.VAR_KEYWORD, kinds.VAR_POSITIONAL)
        }
        original = inspect.getattr_static(patch.owner, patch.name)
        function = inspect.unwrap(getattr(original, "__func__", original))
        assert own <= set(inspect.signature(function).parameters), patch


def test_the_staged_folder_keeps_what_asv_prints(clone: Path) -> None:
    """Every value that the measurements give for both releases is a row of `asv compare`, if one of
    the two is a number.
    """
    out, _ = asv(clone, "compare", "v2.4", "v2.9", variables={ROWS_VARIABLE: "."})
    shown = {row.split("|")[-2].strip() for row in out.splitlines() if ".track_" in row}
    held: list[dict[str, Any]] = []
    results = clone / "results"
    for file in export.derive(
        results,
        [results / CHOSEN / "machine.json"],
        repository.in_ledger(),
        clone / "benchmarks",
        [],
    ):
        content = json.loads(file.content)
        if file.path.name[:8] not in out:
            continue
        held.append({})
        for name, line in content["results"].items():
            row = dict(zip(content["result_columns"], line, strict=False))
            values = row["result"] or [None] * math.prod(map(len, row["params"]))
            for point, value in zip(itertools.product(*row["params"]), values, strict=True):
                if value is None or value == value:
                    held[-1][f"{name}({', '.join(point)})"] = value
    one, other = held
    both = {name for name in one.keys() & other.keys() if (one[name], other[name]) != (None, None)}
    assert shown == both

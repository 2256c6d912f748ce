"""The GitHub Action and the pre-commit hook: their shell steps run here, as a runner does."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from torchcompile_suite.cli import contract
from torchcompile_suite.contract import factory, file, markdown
from torchcompile_suite.contract.counts import Counts
from torchcompile_suite.contract.file import Entry
from torchcompile_suite.engine import processes
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.trial import run

from ..conftest import ROOT, ReleaseEnvironment

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
PAGE = (ROOT / "docs" / "contract.md").read_text()
BLOCKS = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.S)]
INSTALL, CHECK = ACTION["runs"]["steps"]
MODEL = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.sin()


def make():
    return Model(), torch.randn(4)
"""


class Job:
    """A runner's folders and files, and its inputs for the action."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.project = folder / "project"
        self.project.mkdir(parents=True)
        self._files = {
            name: folder / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
        }
        self._temporary = folder / "temporary"
        self._temporary.mkdir()
        self.inputs = {name: each["default"] for name, each in ACTION["inputs"].items()} | inputs

    def run(
        self, step: dict[str, Any], variables: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run a step's text with GitHub's options of bash."""
        given = {
            name: self.inputs[value.removeprefix("${{ inputs.").removesuffix(" }}")]
            for name, value in step["env"].items()
        }
        files = {name: str(path) for name, path in self._files.items()}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.project,
            env={**variables, **files, **given, "RUNNER_TEMP": str(self._temporary)},
            capture_output=True,
            text=True,
            timeout=600,
        )

    def output(self) -> dict[str, str]:
        """What the last step has put out; and the job's summary."""
        text = self._files["GITHUB_OUTPUT"].read_text()
        found = dict(line.split("=", 1) for line in text.splitlines())
        summary = self._files["GITHUB_STEP_SUMMARY"]
        found["summary"] = summary.read_text() if summary.exists() else ""
        for path in self._files.values():
            path.unlink(missing_ok=True)
        return found


def own(**more: str) -> dict[str, str]:
    """The variables of this process, with this checkout's suite on the path."""
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), **more, "PATH": path}


def test_the_steps_have_no_fault_that_shellcheck_finds() -> None:
    for step in (INSTALL, CHECK):
        # An input in the text would be run.
        assert "${{" not in step["run"]
        command = ["shellcheck", "--shell", "bash", "-"]
        done = subprocess.run(command, input=step["run"], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_what_cannot_be_counted_is_in_the_summary(tmp_path: Path) -> None:
    """This Python has no torch, and one of the releases does not exist."""
    job = Job(tmp_path, releases="installed\nv1.0")
    entry = Entry.of("model.py:make", "default", "cpu", "2.15", Counts(1))
    (job.project / "model.py").write_text(MODEL)
    file.write(job.project / file.NAME, [entry])
    done = job.run(CHECK, own())
    assert done.returncode == 1
    output = job.output()
    assert output["kept"] == "false"
    assert output["summary"] == Path(output["markdown"]).read_text()
    assert "contract broken: 2 of 2" in output["summary"]
    assert "there is no torch beside the suite" in output["summary"]
    assert "PyTorch 1.0 is not in the catalogue" in output["summary"]

    # Without a contract there is no summary, and that of another use stays.
    (job.project / file.NAME).unlink()
    done = job.run(CHECK, own())
    assert done.returncode != 0
    assert "there is no compile-contract.toml" in done.stderr
    assert job.output() == {"kept": "false", "summary": ""}
    assert Path(output["markdown"]).exists()


def test_a_runner_without_a_gpu_leaves_out_the_entries_of_one(tmp_path: Path) -> None:
    """This Python has no torch, so each entry that is checked is a fault."""
    devices = ("cpu", "cuda")
    entries = [Entry.of("model.py:make", "default", each, "2.15", Counts(1)) for each in devices]
    (tmp_path / "model.py").write_text(MODEL)
    file.write(tmp_path / file.NAME, entries)
    summary = tmp_path / "summary.md"
    command = [sys.executable, "-m", "torchcompile_suite", "contract", "check"]
    for options, broken in (((), 2), (("--device", "cpu"), 1)):
        asked = [*command, *options, "--markdown", str(summary)]
        subprocess.run(asked, cwd=tmp_path, env=own(), capture_output=True)
        assert f"contract broken: {broken} of {broken}" in summary.read_text()
    done = subprocess.run(
        [*command, "--device", "cuda:sm90"], cwd=tmp_path, env=own(), capture_output=True, text=True
    )
    assert "has no entry for cuda:sm90" in done.stderr


@pytest.mark.parametrize(
    ("models", "says"),
    [
        ([], "has no entry; add one: "),
        (["test_it.py::test"], "has only entries of tests; check them with pytest"),
        (None, "there is no gpu.toml; make it: "),
    ],
)
def test_a_contract_without_a_model_says_what_to_do(
    models: list[str] | None, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("gpu.toml")
    if models is not None:
        entries = [Entry.of(each, "default", "cpu", "2.15", Counts(1)) for each in models]
        path.write_text(file.text(file.Contract(entries)))
    done = CliRunner().invoke(contract.app, ["check", "--file", str(path)])
    assert done.exit_code == 1
    assert says in done.output
    make = "torchcompile-suite contract update my_model.py:make --file gpu.toml\n"
    assert done.output.endswith(make) is ("tests" not in says)


def test_a_module_is_found_beside_the_contract_and_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The action sets PYTHONSAFEPATH, and then the current folder is not on the path by itself."""
    for folder, name in ((tmp_path, "of_project"), (tmp_path / "ci", "of_ci")):
        (folder / name).mkdir(parents=True)
        (folder / name / "models.py").write_text("")

    def asked(environment: processes.Environment, *_: object) -> factory.Counted:
        variables = {**os.environ, **environment.variables, "PYTHONSAFEPATH": "1"}
        for name in ("of_project", "of_ci"):
            command = [sys.executable, "-c", f"import {name}.models"]
            subprocess.run(command, cwd=tmp_path / "ci", env=variables, check=True)
        return factory.Counted("2.15.0", Counts(1))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(processes, "asked", asked)
    monkeypatch.setattr(run, "python_of", lambda *_: Path(sys.executable))
    entry = contract._counted(
        "of_project.models:make", Path("ci/cpu.toml"), contract._Way(), "installed"
    )
    assert entry.counts == Counts(1)


@pytest.mark.parametrize("known", ["", "12\n345"])
def test_only_the_contracts_own_comment_is_edited(known: str, tmp_path: Path) -> None:
    """The step of the page, with a gh that writes down what it is asked."""
    ((comment,),) = [
        [step for step in block if "comment" in str(step.get("run"))] for block in BLOCKS[:1]
    ]
    assert "--edit-last" not in PAGE
    assert f'startswith("{markdown.MARK}")' in comment["run"]
    # As text of another shell, an input would be run.
    assert "${{" not in comment["run"]
    gh = tmp_path / "gh"
    gh.write_text('#!/bin/sh\necho "$@" >>asked\ncase "$*" in *--paginate*) cat known;; esac\n')
    gh.chmod(0o755)
    (tmp_path / "known").write_text(known)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    variables = {"PATH": path, "GITHUB_REPOSITORY": "me/project", "NUMBER": "7"}
    subprocess.run(["bash", "-ec", comment["run"]], cwd=tmp_path, env=variables, check=True)
    looked, done = (tmp_path / "asked").read_text().splitlines()
    assert "repos/me/project/issues/7/comments" in looked
    if known:
        assert "--method PATCH repos/me/project/issues/comments/345 " in done
        assert "body=@contract.md" in done
    else:
        assert done == "pr comment 7 --body-file contract.md"


@pytest.mark.parametrize(
    "call", ["", "default --batch-size", "default --depth 3", "default --batch-size 0", "--dynamic"]
)
def test_a_way_of_calling_that_is_none_is_one_line(call: str) -> None:
    with pytest.raises(SuiteError, match=r"the contract has no such way to call: .*; update it"):
        contract._Way.read(call, "cpu")


def test_the_hook_is_a_command_of_the_suite() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {"id", "name", "entry", "language"} <= hook.keys()
    program, room, command = shlex.split(hook["entry"])
    assert (program, room) == ("torchcompile-suite", "contract")
    assert command in contract.app.commands
    # pre-commit gives it no files: they are not models.
    assert hook["pass_filenames"] is False
    # The page has it for a project that does not name the repository.
    ((local,),) = [block for block in BLOCKS if "repo" in block[0]]
    (written,) = local["hooks"]
    assert {**hook, **written} == {**hook, "stages": ["pre-push"]}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_contract_is_kept_and_broken(newest: ReleaseEnvironment, tmp_path: Path) -> None:
    job = Job(tmp_path / "job", releases="newest", models="model.py:make")
    model = job.project / "model.py"
    model.write_text(MODEL)
    variables = own(**newest.lie_in(tmp_path / "environments"))
    update = ["torchcompile-suite", "contract", "update", "model.py:make", "--release", "newest"]
    done = subprocess.run(update, cwd=job.project, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = job.run(CHECK, variables)
    assert done.returncode == 0, done.stdout + done.stderr
    output = job.output()
    assert output["kept"] == "true"
    assert "### torch.compile contract kept: 1" in output["summary"]

    model.write_text(MODEL.replace("        return", "        print(1)\n        return"))
    done = job.run(CHECK, variables)
    assert done.returncode == 1
    output = job.output()
    assert output["kept"] == "false"
    assert "at model.py:7 in forward: print(1)" in output["summary"]


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_the_suite_is_installed_from_the_action(tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    job = Job(tmp_path / "job", package=f"{ROOT}[suite]")
    # GitHub takes the next value where one is empty or false.
    core = "inputs.releases == 'installed' && github.action_path"
    default = f"{core} || format('{{0}}[suite]', github.action_path)"
    assert INSTALL["env"]["PACKAGE"] == f"${{{{ inputs.package || {default} }}}}"
    step = {**INSTALL, "env": {**INSTALL["env"], "PACKAGE": "${{ inputs.package }}"}}
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    variables = {**os.environ, "PATH": path, "PYTHONPATH": ""}
    done = job.run(step, variables)
    assert done.returncode == 0, done.stderr
    # The next step finds its command there, with all that it imports.
    done = job.run(CHECK, variables)
    assert "there is no compile-contract.toml" in done.stderr
    code = "import torchcompile_suite; print(torchcompile_suite.__file__)"
    python = folder / "bin" / "python"
    found = subprocess.run(
        [python, "-c", code], cwd=tmp_path, env={"PYTHONPATH": ""}, capture_output=True, text=True
    )
    assert found.stdout.startswith(str(folder)), found.stderr

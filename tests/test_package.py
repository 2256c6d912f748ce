"""What ``pip install torchcompile-suite`` brings: the core, and one line for what it lacks."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement

from torchcompile_suite import __version__
from torchcompile_suite.cli import app as command_line
from torchcompile_suite.cli import recorded
from torchcompile_suite.cli.app import EXTRAS, UNIX, missing
from torchcompile_suite.host import machine as host

from .conftest import ROOT, ReleaseEnvironment
from .contract.test_example import follow

PROJECT = msgspec.toml.decode((ROOT / "pyproject.toml").read_bytes())["project"]
# The modules of the distributions that have others than their own name.
MODULES = {"markdown-it-py": "markdown_it", "nvidia-ml-py": "pynvml"}
MOST_PACKAGES = 8
MOST_BYTES = 40_000_000

# Imports modules, and prints the packages and the modules that this brought.
BROUGHT = """
import sys, importlib, json
{setup}
before = set(sys.modules)
for name in {names!r}:
    importlib.import_module(name)
brought = set(sys.modules) - before
packages = {{name.partition(".")[0] for name in brought}} - sys.stdlib_module_names
packages -= {{"__mp_main__"}}  # multiprocessing's name of the script
print(json.dumps([sorted(packages), sorted(brought)]))
"""
BLOCKED = "sys.modules.update(dict.fromkeys({names!r}))"


def modules(requirements: list[str]) -> set[str]:
    names = {Requirement(requirement).name for requirement in requirements}
    return {MODULES.get(name, name.replace("-", "_")) for name in names} - {"torchcompile_suite"}


def python(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )


def brought(*names: str, setup: str = "") -> tuple[set[str], set[str]]:
    """The packages and the modules that importing those modules brings."""
    done = python(BROUGHT.format(names=names, setup=setup))
    assert done.returncode == 0, done.stderr
    packages, all_modules = json.loads(done.stdout)
    return set(packages) - {"torchcompile_suite"}, set(all_modules)


def without_extras(command: str) -> subprocess.CompletedProcess[str]:
    """The command in a Python that has the core only."""
    return without(command, [name for each in EXTRAS.values() for name in each])


def without(command: str, names: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """The command in a Python that lacks those modules."""
    return python(
        f"import sys; {BLOCKED.format(names=names)}; sys.argv = {command.split()!r}\n"
        "from torchcompile_suite.__main__ import main; main()"
    )


def test_each_module_of_an_extra_is_known() -> None:
    declared = {name: modules(found) for name, found in PROJECT["optional-dependencies"].items()}
    assert {name: set(found) for name, found in EXTRAS.items()} == declared


@pytest.mark.parametrize(
    "name",
    [
        "torchcompile_suite.trial.api",
        "torchcompile_suite.contract.counting",
        "torchcompile_suite.contract.file",
        "torchcompile_suite.launch.messages",
        "torchcompile_suite.results.segments",
        *(
            f"torchcompile_suite.cli.{lazy.place.partition(':')[0]}"
            for lazy in command_line.CORE.values()
        ),
        "torchcompile_suite.cli.trying",
    ],
)
def test_the_core_imports_nothing_outside_of_it(name: str) -> None:
    # msgspec imports it if it is there.
    packages, _ = brought(name, setup=BLOCKED.format(names=["typing_extensions"]))
    assert packages <= modules(PROJECT["dependencies"])


def test_the_plugin_imports_nothing_but_pytest() -> None:
    packages, _ = brought("torchcompile_suite.contract.plugin", setup="import pytest")
    assert packages == set()
    _, found = brought("pytest", "torchcompile_suite.contract.plugin")
    own = {name for name in found if name.startswith("torchcompile_suite")}
    assert own == {
        "torchcompile_suite",
        "torchcompile_suite._version",
        "torchcompile_suite.contract",
        "torchcompile_suite.contract.plugin",
    }


def test_the_help_waits_for_no_command() -> None:
    packages, found = brought("torchcompile_suite.__main__")
    assert packages == {"click"}
    own = {name for name in found if name.startswith("torchcompile_suite.")}
    assert own == {
        f"torchcompile_suite.{name}"
        for name in ("__main__", "_version", "cli", "cli.app", "errors")
    }


@pytest.mark.parametrize(("command", "most"), [("--help", 3.0), ("try --help", 6.0)])
def test_the_help_is_there_at_once(command: str, most: float) -> None:
    """By processor time, over that of the import of click: as long on any machine."""

    def took_s(*arguments: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    help_s, click_s = (
        min(took_s(*arguments) for _ in range(3))
        for arguments in (("-m", "torchcompile_suite", *command.split()), ("-c", "import click"))
    )
    assert help_s <= most * click_s


def test_the_help_of_try_waits_for_no_judgement() -> None:
    _, found = brought("torchcompile_suite.cli.try_model")
    rooms = {name.split(".")[1] for name in found if name.startswith("torchcompile_suite.")}
    assert not rooms & {"presentation", "results", "doctor", "releases", "commits", "asv", "site"}
    assert "torchcompile_suite.engine.rounds" not in found


@pytest.mark.parametrize("name", [*command_line.CORE, *command_line.SUITE])
def test_the_line_of_a_command_begins_its_help(name: str) -> None:
    lazy = {**command_line.CORE, **command_line.SUITE}[name]
    command = command_line.app.get_command(click.Context(command_line.app), name)
    assert command is not None
    assert (command.help or "").startswith(lazy.line)


@pytest.mark.parametrize("name", command_line.SUITE)
def test_a_command_of_the_suite_names_the_extra_in_one_line(name: str) -> None:
    done = without_extras(f"torchcompile-suite {name} --help")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        f"torchcompile-suite: `{name}` needs more packages: "
        "pip install 'torchcompile-suite[suite]'\n"
    )


@pytest.mark.parametrize(
    "command",
    [
        "try softmax_matmul --release v2.15",
        "open softmax_matmul --release v2.15",
        "doctor --release v2.15",
    ],
)
def test_a_release_to_install_needs_the_suite(command: str) -> None:
    done = without_extras(f"torchcompile-suite {command}")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("pip install 'torchcompile-suite[suite]'")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", command_line.CORE)
def test_a_command_of_the_core_has_its_help(name: str) -> None:
    done = without_extras(f"torchcompile-suite {name} --help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"Usage: torchcompile-suite {name} ")


@pytest.mark.parametrize("name", [*command_line.CORE, *command_line.SUITE])
def test_on_windows_a_command_names_the_system_in_one_line(name: str) -> None:
    done = without(f"torchcompile-suite {name}", UNIX)
    assert done.returncode == 1
    assert done.stderr == (
        f"torchcompile-suite: `{name}` runs on Linux only; on Windows, install it inside WSL2\n"
    )


def test_another_missing_module_is_a_fault_of_ours() -> None:
    with pytest.raises(ModuleNotFoundError, match="xyz"):
        missing(ModuleNotFoundError("no xyz", name="xyz"), "try")


def test_ray_is_in_its_own_extra() -> None:
    done = without("torchcompile-suite fleet doctor v2.4 v2.9", EXTRAS["fleet"])
    assert done.returncode == 1
    assert done.stderr == (
        "torchcompile-suite: `fleet doctor` needs more packages: "
        "pip install 'torchcompile-suite[fleet]'\n"
    )


def test_published_results_are_shown_where_there_are_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "PUBLISHED", ROOT / "results")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results" / "of something else").mkdir(parents=True)
    name = "intel-xeon-processor-f6m207-16c-128g-nvidia-h200"
    report = ["report", "v2.11", "--machine", name]
    done = CliRunner().invoke(command_line.app, report)
    assert done.exit_code == 0, done.stderr
    assert done.stderr == (
        f"there are no results here: the published ones of torchcompile-suite {__version__}\n"
    )
    assert "resnet18" in done.stdout
    mine = tmp_path / "results" / "mine"
    host.keep(mine, host.fields(mine.name))
    done = CliRunner().invoke(command_line.app, report)
    assert done.exit_code == 1
    assert "no results of machine" in done.stderr


# The wheel


def uv(*arguments: object) -> str:
    return subprocess.run(
        [sys.executable, "-m", "uv", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `nox -s package` has built, or one made now; both are built from the sdist."""
    folder = tmp_path_factory.mktemp("wheel")
    if built := os.environ.get("TESTED_WHEEL"):
        return Path(shutil.copy(built, folder))
    uv("build", "--quiet", "--out-dir", folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """The folder of programs of an environment that has the wheel alone."""
    folder = wheel.parent / "environment"
    uv("venv", "--quiet", "--python", sys.executable, folder)
    uv("pip", "install", "--quiet", "--python", folder / "bin" / "python", wheel)
    return folder / "bin"


def ran(program: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [program, *arguments], capture_output=True, text=True, check=False, cwd=cwd, env=variables
    )


@pytest.mark.slow
def test_the_wheel_has_each_file_of_the_source_and_of_the_results(wheel: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "src/torchcompile_suite", "results"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    packed = set(zipfile.ZipFile(wheel).namelist())
    places = (re.sub("^results/", "torchcompile_suite/published/", name) for name in listed)
    assert {place.removeprefix("src/") for place in places} - packed == {
        "torchcompile_suite/published/benchmarks.json"
    }, "ASV's, which needs a clone"


@pytest.mark.slow
def test_the_core_is_small(installed: Path) -> None:
    listed = json.loads(uv("pip", "list", "--format", "json", "--python", installed / "python"))
    others = {one["name"] for one in listed} - {"torchcompile-suite"}
    assert len(others) <= MOST_PACKAGES, others
    files = (file for file in installed.parent.rglob("*") if not file.is_symlink())
    assert sum(file.stat().st_size for file in files if file.is_file()) <= MOST_BYTES


@pytest.mark.slow
def test_the_wheel_works_without_a_clone(installed: Path, tmp_path: Path) -> None:
    program = installed / "torchcompile-suite"
    assert "Commands of torchcompile-suite[suite]" in ran(program, "--help", cwd=tmp_path).stdout
    report = ran(program, "report", cwd=tmp_path)
    assert report.returncode == 1
    assert report.stderr.count("\n") == 1
    assert "torchcompile-suite[suite]" in report.stderr
    without_torch = ran(program, "try", "softmax_matmul", cwd=tmp_path)
    assert without_torch.returncode == 1
    assert "there is no torch beside the suite" in without_torch.stderr
    looked = ran(program, "doctor", "--json", cwd=tmp_path)
    assert {"torch", "g++"} & {check["name"] for check in json.loads(looked.stdout)}
    code = "import torchcompile_suite; print(torchcompile_suite.compare.__name__)"
    assert ran(installed / "python", "-c", code, cwd=tmp_path).stdout == "compare\n"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_wheel_shows_the_published_results(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    uv("venv", "--quiet", "--python", sys.executable, environment)
    python_there = environment / "bin" / "python"
    uv("pip", "install", "--quiet", "--python", python_there, f"{wheel}[suite]")
    empty = tmp_path / "empty"
    empty.mkdir()
    for command, words in {
        "report v2.15": "What gains most, and what loses most:",
        "report v2.4 v2.15": "cells can be compared",
        "answers inference": "Does compiling a model for inference pay?",
        "claims": "confirmed",
        "coverage": "unexplained gaps: 0",
    }.items():
        done = ran(environment / "bin" / "torchcompile-suite", *command.split(), cwd=empty)
        assert done.returncode == 0, done.stderr
        assert words in done.stdout
        assert done.stderr.startswith("there are no results here: the published ones")
    assert not list(empty.iterdir())


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_a_newcomers_ten_minutes(wheel: Path, newest: ReleaseEnvironment, tmp_path: Path) -> None:
    """The wheel beside a user's torch and pytest: the example of the page, then `try`."""
    environment = ReleaseEnvironment(tmp_path / "environment", newest.version)
    uv("venv", "--quiet", "--python", newest.python, environment.folder)
    uv("pip", "install", "--quiet", "--python", environment.python, wheel, "pytest")
    (packages,) = environment.folder.glob("lib/python*/site-packages")
    (torch,) = newest.folder.glob("lib/python*/site-packages")
    (packages / "torch.pth").write_text(f"{torch}\n")
    variables = environment.variables(PYTHONPATH="")
    follow(environment, variables, tmp_path / "example")
    empty = tmp_path / "empty"
    empty.mkdir()
    tried = environment.run(
        *("-m", "torchcompile_suite", "try", "softmax_matmul", "--precision", "1", "--quiet"),
        cwd=empty,
        env=variables,
    )
    assert tried.returncode == 0, tried.stderr
    assert "of eager's time" in tried.stdout
    assert not list(empty.iterdir())


@pytest.mark.slow
def test_the_plugin_is_found_beside_pytest_alone(installed: Path, tmp_path: Path) -> None:
    uv("pip", "install", "--quiet", "--python", installed / "python", "pytest")
    (tmp_path / "test_it.py").write_text(
        "def test_it(compile_contract): assert compile_contract.counts is None\n"
    )
    done = ran(installed / "python", "-m", "pytest", "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout

"""The plugin in runs of pytest on a user's project, with the torch of a release."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from torchcompile_suite.contract import file, plugin

from ..conftest import ROOT, ReleaseEnvironment, releases
from .failing import failures

PROJECT = """
import pytest
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        x = self.linear(x)
        return x.relu()


@pytest.mark.compile_contract(fullgraph=True, max_recompiles=1)
def test_forward(compile_contract):
    with torch.no_grad():
        compile_contract.check(Model(), [torch.randn(n, 8) for n in (2, 3, 4)], backend="eager")


@torch.compile(backend="eager")
def inner(x):
    return x.sin()


def test_own_code(compile_contract):
    with compile_contract.block("service") as counted:
        inner(torch.randn(3))
    assert counted.counts.graphs == 1


def test_speed(benchmark):
    benchmark(lambda: 1 + 1)
"""


class Project:
    """A folder with one test file, and pytest in the environment of a release."""

    def __init__(self, folder: Path, environment: ReleaseEnvironment) -> None:
        self.folder = folder
        self._environment = environment
        self.contract = folder / file.NAME
        (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
        self.write(PROJECT)

    def write(self, text: str) -> None:
        (self.folder / "test_model.py").write_text(text)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """pytest with the plugins that the tests' environment has."""
        path = os.pathsep.join([str(ROOT / "src"), sysconfig.get_path("purelib")])
        variables = self._environment.variables(PYTHONPATH=path)
        # This test's own process may be one of xdist's, and pytest-benchmark asks.
        variables.pop("PYTEST_XDIST_WORKER", None)
        return self._environment.run(
            *("-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments),
            cwd=self.folder,
            env=variables,
        )


@pytest.fixture(params=releases("v2.4.1", "v2.9.1"))
def project(
    request: pytest.FixtureRequest,
    make_environment: Callable[[str], ReleaseEnvironment],
    tmp_path: Path,
) -> Project:
    return Project(tmp_path, make_environment(request.param))


@pytest.fixture
def newest_project(newest: ReleaseEnvironment, tmp_path: Path) -> Project:
    return Project(tmp_path, newest)


BROKEN = PROJECT.replace("        return x.relu()", '        print("x")\n        return x').replace(
    "    return x.sin()", "    x = x.sin()\n    torch._dynamo.graph_break()\n    return x"
)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_contract_then_two_breaks(project: Project) -> None:
    # Two processes of xdist: the controller writes, once.
    done = project.run("--compile-contract=update", "-n", "2")
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    assert "compile-contract.toml: 2 entries written" in done.stdout, done.stdout + done.stderr
    assert str(project.folder) not in project.contract.read_text()
    models = [entry.model for entry in file.read(project.contract).entries]
    assert models == ["test_model.py::test_forward", "test_model.py::test_own_code"]

    project.write(BROKEN)
    done = project.run()
    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    # One is beyond the limits of its mark, the other one is not what the contract says.
    forward, own_code = failures(done.stdout)
    assert "beyond the limits of its mark" in forward
    assert re.search(r'at test_model.py:13 in forward: print\("x"\)', forward), forward
    assert "remedy: printing or logging" in forward
    assert "+ graph break: " in own_code
    assert "remedy: the code asks for it: remove torch._dynamo.graph_break()" in own_code
    assert "If you want this: pytest --compile-contract=update" in own_code


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_limits_hold_without_a_contract_and_an_update_changes_what_it_must(
    newest_project: Project,
) -> None:
    assert "3 passed" in newest_project.run().stdout
    assert not newest_project.contract.exists()
    newest_project.run("--compile-contract=update")
    text = newest_project.contract.read_text()
    done = newest_project.run("--compile-contract=update")
    assert "nothing has changed (2 entries)" in done.stdout, done.stdout
    assert newest_project.contract.read_text() == text
    # A failing test writes nothing.
    newest_project.write(BROKEN)
    done = newest_project.run("--compile-contract=update")
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "1 entry written" in done.stdout
    done = newest_project.run()
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr


# CodSpeed runs the tests of benchmarks alone, and such a test many times.
MARKED = (
    PROJECT
    + """

@pytest.mark.codspeed_benchmark(max_time=1, max_rounds=3)
def test_marked(compile_contract):
    for size in (2, 3):
        compile_contract.check(Model(), torch.randn(size, 8), backend="eager")
"""
)


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_beside_other_plugins(newest_project: Project) -> None:
    """pytest-xdist, pytest-benchmark and pytest-codspeed in one run, and one by one."""
    newest_project.write(MARKED)
    names = ["Model", "Model #2"]
    for options, outcome in (
        (["-n", "2", "--codspeed", "--compile-contract=update"], "2 passed"),
        (["-n", "2", "--codspeed"], "2 passed"),
        (["--codspeed"], "2 passed, 2 deselected"),
        (["--benchmark-only"], "1 passed, 3 skipped"),
    ):
        done = newest_project.run(*options)
        assert outcome in done.stdout, done.stdout + done.stderr
        assert done.returncode == 0
        assert [entry.call for entry in file.read(newest_project.contract).entries] == names
    # All of them are loaded and none is asked for.
    done = newest_project.run("-n", "2", "--compile-contract=update")
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    newest_project.write(MARKED.replace("return x.relu()", "torch._dynamo.graph_break(); return x"))
    done = newest_project.run("-n", "2", "--codspeed")
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr


# Counts without torch: what the plugin does with them.
COUNTED = """
import sys
from types import SimpleNamespace

import pytest

from torchcompile_suite.contract.counting import Counting

sys.modules["torch"] = SimpleNamespace(__version__="2.15.0")


@pytest.mark.parametrize("number", [1, 2], ids=["short", LONG])
def test_it(compile_contract, number):
    compile_contract._hold("block", Counting())


def test_another():
    assert False, "as ever"
"""


def updated(folder: Path, long: str, *options: str) -> subprocess.CompletedProcess[str]:
    """pytest with --compile-contract=update on counts of its own."""
    (folder / "test_it.py").write_text(COUNTED.replace("LONG", long))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "torchcompile_suite.contract.plugin"]
    path = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    path.pop("PYTEST_XDIST_WORKER", None)
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", "--compile-contract=update", *options],
        cwd=folder,
        env=path,
        capture_output=True,
        text=True,
    )


def test_a_test_whose_name_is_too_long_fails_alone(tmp_path: Path) -> None:
    done = updated(tmp_path, '"x" * 5000')
    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "give the parameter a short id (pytest.param(..., id=...))" in done.stdout
    assert "compile-contract.toml: 1 entry written" in done.stdout
    done = updated(tmp_path, '"long"')
    assert "compile-contract.toml: 2 entries written" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("options", [(), ("-p", "xdist.plugin", "-n", "2")])
def test_a_contract_that_cannot_be_read_or_written_is_said(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = tmp_path / file.NAME
    path.write_text("<<<<<<< HEAD\n")
    done = updated(tmp_path, '"long"', *options)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: compile-contract.toml cannot be read" in done.stderr, done.stdout + done.stderr
    assert "passed" not in done.stdout, "no test runs in vain"
    # At the end, when the tests have run, their report is not lost.
    path.unlink()
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{plugin.NAME} = /proc/none/{file.NAME}\n")
    done = updated(tmp_path, '"long"', *options, "--junit-xml=junit.xml")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert re.search("^ERROR: cannot write .*: No such file", done.stdout, re.MULTILINE)
    assert (tmp_path / "junit.xml").is_file()


def test_a_mark_with_an_unknown_name(tmp_path: Path) -> None:
    (tmp_path / "test_model.py").write_text(
        "import pytest\n\n\n@pytest.mark.compile_contract(max_recompile=1)\n"
        "def test_forward(compile_contract):\n    pass\n"
    )
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_model.py")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    says = "the mark compile_contract has no max_recompile; it has: fullgraph,"
    assert says in done.stdout, done.stdout + done.stderr
    assert "Error" not in done.stdout, done.stdout


def test_a_mark_without_its_fixture_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n@pytest.mark.compile_contract(fullgraph=True)\ndef test_it(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "torchcompile_suite.contract.plugin"]
    path = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, text=True)
    assert "the mark compile_contract does nothing without its fixture" in done.stdout
    assert done.returncode == 0
    # Where warnings are errors, the others run.
    with (tmp_path / "test_it.py").open("a") as more:
        more.write("\ndef test_another(): pass\n")
    done = subprocess.run(
        [*command, "-W", "error"], cwd=tmp_path, env=path, capture_output=True, text=True
    )
    assert "1 passed, 1 error" in done.stdout


def test_only_the_group_of_xdist_is_no_part_of_the_name() -> None:
    def named(nodeid: str, *marks: pytest.MarkDecorator) -> str:
        config = SimpleNamespace(option=SimpleNamespace(loadgroup=True))
        item = SimpleNamespace(
            nodeid=nodeid, config=config, iter_markers=lambda _: [one.mark for one in marks]
        )
        return plugin._name(item)  # type: ignore[arg-type]

    of = "test_it.py::test[bert@fp16]"
    assert named(of) == of
    assert named(f"{of}@b_gpu", pytest.mark.xdist_group("gpu"), pytest.mark.xdist_group("b")) == of
    assert named(f"{of}@gpu", pytest.mark.xdist_group(name="gpu")) == of


def test_the_plugin_imports_without_the_stash_of_pytest_7() -> None:
    """pytest imports it at each start, also in a project that holds nothing to a contract."""
    code = "import pytest; del pytest.StashKey; import torchcompile_suite.contract.plugin"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_plugin_imports_nothing_heavy() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules);"
        "import torchcompile_suite.contract.plugin;"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = done.stdout
    assert "msgspec" not in names
    assert "torch'" not in names
    assert names.count("'") // 2 <= 6, names

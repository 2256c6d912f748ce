"""The plugin in runs of pytest on a user's project, with the torch of a release."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from torchcompile_suite.contract import file

from ..conftest import ROOT, ReleaseEnvironment, releases

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
        return self._environment.run(
            *("-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments),
            cwd=self.folder,
            env=self._environment.variables(PYTHONPATH=path),
        )


@pytest.fixture(params=releases("v2.4.1", "v2.9.1"))
def project(request: pytest.FixtureRequest, make_environment: object, tmp_path: Path) -> Project:
    return Project(tmp_path, make_environment(request.param))  # type: ignore[operator]


@pytest.fixture
def newest_project(newest: ReleaseEnvironment, tmp_path: Path) -> Project:
    return Project(tmp_path, newest)


@pytest.mark.slow
def test_limits_then_a_contract_then_a_break(project: Project) -> None:
    done = project.run()
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    assert not project.contract.exists()

    # Two processes of xdist: the controller writes, once.
    done = project.run("--compile-contract=update", "-n", "2")
    assert "compile-contract.toml: 2 entries written" in done.stdout, done.stdout + done.stderr
    text = project.contract.read_text()
    assert str(project.folder) not in text
    models = [entry.model for entry in file.read(project.contract).entries]
    assert models == ["test_model.py::test_forward", "test_model.py::test_own_code"]
    done = project.run("--compile-contract=update")
    assert "nothing has changed (2 entries)" in done.stdout, done.stdout
    assert project.contract.read_text() == text

    project.write(
        PROJECT.replace("        return x.relu()", '        print("x")\n        return x')
    )
    done = project.run("-k", "forward")
    assert done.returncode == 1
    assert "beyond the limits of its mark" in done.stdout
    assert re.search(r'at test_model.py:13 in forward: print\("x"\)', done.stdout), done.stdout
    assert "remedy: printing or logging" in done.stdout


@pytest.mark.slow
def test_counts_must_match_the_contract(newest_project: Project) -> None:
    newest_project.run("--compile-contract=update")
    changed = PROJECT.replace("    return x.sin()", "    torch._dynamo.graph_break()\n    return x")
    newest_project.write(changed)
    done = newest_project.run()
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "+ graph break: " in done.stdout
    assert "remedy: the code asks for it: remove torch._dynamo.graph_break()" in done.stdout
    assert "If you want this: pytest --compile-contract=update" in done.stdout
    # A failing test writes nothing; this one passes in the mode that writes.
    done = newest_project.run("--compile-contract=update", "-k", "own_code")
    assert "1 entry written" in done.stdout
    assert "3 passed" in newest_project.run().stdout


@pytest.mark.slow
def test_beside_other_plugins(newest_project: Project) -> None:
    """pytest-xdist, pytest-benchmark and pytest-codspeed in one run."""
    for options in (["-n", "2"], ["--codspeed"], ["--benchmark-only"]):
        done = newest_project.run(*options)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mark", "says"),
    [
        ("max_recompile=1", "the mark compile_contract has no max_recompile; it has: fullgraph,"),
        ("max_graphs=0", "graphs: 1, and max_graphs=0"),
    ],
)
def test_a_mark_that_does_not_fit(newest_project: Project, mark: str, says: str) -> None:
    newest_project.write(PROJECT.replace("fullgraph=True, max_recompiles=1", mark))
    done = newest_project.run("-k", "forward")
    assert done.returncode == 1
    assert says in done.stdout.replace("\n", " "), done.stdout


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

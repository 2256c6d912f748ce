"""The example project of docs/contract.md: a contract, then a break, as the page has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from torchcompile_suite.contract import file

from ..conftest import ROOT, ReleaseEnvironment
from .failing import failures

EXAMPLE = ROOT / "docs" / "examples" / "contract"
LINE = "        hidden = self.project(x).relu()\n"
PAGE_SAYS = (
    "+ graph break: GB0059 Failed to trace builtin operator",
    "at encoder.py:15 in forward: print(hidden.shape)",
    "remedy: printing or logging: remove it from forward",
)


def test_the_page_has_the_whole_example() -> None:
    page = (ROOT / "docs" / "contract.md").read_text()
    for name in ("encoder.py", "tests/test_encoder.py"):
        assert f"```python\n{(EXAMPLE / name).read_text()}```" in page, name
    for line in (EXAMPLE / "pytest.ini").read_text().splitlines()[:2]:
        assert f"`{line}`" in page


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_example_of_the_page(newest: ReleaseEnvironment, tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "src"), sysconfig.get_path("purelib")])
    follow(newest, newest.variables(PYTHONPATH=path), tmp_path / "example")


def follow(environment: ReleaseEnvironment, variables: dict[str, str], folder: Path) -> None:
    """Do what the page says in a new folder, with the Python of that environment."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)
        return environment.run(*command, cwd=folder, env=variables)

    done = run("--compile-contract=update")
    assert "compile-contract.toml: 2 entries written" in done.stdout, done.stdout + done.stderr
    entry = file.read(folder / file.NAME).entries[1]
    page = (ROOT / "docs" / "contract.md").read_text()
    for name in ("graphs", "kernels", "launches", "bytes"):
        assert f"\n{name} = {getattr(entry.counts, name)}\n" in page
    source = (folder / "encoder.py").read_text()
    (folder / "encoder.py").write_text(source.replace(LINE, LINE + "        print(hidden.shape)\n"))
    done = run()
    assert "2 failed" in done.stdout, done.stdout + done.stderr
    texts = failures(done.stdout)
    assert len(texts) == 2
    for text in texts:
        for line in PAGE_SAYS:
            assert line in text, text
            assert line in page

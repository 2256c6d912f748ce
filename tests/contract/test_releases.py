"""The same contract on several releases, by the command line."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.version import Version

from torchcompile_suite.contract import file
from torchcompile_suite.releases import catalogue

from ..conftest import NEWEST, ROOT, ReleaseEnvironment

EXAMPLE = ROOT / "docs" / "examples" / "contract"


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_one_contract_for_three_releases(
    make_environment: Callable[[str], ReleaseEnvironment], tmp_path: Path
) -> None:
    shutil.copy(EXAMPLE / "encoder.py", tmp_path)
    environments = [make_environment(name) for name in ("v2.4.1", "v2.9.1", NEWEST)]
    variables = environments[0].variables()
    for each in environments:
        variables |= each.lie_in(tmp_path / "environments")
    releases = [argument for each in environments for argument in ("--release", each.version)]

    def contract(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "torchcompile_suite", "contract", *arguments, *releases],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            timeout=900,
        )

    done = contract("update", "encoder.py:make", "--batch-size", "4")
    assert "written (torch 2.4, 2.9, " in done.stdout, done.stdout + done.stderr
    found = file.read(tmp_path / file.NAME)
    listed = sorted((name for entry in found.entries for name in entry.torch), key=Version)
    assert listed == ["2.4", "2.9", catalogue.minor(environments[-1].version)]
    done = contract("check", "--markdown", "contract.md")
    assert done.returncode == 0, done.stdout + done.stderr
    summary = (tmp_path / "contract.md").read_text()
    assert "### torch.compile contract kept: 3" in summary
    for before, after in pairwise(listed):
        says = rf"- torch {after} .*(of|in) `encoder.py:make` \(default.*; before: torch {before}\)"
        assert re.search(says, summary), summary
    assert done.stdout.count("as in the contract") == 3, done.stdout
    # In a loop, a break leaves the function to eager: each release says so in another way.
    model = tmp_path / "encoder.py"
    model.write_text(
        model.read_text().replace(
            "        return hidden",
            "        for _ in range(2):\n            print(1)\n        return hidden",
        )
    )
    done = contract("check")
    assert done.returncode == 1
    assert done.stdout.count("+ left to eager: ") == 3, done.stdout
    assert done.stdout.count("in forward: print(1)") == 3, done.stdout

"""The same contract on several releases, by the command line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from torchcompile_suite.contract import file

from ..conftest import NEWEST, ROOT, ReleaseEnvironment

EXAMPLE = ROOT / "docs" / "examples" / "contract"


def contract(folder: Path, environment: ReleaseEnvironment, *arguments: str) -> str:
    """What the command prints in that release's environment."""
    variables = environment.lie_in(folder / "environments")
    command = ("-m", "torchcompile_suite", "contract", *arguments)
    done = subprocess.run(
        [sys.executable, *command, "--release", f"v{environment.version}"],
        cwd=folder,
        env=environment.variables(**variables),
        capture_output=True,
        text=True,
        timeout=900,
    )
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_one_contract_for_three_releases(
    make_environment: Callable[[str], ReleaseEnvironment], tmp_path: Path
) -> None:
    shutil.copy(EXAMPLE / "encoder.py", tmp_path)
    environments = [make_environment(name) for name in ("v2.4.1", "v2.9.1", NEWEST)]
    for environment in environments:
        told = contract(tmp_path, environment, "update", "encoder.py:make", "--batch-size", "4")
        assert "1 entry written" in told, told
    found = file.read(tmp_path / file.NAME)
    releases = [release for entry in found.entries for release in entry.torch]
    assert len(set(releases)) == len(releases) == 3
    for environment in environments:
        told = contract(tmp_path, environment, "check")
        assert "as in the contract" in told, told

"""Fixtures: a real environment of a real release, made once a test run."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from playwright.sync_api import Browser, sync_playwright

from torchcompile_suite.measuring.settings import REPEATS_VARIABLE
from torchcompile_suite.releases import catalogue, environments

# A shared CI machine may pause any example for longer than any deadline.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

ROOT = Path(__file__).resolve().parents[1]

# Two test processes disturb each other: what they measure need not be made again for that.
QUICK = {REPEATS_VARIABLE: "0"}


class ReleaseEnvironment:
    """A virtual environment that holds one release's lock, and nothing of the suite."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder = folder
        self.version = version
        self.python = folder / "bin" / "python"

    def variables(self, **more: str) -> dict[str, str]:
        """The environment variables a process in it gets, without the user's own settings."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TORCHCOMPILE_SUITE_", "TORCHINDUCTOR_", "ASV_"))
        }
        kept.update(QUICK)
        kept["PYTHONPATH"] = str(ROOT / "src")
        kept["PATH"] = f"{self.folder / 'bin'}{os.pathsep}{kept['PATH']}"
        return {**kept, **more}

    def run(self, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
        """Run its Python with the arguments."""
        options.setdefault("env", self.variables())
        options.setdefault("timeout", 600)
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            [str(self.python), *arguments], capture_output=True, text=True, **options
        )


@pytest.fixture(scope="session")
def make_environment(worker_id: str) -> Callable[[str], ReleaseEnvironment]:
    """Makes (or changes) the one environment of this test process to a release, as ASV would."""
    # Beside the checkout, so that uv links from its cache instead of copying gigabytes.
    folder = ROOT / ".asv" / f"test-env-{worker_id}"

    def make(name: str) -> ReleaseEnvironment:
        release = catalogue.find(name)
        environments.install(release, folder)
        return ReleaseEnvironment(folder, release.version)

    return make


@pytest.fixture(scope="module")
def newest(make_environment: Callable[[str], ReleaseEnvironment]) -> ReleaseEnvironment:
    """The environment of the newest release; asked anew by each module, for others change it."""
    return make_environment(catalogue.read()[-1].version)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The system's Chromium."""
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next((path for name in names if (path := shutil.which(name))), None)
    assert program, "no Chromium; on Debian or Ubuntu: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()

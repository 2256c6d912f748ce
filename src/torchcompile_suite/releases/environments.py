"""Environments that hold one release and nothing of the suite, made outside ASV."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import platformdirs

from . import ledger
from .catalogue import Release, ReleaseError

INSTALL = Path(__file__).with_name("install.py")
# One for whoever needs a release and is not ASV; beside uv's own cache, which it links from.
SCRATCH = platformdirs.user_cache_path("torchcompile-suite") / "environment"


class InstallError(ReleaseError):
    """The release's lock does not install or import here; the message is uv's or Python's."""


def making(release: Release) -> str:
    """What to say before `install`, which is silent and may take minutes."""
    return f"making the environment of PyTorch {release.version}; the first time takes minutes"


def install(release: Release, folder: Path) -> tuple[Path, str]:
    """Make the environment in ``folder`` hold exactly the release's lock, as ASV's would.

    An environment that is already there changes to the release. Returns its Python and the line
    that says what was imported. Raises InstallError where the lock does not install or import, and
    ReleaseError where not even an empty environment can be made.
    """
    python = python_in(folder)
    if not python.exists():
        _create(release, folder)
    with tempfile.TemporaryDirectory(prefix="release-") as checkout:
        Path(checkout, ledger.RELEASE_FILE).write_bytes(ledger.release_file(release))
        Path(checkout, ledger.LOCK_FILE).write_bytes(ledger.lock_file(release))
        done = _run([str(python), str(INSTALL), checkout])
    if done.returncode:
        raise InstallError(" ".join(done.stderr.split()))
    return python, done.stdout.strip()


def python_in(folder: Path) -> Path:
    """The Python of the environment in ``folder``."""
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _create(release: Release, folder: Path) -> None:
    """Make an empty environment, with this Python where the release supports it."""
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = sys.executable if release.supports(running) else release.usable_pythons[0]
    uv = [sys.executable, "-m", "uv", "venv", "--quiet", "--seed", "--python", wanted, str(folder)]
    done = _run(uv)
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise ReleaseError(
            f"uv could not make an environment with Python {wanted} "
            f"(PyTorch {release.version} needs one of {', '.join(release.usable_pythons)}): {said}"
        )


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )

"""Virtual environments that hold one release and nothing of the suite, made outside ASV."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import platformdirs

from ..errors import SuiteError
from .catalogue import Release
from .ledger_objects import LOCK_FILE, RELEASE_FILE, lock_file, release_file

INSTALL = Path(__file__).with_name("install.py")
# One environment for all commands other than ASV's. It lies beside uv's cache, so that uv can link
# files from the cache instead of copying them.
SCRATCH = platformdirs.user_cache_path("torchcompile-suite") / "environment"


class LockError(SuiteError):
    """The release's lock does not install or import on this machine.

    The message is that of uv or of Python.
    """


def making(release: Release) -> str:
    """A line to print before `install`, which prints nothing and may take minutes."""
    return f"making the environment of PyTorch {release.version}; the first time takes minutes"


def install(release: Release, folder: Path) -> tuple[Path, str]:
    """Make the environment in ``folder`` hold exactly the release's lock, as ASV's would.

    An existing environment changes to the release. Returns the environment's Python, and a line
    with the versions that were imported. Raises LockError if the lock does not install or import,
    and SuiteError if not even an empty environment can be made.
    """
    python = python_in(folder)
    if not python.exists():
        _create(release, folder)
    with tempfile.TemporaryDirectory(prefix="release-") as checkout:
        Path(checkout, RELEASE_FILE).write_bytes(release_file(release))
        Path(checkout, LOCK_FILE).write_bytes(lock_file(release))
        done = _run([str(python), str(INSTALL), checkout])
    if done.returncode:
        raise LockError(" ".join(done.stderr.split()))
    return python, done.stdout.strip()


def python_in(folder: Path) -> Path:
    """The Python of the environment in ``folder``."""
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _create(release: Release, folder: Path) -> None:
    """Make an empty environment, with the Python that runs now if the release supports it."""
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = sys.executable if release.supports(running) else release.usable_pythons[0]
    uv = [sys.executable, "-m", "uv", "venv", "--quiet", "--seed", "--python", wanted, str(folder)]
    done = _run(uv)
    if done.returncode:
        reason = " ".join(done.stderr.split())
        raise SuiteError(
            f"uv could not make an environment with Python {wanted} (PyTorch {release.version} "
            f"needs one of {', '.join(release.usable_pythons)}): {reason}"
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

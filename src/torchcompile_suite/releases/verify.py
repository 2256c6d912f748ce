"""Prove that locks install and import: each in an environment of its own, which is then deleted."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import ledger
from .catalogue import Release, ReleaseError

INSTALL = Path(__file__).with_name("install.py")


@dataclass(frozen=True)
class Proof:
    """How one release's lock installed: the line to show, and the seconds it took."""

    release: Release
    ok: bool
    line: str
    seconds: float


def verify(releases: Sequence[Release]) -> Iterator[Proof]:
    """Install and import each release, one after the other.

    Each takes about 5 GB where uv's cache is on another file system than ``.asv``, and links where
    not. Raises ``ReleaseError`` where not even an empty environment can be made.
    """
    for release in releases:
        started = time.monotonic()
        ok, line = _prove(release)
        yield Proof(release, ok, line, time.monotonic() - started)


def _prove(release: Release) -> tuple[bool, str]:
    # Where ASV keeps its environments uv links rather than copies, as it will for ASV.
    place = Path(".asv") if Path(".asv").is_dir() else None
    try:
        with tempfile.TemporaryDirectory(
            prefix="verify-", dir=place, ignore_cleanup_errors=True
        ) as scratch:
            return _install_and_look(release, Path(scratch).absolute())
    except OSError as error:
        raise ReleaseError(
            f"cannot verify in {place or 'the temporary folder'}: {error}"
        ) from error


def _install_and_look(release: Release, folder: Path) -> tuple[bool, str]:
    checkout = folder / "checkout"
    checkout.mkdir()
    (checkout / ledger.RELEASE_FILE).write_bytes(ledger.release_file(release))
    (checkout / ledger.LOCK_FILE).write_bytes(ledger.lock_file(release))
    python = _environment(release, folder / "env")
    done = _run([str(python), str(INSTALL), str(checkout)])
    if done.returncode:
        return False, " ".join(done.stderr.split())
    git_version = read_git_version(folder / "env")
    if release.git_version not in (None, git_version):
        return False, (
            f"torch.version.git_version is {git_version} and releases.toml says "
            f"{release.git_version}; one of the two is of another build"
        )
    return True, f"{done.stdout.strip()}, git_version {git_version}"


def _environment(release: Release, folder: Path) -> Path:
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
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def read_git_version(environment: Path) -> str | None:
    """The upstream commit of the torch in an environment, read without importing it."""
    for file in environment.glob("[Ll]ib/**/site-packages/torch/version.py"):
        match = re.search(r"^git_version = '([0-9a-f]{40})'", file.read_text("utf-8"), re.MULTILINE)
        return match[1] if match else None
    return None


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )

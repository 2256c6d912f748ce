"""Prove that locks install and import: each in an environment of its own, which is then deleted."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import environments
from .catalogue import Release, ReleaseError


@dataclass(frozen=True)
class Proof:
    """How one release's lock installed: the line to show, the seconds it took, and the upstream
    commit of what was installed.
    """

    release: Release
    ok: bool
    line: str
    seconds: float
    git_version: str | None = None


def verify(releases: Sequence[Release]) -> Iterator[Proof]:
    """Install and import each release, one after the other.

    Each takes about 5 GB where uv's cache is on another file system than ``.asv``, and links where
    not. Raises ``ReleaseError`` where not even an empty environment can be made.
    """
    return map(prove, releases)


def prove(release: Release) -> Proof:
    """Install and import one release. See `verify`."""
    started = time.monotonic()
    # Where ASV keeps its environments uv links rather than copies, as it will for ASV.
    place = Path(".asv") if Path(".asv").is_dir() else None
    try:
        with tempfile.TemporaryDirectory(
            prefix="verify-", dir=place, ignore_cleanup_errors=True
        ) as scratch:
            ok, line, found = _install_and_look(release, Path(scratch).absolute() / "env")
    except OSError as error:
        raise ReleaseError(
            f"cannot verify in {place or 'the temporary folder'}: {error}"
        ) from error
    return Proof(release, ok, line, time.monotonic() - started, found)


def _install_and_look(release: Release, folder: Path) -> tuple[bool, str, str | None]:
    try:
        _, said = environments.install(release, folder)
    except environments.InstallError as error:
        return False, str(error), None
    git_version = read_git_version(folder)
    if release.git_version not in (None, git_version):
        why = (
            f"torch.version.git_version is {git_version} and releases.toml says "
            f"{release.git_version}; one of the two is of another build"
        )
        return False, why, git_version
    return True, f"{said}, git_version {git_version}", git_version


def read_git_version(environment: Path) -> str | None:
    """The upstream commit of the torch in an environment, read without importing it."""
    for file in environment.glob("[Ll]ib/**/site-packages/torch/version.py"):
        match = re.search(r"^git_version = '([0-9a-f]{40})'", file.read_text("utf-8"), re.MULTILINE)
        return match[1] if match else None
    return None

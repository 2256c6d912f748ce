"""Prove that locks and extras install and import, each in a temporary environment."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import SuiteError
from . import environments
from .catalogue import Release


@dataclass(frozen=True)
class Proof:
    """The result of installing one release's lock.

    ``line`` is the text to show, ``seconds`` the duration, ``git_version`` the upstream commit of
    the torch that was installed.
    """

    release: Release
    ok: bool
    line: str
    seconds: float
    git_version: str | None = None


def verify(releases: Sequence[Release]) -> Iterator[Proof]:
    """Install and import each release, one after the other.

    A release takes about 5 GB of disk if uv's cache is on another file system than the folder of
    environments; otherwise uv links the files. Raises ``SuiteError`` if not even an empty
    environment can be made.
    """
    return map(prove, releases)


def prove(release: Release) -> Proof:
    """Install and import one release. See `verify`."""
    started = time.monotonic()
    # uv links files here under the same conditions as for the environments that stay.
    place = environments.root()
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix="verify-", dir=place, ignore_cleanup_errors=True
        ) as scratch:
            ok, line, git_version = _install(release, Path(scratch).absolute() / "env")
    except OSError as error:
        raise SuiteError(f"cannot verify in {place}: {error}") from error
    return Proof(release, ok, line, time.monotonic() - started, git_version)


def _install(release: Release, folder: Path) -> tuple[bool, str, str | None]:
    """Whether the lock installs and imports, the line to show, and the upstream commit."""
    try:
        _, versions = environments.install(release, folder)
    except environments.LockError as error:
        return False, str(error), None
    git_version = read_git_version(folder)
    if release.git_version not in (None, git_version):
        reason = (
            f"torch.version.git_version is {git_version}, but releases.toml says "
            f"{release.git_version}; one of the two belongs to another build"
        )
        return False, reason, git_version
    return True, f"{versions}, git_version {git_version}", git_version


def read_git_version(environment: Path) -> str | None:
    """The upstream commit of the torch in an environment. Torch is not imported."""
    for file in environment.glob("[Ll]ib/**/site-packages/torch/version.py"):
        match = re.search(r"^git_version = '([0-9a-f]{40})'", file.read_text("utf-8"), re.MULTILINE)
        return match[1] if match else None
    return None

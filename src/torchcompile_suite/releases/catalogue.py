"""The PyTorch releases that can be compared, as ``releases.toml`` lists them.

The file is append-only: its order is the order of the commits in the release ledger, and a commit
never changes once results refer to it.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
from packaging.version import InvalidVersion, Version

from ..errors import SuiteError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CATALOGUE = Path(__file__).with_name("releases.toml")
LOCKS = Path(__file__).with_name("locks")

# The suite itself needs this Python, so a release's older wheels cannot be measured.
OLDEST_PYTHON = (3, 10)

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?", re.ASCII)


class ReleaseError(SuiteError):
    """What is wrong with a release, its lock or the ledger: one line, fault and remedy."""


class Release(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One final PyTorch release.

    ``date`` is the upload time of its first wheel (UTC), ``pythons`` the CPython versions that have
    a Linux x86-64 wheel, ``git_version`` the upstream commit, where it was read from a wheel.
    """

    version: Annotated[str, msgspec.Meta(pattern=r"^\d+\.\d+\.\d+$")]
    date: Annotated[datetime, msgspec.Meta(tz=True)]
    pythons: Annotated[
        tuple[Annotated[str, msgspec.Meta(pattern=r"^3\.\d+$")], ...], msgspec.Meta(min_length=1)
    ]
    git_version: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{40}$")] | None = None

    @property
    def key(self) -> tuple[int, int, int]:
        """Sorts releases by version number."""
        major, minor, patch = self.version.split(".")
        return int(major), int(minor), int(patch)

    @property
    def minor(self) -> str:
        """The version without its patch number, such as ``2.4``."""
        return self.version.rpartition(".")[0]

    @property
    def tag(self) -> str:
        """The release's own tag in the ledger, such as ``v2.4.1``."""
        return f"v{self.version}"

    @property
    def usable_pythons(self) -> tuple[str, ...]:
        """Those of ``pythons`` on which the suite runs, oldest first."""
        usable = (p for p in self.pythons if _python(p) >= OLDEST_PYTHON)
        return tuple(sorted(usable, key=_python))

    @property
    def lock(self) -> Path:
        """Where the release's lock is; the file may be missing."""
        return LOCKS / f"{self.version}.txt"

    def supports(self, python: str) -> bool:
        """Whether the release can be measured on CPython ``python``, such as ``3.11``."""
        return python in self.usable_pythons


class _File(msgspec.Struct, forbid_unknown_fields=True):
    release: tuple[Release, ...]


def _python(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


@functools.cache
def read(path: Path = CATALOGUE) -> tuple[Release, ...]:
    """All releases in ledger order.

    Raises ``ReleaseError`` where the file is missing, is no TOML, or breaks a rule.
    """
    try:
        with path.open("rb") as file:
            releases = msgspec.convert(tomllib.load(file), _File).release
    except OSError as error:
        raise ReleaseError(f"cannot read {path}: {error.strerror}; reinstall the suite") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ReleaseError(
            f"{path} is not valid: {error}; restore it from version control"
        ) from error
    seen: set[str] = set()
    for release in releases:
        if release.version in seen:
            raise ReleaseError(f"{path} lists {release.version} twice; delete the later entry")
        if not release.usable_pythons:
            raise ReleaseError(f"{path}: {release.version} has no Python from 3.10 on; delete it")
        seen.add(release.version)
    return releases


def newest_patch(minor: str, releases: Sequence[Release] | None = None) -> Release | None:
    """The newest release of a minor version such as ``2.4``; None where there is none."""
    releases = read() if releases is None else releases
    return max((r for r in releases if r.minor == minor), key=lambda r: r.key, default=None)


def find(name: str, releases: Sequence[Release] | None = None) -> Release:
    """The release that ``v2.4``, ``2.4`` (its newest patch), ``v2.4.1`` or ``2.4.1`` names.

    Raises ``ReleaseError`` for anything else.
    """
    releases = read() if releases is None else releases
    match = _VERSION.fullmatch(name.strip())
    if match is None:
        raise ReleaseError(f"{name!r} is no PyTorch release; write it like v2.4 or 2.4.1")
    major, minor, patch = match.groups()
    if patch is None:
        found = newest_patch(f"{int(major)}.{int(minor)}", releases)
    else:
        wanted = (int(major), int(minor), int(patch))
        found = next((r for r in releases if r.key == wanted), None)
    if found is None:
        known = f"known are {releases[0].version} to {releases[-1].version}" if releases else "none"
        raise ReleaseError(
            f"PyTorch {name.strip().removeprefix('v')} is not in the catalogue ({known}); "
            "`torchcompile-suite releases update` looks for new ones"
        )
    return found


def supported(python: str, releases: Sequence[Release] | None = None) -> tuple[Release, ...]:
    """The releases that can be measured on CPython ``python``, such as ``3.11``."""
    releases = read() if releases is None else releases
    return tuple(r for r in releases if r.supports(python))


def is_final(version: str) -> bool:
    """Whether a version is final: no pre-release, development, post or local (+cpu) version."""
    try:
        parsed = Version(version)
    except InvalidVersion:
        return False
    return not (parsed.is_prerelease or parsed.is_postrelease or parsed.local)

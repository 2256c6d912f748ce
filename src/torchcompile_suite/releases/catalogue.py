"""The PyTorch releases and nightlies that can be compared: ``releases.toml``, ``nightlies.toml``.

The files are append-only: their order is the order of the commits in the release ledger, and a
commit never changes once results refer to it. Who has added no nightly has no ``nightlies.toml``.
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
NIGHTLIES = Path(__file__).with_name("nightlies.toml")
LOCKS = Path(__file__).with_name("locks")

# The suite itself needs this Python, so a release's older wheels cannot be measured.
OLDEST_PYTHON = (3, 10)

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+)(\.dev\d{8})?)?", re.ASCII)
NIGHTLY = re.compile(r"\d+\.\d+\.\d+\.dev(\d{8})", re.ASCII)
# Where a release stands among the nightlies that led to it.
_FINAL = 10**8


class ReleaseError(SuiteError):
    """What is wrong with a release, its lock or the ledger: one line, fault and remedy."""


class Release(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One PyTorch release, or a nightly.

    ``date`` is the upload time of its first wheel (UTC; of a nightly the day in its name),
    ``pythons`` the CPython versions that have a Linux x86-64 wheel, ``git_version`` the upstream
    commit, where it was read from a wheel. Nightlies alone have the other two: ``after`` is the
    version whose commit comes before theirs in the ledger, ``index_url`` the index they are in.
    """

    version: Annotated[str, msgspec.Meta(pattern=r"^\d+\.\d+\.\d+(\.dev\d{8})?$")]
    date: Annotated[datetime, msgspec.Meta(tz=True)]
    pythons: Annotated[
        tuple[Annotated[str, msgspec.Meta(pattern=r"^3\.\d+$")], ...], msgspec.Meta(min_length=1)
    ]
    git_version: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{40}$")] | None = None
    after: str | None = None
    index_url: str | None = None

    @property
    def key(self) -> tuple[int, int, int, int]:
        """Sorts by version number, nightlies before the release that they led to."""
        major, minor, patch, *day = self.version.replace("dev", "").split(".")
        return int(major), int(minor), int(patch), int(day[0]) if day else _FINAL

    @property
    def nightly(self) -> bool:
        """Whether it is a nightly and no release."""
        return NIGHTLY.fullmatch(self.version) is not None

    @property
    def minor(self) -> str:
        """The version without its patch number, such as ``2.4``."""
        return ".".join(self.version.split(".")[:2])

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
    release: tuple[Release, ...] = ()
    nightly: tuple[Release, ...] = ()


def _python(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


@functools.cache
def read(path: Path = CATALOGUE) -> tuple[Release, ...]:
    """All releases in ledger order, no nightlies.

    Raises ``ReleaseError`` where the file is missing, is no TOML, or breaks a rule.
    """
    releases = _read(path).release
    if not releases or any(each.nightly for each in releases):
        raise ReleaseError(
            f"{path} must list releases and nothing else; restore it from version control"
        )
    return releases


@functools.cache
def nightlies(path: Path = NIGHTLIES) -> tuple[Release, ...]:
    """All nightlies in ledger order; none where there is no such file. Raises ``ReleaseError``."""
    if not path.exists():
        return ()
    found = _read(path).nightly
    if bad := [each.version for each in found if not (each.nightly and each.after)]:
        raise ReleaseError(f"{path}: {bad[0]} is no nightly, or has no `after`; delete its entry")
    return found


def everything() -> tuple[Release, ...]:
    """All releases, then all nightlies."""
    return (*read(), *nightlies())


def forget() -> None:
    """Read the files anew: somebody has appended to them."""
    read.cache_clear()
    nightlies.cache_clear()


def _read(path: Path) -> _File:
    try:
        with path.open("rb") as file:
            found = msgspec.convert(tomllib.load(file), _File)
    except OSError as error:
        raise ReleaseError(f"cannot read {path}: {error.strerror}; reinstall the suite") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ReleaseError(
            f"{path} is not valid: {error}; restore it from version control"
        ) from error
    seen: set[str] = set()
    for release in (*found.release, *found.nightly):
        if release.version in seen:
            raise ReleaseError(f"{path} lists {release.version} twice; delete the later entry")
        if not release.usable_pythons:
            raise ReleaseError(f"{path}: {release.version} has no Python from 3.10 on; delete it")
        seen.add(release.version)
    return found


def newest_patch(minor: str, releases: Sequence[Release] | None = None) -> Release | None:
    """The newest release of a minor version such as ``2.4``; None where there is none."""
    releases = read() if releases is None else releases
    final = (each for each in releases if each.minor == minor and not each.nightly)
    return max(final, key=lambda each: each.key, default=None)


def find(name: str, releases: Sequence[Release] | None = None) -> Release:
    """The release that ``v2.4``, ``2.4`` (its newest patch), ``v2.4.1`` or ``2.4.1`` names, or the
    nightly that ``2.16.0.dev20261120`` does.

    Raises ``ReleaseError`` for anything else.
    """
    releases = everything() if releases is None else releases
    match = _VERSION.fullmatch(name.strip())
    if match is None:
        raise ReleaseError(f"{name!r} is no PyTorch release; write it like v2.4 or 2.4.1")
    major, minor, patch, day = match.groups()
    if patch is None:
        found = newest_patch(f"{int(major)}.{int(minor)}", releases)
    else:
        wanted = (int(major), int(minor), int(patch), int(day[4:]) if day else _FINAL)
        found = next((r for r in releases if r.key == wanted), None)
    if found is None:
        final = [each for each in releases if not each.nightly]
        known = f"known are {final[0].version} to {final[-1].version}" if final else "none"
        how = f"add {major}.{minor}.{patch}{day}` adds it" if day else "update` looks for new ones"
        raise ReleaseError(
            f"PyTorch {name.strip().removeprefix('v')} is not in the catalogue ({known}); "
            f"`torchcompile-suite releases {how}"
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

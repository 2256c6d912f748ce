"""The PyTorch releases and nightlies that can be compared: ``releases.toml``, ``nightlies.toml``.

Both files are append-only. Their order is the order of the commits in the release ledger, and a
commit never changes once results refer to it. ``nightlies.toml`` exists only where a user has added
a nightly.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
from packaging.version import InvalidVersion, Version

from ..errors import SuiteError

CATALOGUE = Path(__file__).with_name("releases.toml")
NIGHTLIES = Path(__file__).with_name("nightlies.toml")
LOCKS = Path(__file__).with_name("locks")

# The suite itself needs this Python, so older wheels of a release cannot be measured.
OLDEST_PYTHON = Version("3.10")

NIGHTLY = re.compile(r"\d+\.\d+\.\d+\.dev(\d{8})", re.ASCII)


class UnknownRelease(SuiteError):
    """The catalogue has no such release. The message names the way to add it."""


class Release(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One PyTorch release, or a nightly.

    - ``date``: upload time (UTC) of the first wheel. For a nightly: the day in its name.
    - ``pythons``: the CPython versions that have a Linux x86-64 wheel.
    - ``git_version``: the upstream commit, if it was read from a wheel.
    - ``after`` (nightlies only): the version whose commit is the parent in the ledger.
    - ``index_url`` (nightlies only): the package index that has the nightly.
    """

    version: Annotated[str, msgspec.Meta(pattern=r"^\d+\.\d+\.\d+(\.dev\d{8})?\Z")]
    date: Annotated[datetime, msgspec.Meta(tz=True)]
    pythons: Annotated[
        tuple[Annotated[str, msgspec.Meta(pattern=r"^3\.\d+\Z")], ...], msgspec.Meta(min_length=1)
    ]
    git_version: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{40}\Z")] | None = None
    after: str | None = None
    index_url: str | None = None

    @property
    def key(self) -> Version:
        """Sorts by version number. Nightlies come before the release that they led to."""
        return Version(self.version)

    @property
    def nightly(self) -> bool:
        """Whether this is a nightly, not a release."""
        return self.key.is_devrelease

    @property
    def minor(self) -> str:
        """The version without its patch number, such as ``2.4``."""
        return minor(self.version)

    @property
    def tag(self) -> str:
        """The release's own tag in the ledger, such as ``v2.4.1``."""
        return f"v{self.version}"

    @property
    def usable_pythons(self) -> tuple[str, ...]:
        """The versions in ``pythons`` on which the suite runs, oldest first."""
        return tuple(
            str(python) for python in sorted(map(Version, self.pythons)) if python >= OLDEST_PYTHON
        )

    @property
    def lock(self) -> Path:
        """Path of the release's lock. The file may be missing."""
        return LOCKS / f"{self.version}.txt"

    def supports(self, python: str) -> bool:
        """Whether the release can be measured on CPython ``python``, such as ``3.11``."""
        return python in self.usable_pythons


def minor(version: str) -> str:
    """The minor release of any version of torch: ``2.15`` of ``2.15.0+cpu``."""
    parsed = Version(version)
    return f"{parsed.major}.{parsed.minor}"


class _File(msgspec.Struct, forbid_unknown_fields=True):
    release: tuple[Release, ...] = ()
    nightly: tuple[Release, ...] = ()


@functools.cache
def read(path: Path = CATALOGUE) -> tuple[Release, ...]:
    """All releases in ledger order, without nightlies.

    Raises ``SuiteError`` if the file is missing, is not TOML, or breaks a rule.
    """
    releases = _read(path).release
    if not releases or any(release.nightly for release in releases):
        raise SuiteError(
            f"{path} must list releases and nothing else; restore it from version control"
        )
    return releases


@functools.cache
def nightlies(path: Path = NIGHTLIES) -> tuple[Release, ...]:
    """All nightlies in ledger order. Empty if the file does not exist. Raises ``SuiteError``."""
    if not path.exists():
        return ()
    listed = _read(path).nightly
    for release in listed:
        if not release.nightly:
            raise SuiteError(f"{path}: {release.version} is not a nightly; delete its entry")
        if not release.after:
            raise SuiteError(f"{path}: {release.version} has no `after`; delete its entry")
    return listed


def newest() -> Release:
    """The newest release. A patch of an older one may be uploaded after it."""
    return max(read(), key=lambda release: release.key)


def everything() -> tuple[Release, ...]:
    """All releases, then all nightlies."""
    return (*read(), *nightlies())


def forget() -> None:
    """Drop the cached contents: the next call reads the files again."""
    read.cache_clear()
    nightlies.cache_clear()


def _read(path: Path) -> _File:
    try:
        content = msgspec.toml.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise SuiteError(f"cannot read {path}: {error.strerror}; reinstall the suite") from error
    except (UnicodeDecodeError, msgspec.DecodeError) as error:
        raise SuiteError(
            f"{path} is not valid: {error}; restore it from version control"
        ) from error
    seen: set[str] = set()
    for release in (*content.release, *content.nightly):
        if release.version in seen:
            raise SuiteError(f"{path} lists {release.version} twice; delete the later entry")
        if not release.usable_pythons:
            raise SuiteError(
                f"{path}: {release.version} has no Python {OLDEST_PYTHON} or newer; "
                "delete its entry"
            )
        seen.add(release.version)
    return content


def newest_patch(minor: str, releases: Sequence[Release] | None = None) -> Release | None:
    """The newest release of a minor version such as ``2.4``. None if there is none."""
    releases = read() if releases is None else releases
    final = (release for release in releases if release.minor == minor and not release.nightly)
    return max(final, key=lambda release: release.key, default=None)


def find(name: str, releases: Sequence[Release] | None = None) -> Release:
    """The release or nightly with that name.

    ``v2.4.1`` and ``2.4.1`` name a release, ``v2.4`` and ``2.4`` its newest patch, and
    ``2.16.0.dev20261120`` a nightly. Raises ``UnknownRelease`` for anything else.
    """
    releases = everything() if releases is None else releases
    wanted = _parse(name)
    if len(wanted.release) == 2:
        match = newest_patch(str(wanted), releases)
    else:
        match = next((release for release in releases if release.key == wanted), None)
    if match is None:
        # A late patch of an older minor release may be the last one.
        final = sorted(release.key for release in releases if not release.nightly)
        known = f"{final[0]} to {final[-1]}" if final else "none"
        remedy = (
            f"`torchcompile-suite releases add {wanted}` adds it"
            if wanted.is_devrelease
            else "`torchcompile-suite releases update` looks for new releases"
        )
        raise UnknownRelease(f"PyTorch {wanted} is not in the catalogue (known: {known}); {remedy}")
    return match


def _parse(name: str) -> Version:
    """The version that ``name`` stands for: two or three numbers, or a nightly's full version."""
    with suppress(InvalidVersion):
        version = Version(name)
        if NIGHTLY.fullmatch(str(version)) or (is_final(name) and len(version.release) in (2, 3)):
            return version
    raise UnknownRelease(f"{name!r} is not a PyTorch release; write it like v2.4 or 2.4.1")


def is_final(version: str) -> bool:
    """Whether a version is final: no pre-release, development, post or local (+cpu) version."""
    try:
        parsed = Version(version)
    except InvalidVersion:
        return False
    return not (parsed.is_prerelease or parsed.is_postrelease or parsed.local)

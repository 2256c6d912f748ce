"""Add nightlies to the ledger: ``torchcompile-suite releases add 2.16.0.dev20261120``.

The commit of a nightly holds the URL of its index beside the lock, because no other index has the
nightly. An index keeps a nightly for some months only, so results outlive the builds they measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from pypi_simple import DistributionPackage

from ..errors import SuiteError
from . import catalogue, environments, index, locking
from .catalogue import LOCKS, NIGHTLIES, NIGHTLY, Release


def add(
    versions: Sequence[str],
    url: str | None,
    file: Path = NIGHTLIES,
    locks: Path = LOCKS,
    prove: Callable[[Release], environments.Proof] = environments.verify,
) -> tuple[Release, ...]:
    """Append the named nightlies, oldest first, each with its lock and upstream commit.

    ``url`` is an index beside the configured one; None if the configured index has the nightlies.
    ``prove`` installs a nightly in a temporary environment, and reads its upstream commit there.
    Raises ``SuiteError`` for the first nightly that cannot be added; the ones before it stay.
    """
    wanted = _in_order(versions)
    if url and urlsplit(url).username:
        raise SuiteError(
            "the URL of the index becomes part of the ledger, so it must not hold a name or "
            "password; put them into a .netrc file"
        )
    offered = index.packages(url or index.index_url())
    added = []
    for version in wanted:
        known = catalogue.nightlies(file)
        release = _release(version, url, known, offered)
        locking.write(release, locking.resolve(release, locks), locks, published=False)
        try:
            proof = prove(release)
            if not proof.ok:
                raise SuiteError(f"{version} does not install: {proof.line}")
            release = msgspec.structs.replace(release, git_version=proof.git_version)
            index.append(file, "nightly", release)
        except BaseException:
            (locks / f"{release.version}.txt").unlink(missing_ok=True)
            raise
        added.append(release)
    return tuple(added)


def _in_order(versions: Sequence[str]) -> list[str]:
    """The versions without duplicates, ordered by their day."""
    unique = dict.fromkeys(version.strip().removeprefix("v") for version in versions)
    for version in unique:
        if not NIGHTLY.fullmatch(version):
            raise SuiteError(
                f"{version!r} is not a nightly; write it like 2.16.0.dev20261120 "
                "(`releases update` finds releases)"
            )
    return sorted(unique, key=_day)


def _day(version: str) -> str:
    """The day in a nightly's version, such as ``20261120``."""
    return version.rpartition(".dev")[2]


def _release(
    version: str, url: str | None, known: Sequence[Release], offered: Sequence[DistributionPackage]
) -> Release:
    if any(release.version == version for release in known):
        raise SuiteError(f"{version} was added before")
    try:
        date = datetime.strptime(_day(version), "%Y%m%d").replace(tzinfo=timezone.utc)
    except ValueError:
        raise SuiteError(f"{version} names no day; write it like 2.16.0.dev20261120") from None
    if known and known[-1].date >= date:
        raise SuiteError(
            f"{known[-1].version} was added before, and commits of the ledger never change: add "
            "nightlies oldest first; to search between two of them: torchcompile-suite bisect"
        )
    released = [release for release in catalogue.read() if release.date <= date]
    if not released:
        raise SuiteError(f"{version} is older than PyTorch {catalogue.read()[0].version}")
    pythons = set().union(
        *(
            index.linux_pythons(package)
            for package in offered
            if package.package_type == "wheel"
            and (package.version or "").partition("+")[0] == version
        )
    )
    release = Release(
        version,
        date,
        tuple(map(str, sorted(pythons))),
        after=known[-1].version if known else released[-1].version,
        index_url=url,
    )
    if not release.usable_pythons:
        raise SuiteError(
            f"the index has no Linux x86-64 wheel of torch {version} for CPython "
            f"{catalogue.OLDEST_PYTHON} or newer; an index keeps nightlies for some months only; "
            "name another index with --index-url"
        )
    return release

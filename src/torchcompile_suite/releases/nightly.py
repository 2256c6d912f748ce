"""Add nightlies to the ledger: ``torchcompile-suite releases add 2.16.0.dev20261120``.

A nightly's commit holds its index's URL beside the lock, for no other index has it; and an index
keeps a nightly for some months only, so results outlive what they were measured with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from pypi_simple import DistributionPackage

from . import catalogue, index, locking, verify
from .catalogue import LOCKS, NIGHTLIES, NIGHTLY, Release, ReleaseError


def add(
    versions: Sequence[str],
    url: str | None,
    file: Path = NIGHTLIES,
    locks: Path = LOCKS,
    prove: Callable[[Release], verify.Proof] = verify.prove,
) -> tuple[Release, ...]:
    """Append the named nightlies, oldest first, each with its lock and upstream commit.

    ``url`` is the index that has them, beside the configured one; None if that has them itself.
    ``prove`` installs each once in a temporary environment, which tells the upstream commit too.
    Raises ``ReleaseError`` for the first that cannot be added; those before it stay.
    """
    wanted = _in_order(versions)
    if url and urlsplit(url).username:
        raise ReleaseError(
            "the index's URL becomes part of the ledger, so it must not hold a name or password; "
            "put them into a .netrc file"
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
                raise ReleaseError(f"{version} does not install: {proof.line}")
            release = msgspec.structs.replace(release, git_version=proof.git_version)
            index.append(file, "nightly", release)
        except BaseException:
            (locks / f"{release.version}.txt").unlink(missing_ok=True)
            raise
        added.append(release)
    return tuple(added)


def _in_order(versions: Sequence[str]) -> list[str]:
    plain = dict.fromkeys(each.strip().removeprefix("v") for each in versions)
    for each in plain:
        if not NIGHTLY.fullmatch(each):
            raise ReleaseError(
                f"{each!r} is no nightly; write it like 2.16.0.dev20261120 "
                "(`releases update` finds releases)"
            )
    return sorted(plain, key=lambda each: each.rpartition(".dev")[2])


def _release(
    version: str, url: str | None, known: Sequence[Release], offered: Sequence[DistributionPackage]
) -> Release:
    if any(each.version == version for each in known):
        raise ReleaseError(f"{version} was added before")
    day = NIGHTLY.fullmatch(version)
    assert day is not None
    try:
        date = datetime.strptime(day[1], "%Y%m%d").replace(tzinfo=timezone.utc)
    except ValueError:
        raise ReleaseError(f"{version} names no day; write it like 2.16.0.dev20261120") from None
    if known and known[-1].date >= date:
        raise ReleaseError(
            f"{known[-1].version} was added before, and commits of the ledger never change: add "
            "nightlies oldest first; between two of them, `torchcompile-suite bisect` goes on"
        )
    released = [each for each in catalogue.read() if each.date <= date]
    if not released:
        raise ReleaseError(f"{version} is older than PyTorch {catalogue.read()[0].version}")
    pythons = set().union(
        *(
            index.linux_pythons(each)
            for each in offered
            if each.package_type == "wheel" and (each.version or "").partition("+")[0] == version
        )
    )
    names = tuple(f"{major}.{minor}" for major, minor in sorted(pythons))
    release = Release(
        version,
        date,
        names,
        after=known[-1].version if known else released[-1].version,
        index_url=url,
    )
    if not release.usable_pythons:
        raise ReleaseError(
            f"the index has no Linux x86-64 wheel of torch {version} for a CPython from 3.10 on; "
            "nightlies are kept for some months only; name the index with --index-url"
        )
    return release

"""Find PyTorch releases and nightlies in a package index, and append them to the catalogue.

The index is the one that uv or pip use, for a nightly another one beside it. An existing entry
never changes: its commit is public. The commit of a nightly holds the URL of its index beside the
lock, because no other index has the nightly. An index keeps a nightly for some months only, so
results outlive the builds they measured.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from msgspec.structs import replace
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version
from pypi_simple import (
    ACCEPT_JSON_PREFERRED,
    PYPI_SIMPLE_ENDPOINT,
    DistributionPackage,
    PyPISimple,
)

from ..errors import SuiteError
from ..host import programs
from ..host.files import held, write_or_say
from ..host.places import cache_folder
from . import catalogue, locking
from .catalogue import CATALOGUE, LOCKS, NIGHTLIES, NIGHTLY, Release
from .environments import Proof, verify

OLDEST = Version("2.4.0")

_TIMEOUT_S = 30.0
# Wheels of a release come one after the other, and torchvision's later. What is known of a release
# is part of its commit, for ever.
_SETTLED = timedelta(days=2)


def update(
    file: Path = CATALOGUE,
    locks: Path = LOCKS,
    prove: Callable[[Release], Proof] = verify,
    say: Callable[[str], object] = lambda _: None,
    added: Callable[[Release], object] = lambda _: None,
) -> tuple[Release, ...]:
    """Append all new final releases to the catalogue, each with its lock; return them.

    ``prove``, ``added``: see `add_nightlies`. ``say`` gets a line for each release that has to
    wait. Raises ``SuiteError`` if the index cannot be read or a lock cannot be made or installed;
    releases that were appended before the error stay.
    """
    known = {release.version for release in catalogue.read(file)}
    new = find_new(known, index_url(), say)
    return tuple(
        _publish(partial(replace, release), "release", file, locks, prove, added) for release in new
    )


def _publish(
    make: Callable[[], Release],
    kind: str,
    file: Path,
    locks: Path,
    prove: Callable[[Release], Proof],
    added: Callable[[Release], object],
) -> Release:
    """Append a release with its lock and its upstream commit, once the lock is proven.

    ``make`` is called when no other command adds one. ``added``: see `add_nightlies`.

    The lock is written before the entry. So a kill can leave a lock without an entry, which the
    next call writes again, but never an entry without a lock. Raises SuiteError.
    """
    # Beside a file of the package nothing else may lie.
    busy = "another command adds releases; wait for it"
    with held(cache_folder() / f"{file.stem}.lock", busy, wait_s=_TIMEOUT_S):
        catalogue.forget()
        release = make()
        named = f"version = {json.dumps(release.version)}\n"
        if file.exists() and named in file.read_text("utf-8"):
            raise SuiteError(
                f"{file.name} has {release.version} by now: another command has added it"
            )
        locking.write(release, locking.resolve(release, locks), locks, published=False)
        try:
            proof = prove(release)
            if not proof.ok:
                raise SuiteError(f"{release.version} does not install: {proof.line}")
            release = replace(release, git_version=proof.git_version)
            append(file, kind, release)
        except BaseException:
            (locks / f"{release.version}.txt").unlink(missing_ok=True)
            raise
    added(release)
    return release


def index_url() -> str:
    """URL of the simple index that uv or pip are configured for.

    uv's own configuration file is not read; set UV_DEFAULT_INDEX instead.
    """
    for variable in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        if value := os.environ.get(variable, "").strip():
            name, equals, url = value.partition("=")  # uv's form NAME=URL
            return url if equals and "/" not in name else value
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    return programs.run(command).stdout.strip() or PYPI_SIMPLE_ENDPOINT


def find_new(
    known: Collection[str], url: str, say: Callable[[str], object] = lambda _: None
) -> tuple[Release, ...]:
    """The final releases from 2.4 on in the index at ``url`` that are not ``known``, oldest first.

    Final means: no pre-release, no local version (+cpu), not yanked. ``say`` gets a line for each
    that is not complete yet. Raises ``SuiteError``.
    """
    wheels: dict[str, list[DistributionPackage]] = {}
    for package in packages(url):
        version = package.version or ""
        wanted = (
            package.package_type == "wheel"
            and not package.is_yanked
            and catalogue.is_final(version)
            and Version(version) >= OLDEST
            and _three_numbers(version) not in known
        )
        if wanted:
            wheels.setdefault(_three_numbers(version), []).append(package)
    releases = (_release(version, packages, say) for version, packages in wheels.items())
    return tuple(sorted(filter(None, releases), key=lambda release: (release.date, release.key)))


def packages(url: str) -> Sequence[DistributionPackage]:
    """All files of torch in the index at ``url``. Raises ``SuiteError``."""
    try:
        with PyPISimple(url, accept=ACCEPT_JSON_PREFERRED) as client:
            return client.get_project_page("torch", timeout=_TIMEOUT_S).packages
    except OSError as error:  # the base class of the exceptions of requests
        response = getattr(error, "response", None)
        reason = "no connection" if response is None else f"HTTP status {response.status_code}"
        raise SuiteError(_unreadable(url, reason)) from error
    except Exception as error:  # pypi-simple's own exceptions: no such project, unknown format
        reason = str(error).replace(url, "the index").splitlines()[0] if str(error) else repr(error)
        raise SuiteError(_unreadable(url, reason)) from error


def _unreadable(url: str, reason: str) -> str:
    parts = urlsplit(url)
    shown = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))  # no password
    return (
        f"cannot read the releases of torch from {shown}: {reason}; "
        "check the network, or name another index in UV_DEFAULT_INDEX"
    )


def _release(
    version: str, packages: Sequence[DistributionPackage], say: Callable[[str], object]
) -> Release | None:
    """The release; None if it has to wait."""
    pythons = sorted(set().union(*map(linux_pythons, packages)))
    if not pythons or pythons[-1] < catalogue.OLDEST_PYTHON:
        say(
            f"PyTorch {version} is left out: it has no Linux x86-64 wheel for CPython "
            f"{catalogue.OLDEST_PYTHON} or newer"
        )
        return None
    times = [package.upload_time for package in packages]
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        raise SuiteError(
            f"the index does not say when PyTorch {version} was uploaded, and that is the date of "
            "its commit; name another index in UV_DEFAULT_INDEX"
        )
    if datetime.now(timezone.utc) - max(known) < _SETTLED:
        say(
            f"PyTorch {version} has to wait: its last wheel is younger than {_SETTLED.days} days, "
            "and others may follow"
        )
        return None
    date = min(known).astimezone(timezone.utc).replace(microsecond=0)
    return Release(version, date, tuple(map(str, pythons)))


def linux_pythons(package: DistributionPackage) -> set[Version]:
    """The CPython versions of a Linux x86-64 wheel, such as 3.11. Empty for any other file."""
    try:
        tags = parse_wheel_filename(package.filename)[3]
    except InvalidWheelFilename:
        return set()
    # abi == interpreter leaves out the free-threaded builds (cp313t).
    interpreters = {
        tag.interpreter
        for tag in tags
        if "linux" in tag.platform and "x86_64" in tag.platform and tag.abi == tag.interpreter
    }
    return {Version(f"{name[2]}.{name[3:]}") for name in interpreters if name.startswith("cp")}


def _three_numbers(version: str) -> str:
    return ".".join(str(number) for number in (*Version(version).release, 0, 0)[:3])


def append(file: Path, kind: str, release: Release) -> None:
    """Append a release to the file's array of tables ``kind`` (release or nightly), atomically."""
    # As text: the comments of the file stay as they are.
    text = f"{file.read_text('utf-8').rstrip()}\n\n" if file.exists() else ""
    text += f"[[{kind}]]\nversion = {json.dumps(release.version)}\n"
    text += f"date = {release.date:%Y-%m-%dT%H:%M:%SZ}\n"
    for name in ("pythons", "git_version", "after", "index_url"):
        if value := getattr(release, name):
            text += f"{name} = {json.dumps(value, ensure_ascii=False)}\n"
    write_or_say(file, text.encode())
    catalogue.forget()


def add_nightlies(
    versions: Sequence[str],
    url: str | None,
    file: Path = NIGHTLIES,
    locks: Path = LOCKS,
    prove: Callable[[Release], Proof] = verify,
    added: Callable[[Release], object] = lambda _: None,
) -> tuple[Release, ...]:
    """Append the named nightlies, oldest first, each with its lock and upstream commit.

    ``url`` is an index beside the configured one; None if the configured index has the nightlies.
    ``prove`` installs a nightly in a temporary environment, and reads its upstream commit there.
    ``added`` gets each one as soon as it is appended.
    Raises ``SuiteError`` for the first nightly that cannot be added; the ones before it stay.
    """
    wanted = _in_order(versions)
    if url and urlsplit(url).username:
        raise SuiteError(
            "the URL of the index becomes part of the ledger, so it must not hold a name or "
            "password; put them into a .netrc file"
        )
    offered = packages(url or index_url())
    return tuple(
        _publish(
            partial(_nightly, version, url, file, offered), "nightly", file, locks, prove, added
        )
        for version in wanted
    )


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


def _nightly(
    version: str, url: str | None, file: Path, offered: Sequence[DistributionPackage]
) -> Release:
    known = catalogue.nightlies(file)
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
            linux_pythons(package)
            for package in offered
            if (package.version or "").partition("+")[0] == version
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

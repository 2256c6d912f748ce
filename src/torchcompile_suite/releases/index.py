"""Find new PyTorch releases in the configured package index, and append them to the catalogue.

The index is the one that uv or pip use. An existing entry is never touched: its commit is public.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import tomlkit
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version
from pypi_simple import (
    ACCEPT_JSON_PREFERRED,
    PYPI_SIMPLE_ENDPOINT,
    DistributionPackage,
    PyPISimple,
)

from . import catalogue, locking
from .catalogue import CATALOGUE, LOCKS, Release, ReleaseError

OLDEST = Version("2.4.0")

_TIMEOUT_S = 30.0


def update(file: Path = CATALOGUE, locks: Path = LOCKS) -> tuple[Release, ...]:
    """Append all new final releases to the catalogue, each with its lock; return them.

    The lock goes first, so that a killed update leaves a lock without an entry, which the next
    update writes anew, and never an entry without a lock. Raises ``ReleaseError`` where the index
    cannot be read or a lock not be made; releases appended before that stay.
    """
    known = catalogue.read(file)
    new = find_new({release.version for release in known}, index_url())
    for release in new:
        locking.write(release, locking.resolve(release, locks), locks, published=False)
        append(file, "release", release)
    return new


def index_url() -> str:
    """The simple index that uv or pip are configured for.

    An index named in uv's own configuration file is not seen; set UV_DEFAULT_INDEX instead.
    """
    for variable in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        if value := os.environ.get(variable, "").strip():
            name, equals, url = value.partition("=")  # uv's form NAME=URL
            return url if equals and "/" not in name else value
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    return asked.stdout.strip() or PYPI_SIMPLE_ENDPOINT


def find_new(known: Collection[str], url: str) -> tuple[Release, ...]:
    """The final releases from 2.4 on in the index at ``url`` that are not ``known``, oldest first.

    Final means no pre-release, no local version (+cpu), and not yanked. Raises ``ReleaseError``.
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
    found = (_release(version, packages) for version, packages in wheels.items())
    return tuple(sorted(found, key=lambda release: (release.date, release.key)))


def packages(url: str) -> Sequence[DistributionPackage]:
    """All files of torch in the index at ``url``. Raises ``ReleaseError``."""
    try:
        with PyPISimple(url, accept=ACCEPT_JSON_PREFERRED) as client:
            return client.get_project_page("torch", timeout=_TIMEOUT_S).packages
    except OSError as error:  # the base of all that requests raises
        response = getattr(error, "response", None)
        reason = "no connection" if response is None else f"HTTP status {response.status_code}"
        raise ReleaseError(_unreadable(url, reason)) from error
    except Exception as error:  # pypi-simple's own family: no such project, unknown format, ...
        reason = str(error).replace(url, "it").splitlines()[0] if str(error) else repr(error)
        raise ReleaseError(_unreadable(url, reason)) from error


def _unreadable(url: str, reason: str) -> str:
    parts = urlsplit(url)
    shown = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))  # no password
    return (
        f"cannot read the releases of torch from {shown}: {reason}; "
        "check the network, or name another index in UV_DEFAULT_INDEX"
    )


def _release(version: str, packages: Sequence[DistributionPackage]) -> Release:
    pythons = sorted(set().union(*map(linux_pythons, packages)))
    if not pythons or pythons[-1] < catalogue.OLDEST_PYTHON:
        raise ReleaseError(
            f"PyTorch {version} has no Linux x86-64 wheel for a CPython from 3.10 on; "
            "add it to releases.toml by hand, with a comment that says why"
        )
    names = tuple(f"{major}.{minor}" for major, minor in pythons)
    times = [package.upload_time for package in packages]
    complete = [time for time in times if time is not None]
    date = min(complete) if len(complete) == len(times) else _date_by_uv(version, names)
    return Release(version, date.astimezone(timezone.utc).replace(microsecond=0), names)


def linux_pythons(package: DistributionPackage) -> set[tuple[int, int]]:
    """The CPython versions that a wheel is for, of those on Linux x86-64."""
    try:
        tags = parse_wheel_filename(package.filename)[3]
    except InvalidWheelFilename:
        return set()
    # abi == interpreter leaves out the free-threaded builds (cp313t).
    found = {
        tag.interpreter
        for tag in tags
        if "linux" in tag.platform and "x86_64" in tag.platform and tag.abi == tag.interpreter
    }
    return {(int(name[2]), int(name[3:])) for name in found if name.startswith("cp")}


def _date_by_uv(version: str, pythons: Sequence[str]) -> datetime:
    """The first upload's time from uv, which gets it of indexes that tell pypi-simple none."""
    oldest = next(p for p in pythons if int(p.partition(".")[2]) >= catalogue.OLDEST_PYTHON[1])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "inputs.txt").write_text(f"torch=={version}\n", "utf-8")
        locking.run_uv(
            "pip", "compile", "inputs.txt", "--no-deps", "--universal", "--no-build",
            "--python-version", oldest, "--format", "pylock.toml", "--output-file", "pylock.toml",
            cwd=folder, purpose=f"read the upload time of PyTorch {version}",
        )  # fmt: skip
        lock = tomlkit.parse((folder / "pylock.toml").read_text("utf-8")).unwrap()
    wheels = lock["packages"][0].get("wheels", [])
    times: list[datetime] = [wheel["upload-time"] for wheel in wheels if "upload-time" in wheel]
    if not times:
        raise ReleaseError(
            f"the index does not say when PyTorch {version} was uploaded, which dates its commit; "
            "name one that does in UV_DEFAULT_INDEX"
        )
    return min(times)


def _three_numbers(version: str) -> str:
    return ".".join(str(number) for number in (*Version(version).release, 0, 0)[:3])


def append(file: Path, kind: str, release: Release) -> None:
    """Add a release's table to the array of that kind at the end of a file, all or nothing."""
    document = tomlkit.parse(file.read_text("utf-8")) if file.exists() else tomlkit.document()
    entry = tomlkit.table()
    entry["version"] = release.version
    entry["date"] = tomlkit.datetime(f"{release.date:%Y-%m-%dT%H:%M:%SZ}")
    entry["pythons"] = list(release.pythons)
    for name in ("git_version", "after", "index_url"):
        if value := getattr(release, name):
            entry[name] = value
    if kind not in document:
        document[kind] = tomlkit.aot()
    entries = document[kind]
    assert isinstance(entries, tomlkit.items.AoT)
    entries.append(entry)
    locking.replace(file, tomlkit.dumps(document))
    catalogue.forget()

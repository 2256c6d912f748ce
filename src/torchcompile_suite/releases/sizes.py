"""What releases take on the disk, known before anything is installed: ``sizes.toml``.

Neighbouring releases share packages, and uv's cache has each package once. So twelve releases take
a third less than the sum of their environments. Whether they fit decides whether a history is
measured in one group or in several.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from importlib.metadata import distributions
from pathlib import Path

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..errors import SuiteError
from ..host.files import write_atomically
from .catalogue import Release

FILE = Path(__file__).with_name("sizes.toml")
# The packages that fill a disk. All other packages of a release together are `_REST_BYTES`; so is
# nvidia-ml-py, which is a small one by a large one's name.
LARGE = re.compile(r"(torch|torchvision|triton|(nvidia|cuda)-(?!ml-py)[a-z0-9-]+)==")
# Measured: 355 to 375 MiB of packages, and up to 270 MiB of bytecode, which no release shares.
_REST_BYTES = 640 << 20
# A release with a large package that was never measured. The largest of 2.4 to 2.15 takes 7.2 GiB.
_UNKNOWN_BYTES = 8 << 30
_HEAD = """\
# MiB that a package takes when it is installed, on Linux x86-64.
# Written by: torchcompile-suite releases sizes
"""


def needed_bytes(releases: Iterable[Release]) -> int:
    """What the environments of the releases take together, with uv's cache, in bytes.

    Packages that the releases share count once. A release with a package that ``sizes.toml`` does
    not have counts as the largest release, and shares nothing.
    """
    known = read()
    shared: set[str] = set()
    needed = 0
    for release in releases:
        large = large_pins(release)
        if large <= known.keys():
            shared |= large
            needed += _REST_BYTES
        else:
            needed += _UNKNOWN_BYTES
    return needed + sum(known[pin] for pin in shared)


def read(path: Path = FILE) -> Mapping[str, int]:
    """Pin, such as ``torch==2.4.1``, -> installed bytes."""
    return {pin: mebibytes << 20 for pin, mebibytes in _table(path).items()}


def _table(path: Path) -> dict[str, int]:
    """Pin -> installed MiB; empty if there is no file."""
    return msgspec.toml.decode(path.read_bytes(), type=dict[str, int]) if path.exists() else {}


def large_pins(release: Release) -> set[str]:
    """The large packages that the release's lock installs on this platform, as pins."""
    rows = release.lock.read_text("utf-8").splitlines()
    wanted = map(Requirement, filter(LARGE.match, rows))
    return {
        f"{one.name}{one.specifier}" for one in wanted if not one.marker or one.marker.evaluate()
    }


def record(environments: Iterable[Path], path: Path) -> list[str]:
    """Write the sizes of the environments' large packages into the file. Returns the new pins.

    Sizes that the file has stay. Raises SuiteError if the file cannot be written.
    """
    before = _table(path)
    sizes = dict(before)
    for folder in environments:
        for pin, size in installed_bytes(folder).items():
            sizes.setdefault(pin, -(-size >> 20))
    text = _HEAD + "".join(f'"{pin}" = {sizes[pin]}\n' for pin in sorted(sizes))
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise SuiteError(f"cannot write {path}: {error.strerror}") from None
    return sorted(sizes.keys() - before.keys())


def installed_bytes(environment: Path) -> dict[str, int]:
    """Pin of each large package in an environment -> bytes that its own record lists."""
    places = [str(place) for place in environment.glob("[Ll]ib/**/site-packages")]
    found: dict[str, int] = {}
    for package in distributions(path=places):
        pin = f"{canonicalize_name(package.name)}=={package.version}"
        # A build with a local version, such as +cpu, is not what a lock names.
        if LARGE.match(pin) and "+" not in pin:
            rows = csv.reader((package.read_text("RECORD") or "").splitlines())
            found[pin] = sum(int(row[2]) for row in rows if row[2:] and row[2])
    return found

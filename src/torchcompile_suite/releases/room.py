"""Which releases fit on the disk side by side, and what they take: ``sizes.toml``.

Neighbouring releases share packages, and uv's cache has each package once. So twelve releases take
a quarter less than the sum of their environments. Whether they fit is known before anything is
installed, and decides whether a history is measured in one group or in several.
"""

from __future__ import annotations

import csv
import hashlib
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import distributions
from itertools import pairwise
from pathlib import Path

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..errors import SuiteError
from ..host.files import write_or_say
from . import drivers, environments
from .catalogue import Release
from .install import without_cuda
from .locking import uv

SIZES = Path(__file__).with_name("sizes.toml")
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
# Neighbouring releases are compared, so a group has two wherever it can.
LEAST = 2
# What stays free for compiled code and results.
SPARE_BYTES = 2 << 30


class _Plan(msgspec.Struct):
    """The groups that are still to be measured, and what was installed before; by version."""

    groups: list[list[str]]
    installed: list[str]


def groups(releases: Sequence[Release], python: str, wanted: str = "") -> list[list[Release]]:
    """The releases in groups whose environments fit on the disk together, in the given order.

    ``python``: the minor version of the environments. The groups are alike in size, and no release
    is in two of them: its newest measurement would take it out of the first one. So an odd release
    is alone where only two fit.

    Call `finished` after each group. An interrupted history goes on with the same
    groups: environments take room, and other groups would be measured again. Raises SuiteError if
    not even two fit, or if the groups cannot be kept.
    """
    by_version = {release.version: release for release in releases}
    plan = _plan(releases, python, wanted)
    if len(plan.groups) > 1:
        _keep(releases, python, wanted, plan)
    return [[by_version[version] for version in group] for group in plan.groups]


def fit_together(releases: Sequence[Release], python: str) -> bool:
    """Whether the environments of all releases fit on the disk side by side. Keeps nothing."""
    return _fits(_missing(releases, python))


def finished(releases: Sequence[Release], python: str, wanted: str = "") -> list[str]:
    """The first of the `groups` is measured. Makes room for the next one, if there is one.

    The environments that were there before stay. Returns what uv could not remove, in lines.
    Raises SuiteError.
    """
    plan = _plan(releases, python, wanted)
    measured = plan.groups.pop(0)
    faults = []
    if plan.groups:
        for release in releases:
            if release.version in measured and release.version not in plan.installed:
                faults.append(remove(release, python))
        _keep(releases, python, wanted, plan)
    else:
        _file(releases, python, wanted).unlink(missing_ok=True)
    return list(dict.fromkeys(filter(None, faults)))


def line(releases: Sequence[Release], python: str) -> str:
    """How many of the releases are installed, and what the others need, in one line."""
    missing = _missing(releases, python)
    text = f"{len(releases) - len(missing)} of {len(releases)} releases are installed"
    if missing:
        text += (
            f"; the others need up to {_gigabytes(needed_bytes(missing))}, and "
            f"{_gigabytes(environments.free_bytes())} are free"
        )
    return text


def remove(release: Release, python: str = "*") -> str:
    """Remove the release's environments of that Python, or of any, and its large packages from
    uv's cache.

    uv downloads a package again when another environment needs it. Environments that exist keep
    theirs. Returns why uv's cache is as it was, in one line, or the empty string.
    """
    environments.remove(release, python)
    names = sorted({pin.partition("==")[0] for pin in large_pins(release)})
    done = uv("cache", "clean", "--quiet", *names, limit_s=600)
    return f"uv could not clean its cache: {' '.join(done.stderr.split())}" * bool(done.returncode)


def _plan(releases: Sequence[Release], python: str, wanted: str) -> _Plan:
    """The plan of an unfinished history of these releases, or a new one."""
    try:
        return msgspec.json.decode(_file(releases, python, wanted).read_bytes(), type=_Plan)
    except (OSError, msgspec.DecodeError):
        missing = _missing(releases, python)
        made = _fitting(releases, missing, python)
        installed = [release.version for release in releases if release not in missing]
        return _Plan([[release.version for release in group] for group in made], installed)


def _fitting(
    releases: Sequence[Release], missing: Sequence[Release], python: str
) -> list[list[Release]]:
    """As few groups as possible, so that there is room for what each of them misses."""
    for count in range(1, math.ceil(len(releases) / LEAST) + 1):
        ends = [len(releases) * number // count for number in range(count + 1)]
        made = [list(releases[begin:end]) for begin, end in pairwise(ends)]
        if all(_fits([one for one in group if one in missing]) for group in made):
            return made
    raise SuiteError(
        f"{line(releases, python)}; two have to lie side by side: free some space, for example "
        "with torchcompile-suite releases remove"
    )


def _fits(missing: Sequence[Release]) -> bool:
    """Whether the disk has room for the environments of these releases, side by side."""
    needed = needed_bytes(missing) + SPARE_BYTES if missing else 0
    return needed <= environments.free_bytes()


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.0f} GB"


def _keep(releases: Sequence[Release], python: str, wanted: str, plan: _Plan) -> None:
    write_or_say(_file(releases, python, wanted), msgspec.json.encode(plan))


def _file(releases: Sequence[Release], python: str, wanted: str) -> Path:
    """The file with the plan."""
    key = "\0".join((python, wanted, *(release.version for release in releases)))
    return environments.root() / f"groups-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def _missing(releases: Sequence[Release], python: str) -> list[Release]:
    return [release for release in releases if not environments.holds_lock(release, python)]


def needed_bytes(releases: Iterable[Release]) -> int:
    """What the environments of the releases take together, with uv's cache, in bytes.

    Packages that the releases share count once. Builds for a CPU (``UV_TORCH_BACKEND=cpu``) come
    without those of CUDA. A release with a package that ``sizes.toml`` does not have counts as the
    largest release, and shares nothing.
    """
    known = read_sizes()
    shared: set[str] = set()
    needed = 0
    for release in releases:
        large = large_pins(release)
        if os.environ.get(drivers.BACKEND_VARIABLE) == "cpu":
            large = set(without_cuda(sorted(large)))
        if large <= known.keys():
            shared |= large
            needed += _REST_BYTES
        else:
            needed += _UNKNOWN_BYTES
    return needed + sum(known[pin] for pin in shared)


def read_sizes(path: Path = SIZES) -> Mapping[str, int]:
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


def record(folders: Iterable[Path], path: Path) -> list[str]:
    """Write the sizes of the large packages in those environments. Returns the new pins.

    Sizes that the file has stay. Raises SuiteError if the file cannot be written.
    """
    before = _table(path)
    sizes = dict(before)
    for folder in folders:
        for pin, size in installed_bytes(folder).items():
            sizes.setdefault(pin, -(-size >> 20))
    text = _HEAD + "".join(f'"{pin}" = {sizes[pin]}\n' for pin in sorted(sizes))
    write_or_say(path, text.encode())
    return sorted(sizes.keys() - before.keys())


def installed_bytes(environment: Path) -> dict[str, int]:
    """Pin of each large package in an environment -> bytes that its own record lists."""
    found: dict[str, int] = {}
    for package in distributions(path=[str(environments.packages_in(environment))]):
        pin = f"{canonicalize_name(package.name)}=={package.version}"
        # A build with a local version, such as +cpu, is not what a lock names.
        if LARGE.match(pin) and "+" not in pin:
            rows = csv.reader((package.read_text("RECORD") or "").splitlines())
            found[pin] = sum(int(row[2]) for row in rows if row[2:] and row[2])
    return found

"""Which releases fit on the disk side by side."""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from ..errors import SuiteError
from ..host.files import write_atomically
from . import environments, sizes
from .catalogue import Release

# Neighbouring releases are compared, so a group has two wherever it can.
LEAST = 2
# What stays free for compiled code and results.
SPARE_BYTES = 2 << 30


class _Plan(msgspec.Struct):
    """The groups that are still to be measured, and what was installed before; by version."""

    groups: list[list[str]]
    installed: list[str]


def groups(releases: Sequence[Release], python: str) -> list[list[Release]]:
    """The releases in groups whose environments fit on the disk together, in the given order.

    ``python``: the minor version of the environments. The groups are alike in size, and no release
    is in two of them: its newest measurement would take it out of the first one. So an odd release
    is alone where only two fit.

    Call `finished` after each group. An interrupted history goes on with the same
    groups: environments take room, and other groups would be measured again. Raises SuiteError if
    not even two fit, or if the groups cannot be kept.
    """
    by_version = {release.version: release for release in releases}
    plan = _plan(releases, python)
    if len(plan.groups) > 1:
        _keep(releases, python, plan)
    return [[by_version[version] for version in group] for group in plan.groups]


def fit_together(releases: Sequence[Release], python: str) -> bool:
    """Whether the environments of all releases fit on the disk side by side. Keeps nothing."""
    return _fits(_missing(releases, python))


def finished(releases: Sequence[Release], python: str) -> None:
    """The first of the `groups` is measured. Makes room for the next one, if there is one.

    The environments that were there before stay. Raises SuiteError.
    """
    plan = _plan(releases, python)
    measured = plan.groups.pop(0)
    if plan.groups:
        for release in releases:
            if release.version in measured and release.version not in plan.installed:
                remove(release)
        _keep(releases, python, plan)
    else:
        _file(releases, python).unlink(missing_ok=True)


def line(releases: Sequence[Release], python: str) -> str:
    """How many of the releases are installed, and what the others need, in one line."""
    missing = _missing(releases, python)
    text = f"{len(releases) - len(missing)} of {len(releases)} releases are installed"
    if missing:
        text += (
            f"; the others need up to {_gigabytes(sizes.needed_bytes(missing))}, and "
            f"{_gigabytes(environments.free_bytes())} are free"
        )
    return text


def remove(release: Release) -> None:
    """Remove the release's environments, and its large packages from uv's cache.

    uv downloads a package again when another environment needs it. Environments that exist keep
    theirs.
    """
    environments.remove(release)
    names = sorted({pin.partition("==")[0] for pin in sizes.large_pins(release)})
    subprocess.run(
        [sys.executable, "-m", "uv", "cache", "clean", "--quiet", *names],
        stdin=subprocess.DEVNULL,
        check=False,
    )


def _plan(releases: Sequence[Release], python: str) -> _Plan:
    """The plan of an unfinished history of these releases, or a new one."""
    try:
        return msgspec.json.decode(_file(releases, python).read_bytes(), type=_Plan)
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
    needed = sizes.needed_bytes(missing) + SPARE_BYTES if missing else 0
    return needed <= environments.free_bytes()


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.0f} GB"


def _keep(releases: Sequence[Release], python: str, plan: _Plan) -> None:
    file = _file(releases, python)
    try:
        write_atomically(file, msgspec.json.encode(plan))
    except OSError as error:
        raise SuiteError(f"cannot write {file}: {error.strerror}") from None


def _file(releases: Sequence[Release], python: str) -> Path:
    """The file with the plan."""
    key = "\0".join((python, *(release.version for release in releases)))
    return environments.root() / f"groups-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def _missing(releases: Sequence[Release], python: str) -> list[Release]:
    return [release for release in releases if not environments.holds_lock(release, python)]

"""Which releases fit on the disk side by side."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise

from ..errors import SuiteError
from . import environments
from .catalogue import Release
from .environments import NEEDED_BYTES

# Neighbouring releases are compared, so a group has at least two.
LEAST = 2
# The packages of a lock that fill a disk.
_LARGE = re.compile(r"(torch|torchvision|triton|(nvidia|cuda)-[a-z0-9-]+)==")


def groups(releases: Sequence[Release], python: str) -> list[list[Release]]:
    """The releases in groups whose environments fit on the disk together, in the given order.

    ``python``: the minor version of the environments. The groups are alike in size, and no release
    is in two of them: its newest measurement would take it out of the first one. So an odd release
    is alone where only two fit. Raises SuiteError if not even two fit.
    """
    missing = _missing(releases, python)
    fit = environments.free_bytes() // NEEDED_BYTES
    size = len(releases) - max(0, len(missing) - fit)
    if size < min(LEAST, len(releases)):
        raise SuiteError(
            f"{line(releases, python)}; two have to lie side by side: free some space, for example "
            "with torchcompile-suite releases remove"
        )
    count = math.ceil(len(releases) / size)
    ends = [len(releases) * number // count for number in range(count + 1)]
    return [list(releases[begin:end]) for begin, end in pairwise(ends)]


def line(releases: Sequence[Release], python: str) -> str:
    """How many of the releases are installed, and what the others need, in one line."""
    missing = _missing(releases, python)
    text = f"{len(releases) - len(missing)} of {len(releases)} releases are installed"
    if missing:
        text += (
            f"; each of the others needs up to {NEEDED_BYTES >> 30} GB, and "
            f"{environments.free_bytes() >> 30} GB are free"
        )
    return text


def remove(release: Release) -> None:
    """Remove the release's environments, and its large packages from uv's cache.

    uv downloads a package again when another environment needs it. Environments that exist keep
    theirs.
    """
    environments.remove(release)
    rows = release.lock.read_text("utf-8").splitlines()
    names = sorted({found[1] for found in map(_LARGE.match, rows) if found})
    subprocess.run(
        [sys.executable, "-m", "uv", "cache", "clean", "--quiet", *names],
        stdin=subprocess.DEVNULL,
        check=False,
    )


def _missing(releases: Sequence[Release], python: str) -> list[Release]:
    return [release for release in releases if not environments.is_ready(release, python)]

"""Packages that the environment of a release has beside its lock: ``extras.toml``.

A measuring process reads them, too, so this module needs only what every environment has.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import msgspec

FILE = Path(__file__).with_name("extras.toml")
# In place of a release: all of them.
EVERY = "*"


@functools.cache
def read() -> Mapping[str, Mapping[str, str]]:
    """Package -> release, or `EVERY` -> version of the package."""
    return msgspec.toml.decode(FILE.read_bytes(), type=dict[str, dict[str, str]])


def of(release: str) -> dict[str, str]:
    """The packages of a release such as 2.9.1, with their versions."""
    pinned = {
        package: versions.get(release) or versions.get(EVERY)
        for package, versions in read().items()
    }
    return {package: version for package, version in pinned.items() if version}


def pins(release: str) -> list[str]:
    """The same as requirements, such as ``torchao==0.15.0``."""
    return [f"{package}=={version}" for package, version in of(release).items()]

"""The path of each page below the report. These are permalinks: a published path never changes."""

from __future__ import annotations

import hashlib
import posixpath
import re

from ..cell import Cell

OVERVIEW = "index.html"
RELEASES = "releases.html"


def slug(text: str) -> str:
    """The text as a file name. An unsafe text gets a digest, so that names stay different.

    The names of machines and releases come from result files, which are not trusted.
    """
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:120].lstrip(".-")
    if safe and safe == text:
        return safe
    return f"{safe}-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:8]}"


def payoff(machine: str, release: str, batch_size: int) -> str:
    """Does compiling pay, by model and mode, at a batch size."""
    return f"{slug(machine)}/verdict/{slug(release)}-batch{batch_size}.html"


def history(machine: str) -> str:
    """Means by release."""
    return f"{slug(machine)}/history.html"


def changes(machine: str, before: str, after: str) -> str:
    """Two releases compared."""
    return f"{slug(machine)}/changes/{slug(before)}..{slug(after)}.html"


def compiling(machine: str, release: str) -> str:
    """The cost of compiling."""
    return f"{slug(machine)}/compiling/{slug(release)}.html"


def compiler(machine: str, release: str) -> str:
    """What the compiler captured and generated."""
    return f"{slug(machine)}/compiler/{slug(release)}.html"


def claims(machine: str, release: str) -> str:
    """The claims of documents."""
    return f"{slug(machine)}/claims/{slug(release)}.html"


def trust(machine: str) -> str:
    """Noise, coverage, failures, environments."""
    return f"{slug(machine)}/trust.html"


def cell(machine: str, which: Cell) -> str:
    """One cell, in all releases."""
    return f"{slug(machine)}/cell/{slug(str(which).replace(', ', '_').replace(' ', ''))}.html"


def in_cell(machine: str, which: Cell, release: str) -> str:
    """One cell's measurement with one release."""
    return f"{cell(machine, which)}#{slug(release)}"


def relative(source: str, target: str) -> str:
    """A relative link from one page to another, which works on a host and for files."""
    path, mark, fragment = target.partition("#")
    if path == source and mark:
        return mark + fragment
    return posixpath.relpath(path, posixpath.dirname(source)) + mark + fragment

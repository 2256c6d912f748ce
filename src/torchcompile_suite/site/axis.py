"""The axis of the history: PyTorch's releases, or its commits.

A *point* of the axis is what was measured: the version of a release, or the first digits of a
commit. All else of the site is the same for both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple, TypeAlias

from .. import matrix
from ..analysis.summary import version_key
from ..cell import Cell
from ..commits.clone import Clone
from ..releases import catalogue, ledger
from ..releases.catalogue import Release, UnknownRelease
from ..results.records import COMMIT_DIGITS, Record

# As in the names of journals and segments.
_COMMIT = re.compile(r"[0-9a-f]{6,40}", re.ASCII)


class Facts(NamedTuple):
    """A point in words. ``label`` is short; ``date`` is ISO 8601, or empty if it is not known."""

    label: str
    title: str
    date: str
    note: str = ""


def label(release: str) -> str:
    """The release's tag: v2.4 for the newest patch release of 2.4, else v2.4.0."""
    minor = release.rpartition(".")[0]
    newest = catalogue.newest_patch(minor)
    return f"v{minor}" if newest is not None and newest.version == release else f"v{release}"


def _command(run: str, revision: str, cell: Cell) -> str:
    pattern = matrix.pattern(cell)
    return f'{run} {revision}^! --bench "{pattern}"' if revision and pattern is not None else ""


class Releases:
    """The releases of PyTorch, by version."""

    noun = "release"

    @cached_property
    def key(self) -> list[str]:
        """The releases and nightlies that are known."""
        return [self.noun, *(release.version for release in catalogue.everything())]

    @cached_property
    def _of_commits(self) -> dict[str, str]:
        """The version of each commit of the ledger, which is shortened as in records."""
        return {sha[:COMMIT_DIGITS]: version for version, sha in ledger.commit_of().items()}

    def point(self, record: Record) -> str:
        """The version; that of its ledger commit if no launch could name its torch."""
        return record.release or self._of_commits.get(record.commit, "")

    def order(self, points: Iterable[str]) -> list[str]:
        """By version."""
        return sorted(points, key=lambda point: (version_key(point), point))

    def facts(self, point: str) -> Facts:
        """The tag and the day of the upload; a version that is not in the catalogue has no day."""
        release = self._find(point)
        date = release.date.date().isoformat() if release else ""
        return Facts(label(point), f"PyTorch {label(point)}", date)

    def minor(self, point: str) -> str:
        """The minor release; the point itself for one that is not in the catalogue."""
        release = self._find(point)
        return release.minor if release else point

    def command(self, cell: Cell, point: str) -> str:
        """With the tag of the release."""
        release = self._find(point)
        return _command("asv run", release.tag if release else "", cell)

    def _find(self, point: str) -> Release | None:
        """The release; None for one that is not in the catalogue."""
        try:
            return catalogue.find(point)
        except UnknownRelease:
            return None


class Commits:
    """The commits of PyTorch itself, in the order of their dates."""

    noun = "commit"

    def __init__(self, clone: Clone) -> None:
        """``clone`` knows the commits."""
        self._clone = clone
        self._known: dict[str, Facts] = {}

    @cached_property
    def key(self) -> list[str]:
        """The clone as it is: a fetch can bring a commit that was not known."""
        return [self.noun, str(self._clone.path), self._clone.state()]

    def point(self, record: Record) -> str:
        """The first digits of the commit. The name of a stranger's file may have anything there."""
        return record.commit if _COMMIT.fullmatch(record.commit) else ""

    def order(self, points: Iterable[str]) -> list[str]:
        """By date. Commits that the clone does not have come first."""
        return sorted(points, key=lambda point: (self.facts(point).date, point))

    def facts(self, point: str) -> Facts:
        """The digits, the first line of the message and the date, if the clone has the commit."""
        if point not in self._known:
            date, subject = self._clone.described(point)
            self._known[point] = Facts(point, f"PyTorch commit {point}", date, subject)
        return self._known[point]

    def minor(self, point: str) -> str:
        """The point itself."""
        return point

    def command(self, cell: Cell, point: str) -> str:
        """With the configuration of the commits."""
        return _command("asv --config asv.commits.conf.json run", point, cell)


Axis: TypeAlias = Releases | Commits
"""What the points of a site are, and in which order.

- ``noun``: how one point is called.
- ``key``: what tells this axis from another one, for keys of `results.cached`.
- ``point``: the point of a record; empty if it belongs to none.
- ``order``: the points, oldest first. ``facts``: a point in words. ``minor``: equal for the patch
  releases of one minor release.
- ``command``: the command that measures a cell again; empty if there is none. It is safe in a
  shell: all names are `cell.Name`.
"""

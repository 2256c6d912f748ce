"""The repositories that ASV measures: the ledger of releases, and a clone of PyTorch.

``dvcs`` in asv.conf.json and asv.commits.conf.json names one of these classes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from asv import util
from asv.plugins.git import Git
from asv.repo import get_repo

from ..commits.clone import Clone
from ..releases import catalogue, ledger
from ..results import records
from .errors import user_errors

# How results name a commit.
_DIGITS = re.compile(rf"[0-9a-f]{{{records.COMMIT_DIGITS},40}}")


class ReleaseLedger(Git):  # type: ignore[misc]
    """The generated repository with one commit for each release of PyTorch."""

    dvcs = "torch-releases"

    def __init__(self, url: str, mirror_path: str) -> None:
        """Write the ledger at ``url`` if it is missing or old, then open it."""
        with user_errors():
            ledger.build(Path(url))
        super().__init__(url, mirror_path)


class PyTorchClone(Git):  # type: ignore[misc]
    """A clone of PyTorch. Nothing is checked out of it."""

    dvcs = "torch-commits"

    @property
    def clone(self) -> Clone:
        """The clone on disk."""
        return Clone(Path(self._path))


class Commits(NamedTuple):
    """The commits that measurements can be of.

    ``where``: in the ledger, or in the clone. ``find``: the full SHA of an abbreviated one, and its
    date as ASV has it, in milliseconds; None if there is no such commit.
    """

    where: str
    find: Callable[[str], tuple[str, int] | None]


def in_ledger() -> Commits:
    """The commits of the ledger."""
    known = {
        sha[: records.COMMIT_DIGITS]: (sha, util.datetime_to_js_timestamp(release.date))
        for sha, release in ledger.compute()[0].items()
    }
    return Commits("ledger", known.get)


def known_commits(conf: Any) -> Commits:
    """The commits of the configuration."""
    if of_releases(conf):
        return in_ledger()
    repo = get_repo(conf)

    def find(commit: str) -> tuple[str, int] | None:
        if not _DIGITS.fullmatch(commit):  # git would take a branch, too
            return None
        sha = repo.clone.first_of([commit])
        return sha and (sha, repo.get_date(sha))

    return Commits("clone", find)


def of_releases(conf: Any) -> bool:
    """Whether the configuration is about releases, and not about commits."""
    return bool(conf.dvcs == ReleaseLedger.dvcs)


def add_nightlies(conf: Any) -> None:
    """Add the branch of nightlies to the configuration; the ledger has it once one was added."""
    if of_releases(conf) and catalogue.nightlies():
        conf.branches = [ledger.BRANCH, ledger.NIGHTLY_BRANCH]

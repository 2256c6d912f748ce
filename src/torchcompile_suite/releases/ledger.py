"""The release ledger: a generated bare git repository with one commit for each PyTorch release.

ASV compares the commits of a repository, and this repository makes commits out of releases.
Nightlies, if the user has added any, follow on a branch of their own.

git itself never runs, and no git configuration is read: both could change what is written. A killed
run or a full disk leaves the old state, the new state, or something that the next `build` repairs.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import SuiteError
from . import ledger_files, ledger_objects
from .catalogue import Release
from .ledger_objects import BRANCH, NIGHTLY_BRANCH, Contents

__all__ = ["BRANCH", "NIGHTLY_BRANCH", "Ledger", "build", "compute"]

# Older leftovers belong to a killed run; the owner of a newer one may still be at work.
_ABANDONED_S = 3600.0


@dataclass(frozen=True)
class Ledger:
    """The ledger repository at ``path``.

    - ``commits``: from commit SHA to release, oldest first; the nightlies come last.
    - ``tags``: from tag (``v2.4.1``, ``v2.4``) to commit SHA.
    """

    path: Path
    commits: Mapping[str, Release]
    tags: Mapping[str, str]

    @property
    def head(self) -> str:
        """SHA of the newest release's commit, the head of the branch of releases."""
        return [sha for sha, release in self.commits.items() if not release.nightly][-1]


def build(path: Path, releases: Sequence[Release] | None = None) -> Ledger:
    """Create, refresh or repair the ledger at ``path``. Writes nothing if it is up to date.

    Branches and tags with other names do not change. Several processes may call this at once.
    Raises ``SuiteError`` if ``path`` holds something else, cannot be written or cannot be repaired,
    if a lock is missing, or if the catalogue is not valid.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100 (resolve() would follow a symlink at path)
    contents = ledger_objects.contents(releases)
    try:
        _remove_abandoned(path)
        if not path.exists() or (path.is_dir() and not any(path.iterdir())):
            _create(path, contents)
        else:
            _refresh(path, contents)
        if fault := ledger_files.first_fault(path, contents):
            raise SuiteError(
                f"{path} is damaged and could not be repaired ({fault}); delete it and run again: "
                "it is generated"
            )
    except OSError as error:
        reason = error.strerror or str(error)
        raise SuiteError(
            f"cannot write the release ledger at {path}: {reason}; "
            "free the disk or correct the permissions and run again"
        ) from error
    return Ledger(path, contents.commits, contents.tags)


def commit_of() -> dict[str, str]:
    """The ledger commit of each version of torch."""
    return {release.version: sha for sha, release in compute()[0].items()}


def compute(
    releases: Sequence[Release] | None = None,
) -> tuple[Mapping[str, Release], Mapping[str, str]]:
    """The ledger's commits (SHA to release) and tags (tag to SHA). Writes nothing."""
    contents = ledger_objects.contents(releases)
    return contents.commits, contents.tags


def _create(path: Path, contents: Contents) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # The repository is one level down, because mkdtemp() closes its folder to all other users.
    shelter = Path(tempfile.mkdtemp(prefix=f"{path.name}.new-", dir=path.parent))
    try:
        fresh = shelter / "ledger"
        ledger_files.write(fresh, contents)
        try:
            if os.name == "nt" and path.exists():
                path.rmdir()
            fresh.rename(path)
        except OSError:
            # Another process was first: check its ledger, and repair it if needed.
            if not path.is_dir():
                raise
            _refresh(path, contents)
    finally:
        shutil.rmtree(shelter, ignore_errors=True)


def _refresh(path: Path, contents: Contents) -> None:
    if not ledger_files.is_ledger(path, contents):
        raise SuiteError(f"{path} exists and is not a release ledger; move it away and run again")
    if ledger_files.first_fault(path, contents):
        ledger_files.write(path, contents)


def _remove_abandoned(path: Path) -> None:
    """Remove the leftovers of killed runs once they are old."""
    for leftover in (*path.parent.glob(f"{path.name}.new-*"), *path.glob("tmp_*")):
        try:
            if time.time() - leftover.stat().st_mtime < _ABANDONED_S:
                continue
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink()
        except OSError:  # its owner just finished, or another user owns it: both are harmless
            continue

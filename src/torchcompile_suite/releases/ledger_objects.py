"""The contents of the release ledger: every git object and ref, computed and not yet written.

Every byte of a commit follows from ``releases.toml`` and the lock: the author is fixed, and both
dates are the release's upload time. Results of different machines therefore meet on the same
commits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tree

from ..errors import SuiteError
from . import catalogue
from .catalogue import Release

BRANCH = "main"
NIGHTLY_BRANCH = "nightly"
RELEASE_FILE = "release.json"
LOCK_FILE = "requirements.txt"

_AUTHOR = b"torchcompile-suite <ledger@torchcompile-suite.example.invalid>"


@dataclass(frozen=True)
class Contents:
    """Every object and ref of the ledger.

    - ``objects``: from SHA to blob, tree or commit.
    - ``refs``: from full ref name (``refs/tags/v2.4``) to commit SHA, branches last.
    - ``commits``: from commit SHA to release, oldest first; the nightlies come last.
    - ``tags``: from tag (``v2.4.1``, ``v2.4``) to commit SHA.
    """

    objects: Mapping[ObjectID, ShaFile]
    refs: Mapping[str, str]
    commits: Mapping[str, Release]
    tags: Mapping[str, str]


def contents(releases: Sequence[Release] | None = None) -> Contents:
    """The ledger of those releases; of all releases and nightlies of the catalogue if None.

    Raises ``SuiteError`` if there is no release, if a lock is missing, or if a nightly follows a
    version that is not in the ledger.
    """
    releases = catalogue.everything() if releases is None else releases
    if all(release.nightly for release in releases):
        raise SuiteError("the release catalogue is empty; restore it from version control")
    objects: dict[ObjectID, ShaFile] = {}
    commits: dict[str, Release] = {}
    shas: dict[str, str] = {}  # from version to commit
    for release in sorted(releases, key=lambda release: release.nightly):
        *files, commit = _objects(release, _parent(release, shas))
        objects.update((item.id, item) for item in (*files, commit))
        sha = shas[release.version] = commit.id.decode()
        commits[sha] = release
    tags = _tags(commits, releases)
    return Contents(
        MappingProxyType(objects),
        MappingProxyType(_refs(commits, tags)),
        MappingProxyType(commits),
        MappingProxyType(tags),
    )


def release_file(release: Release) -> bytes:
    """The content of ``release.json``. JSON, because Python 3.10 has no parser for TOML.

    ``git_version`` is not part of it: it may become known later, and would then change a published
    commit.
    """
    facts = {
        "version": release.version,
        "date": f"{release.date:%Y-%m-%dT%H:%M:%SZ}",
        "pythons": list(release.usable_pythons),
    }
    if release.index_url:
        facts["index_url"] = release.index_url
    return (json.dumps(facts, indent=2) + "\n").encode()


def lock_file(release: Release) -> bytes:
    """The content of ``requirements.txt``: the release's lock, with Unix line ends everywhere."""
    try:
        return release.lock.read_text("utf-8").encode()
    except (OSError, UnicodeDecodeError) as error:
        raise SuiteError(
            f"PyTorch {release.version} has no readable lock at {release.lock}; "
            f"run `torchcompile-suite releases lock {release.version}`"
        ) from error


def _parent(release: Release, shas: Mapping[str, str]) -> str | None:
    """SHA of the parent commit; None for the first release.

    ``shas`` maps the versions before this one, in ledger order, to their commits.
    """
    if not release.nightly:
        return list(shas.values())[-1] if shas else None
    if release.after is None or release.after not in shas:
        raise SuiteError(
            f"nightlies.toml has {release.version} after {release.after}, which is not in the "
            "ledger; delete the entry and add the nightly again"
        )
    return shas[release.after]


def _objects(release: Release, parent: str | None) -> Iterator[ShaFile]:
    """The objects of a release's commit: blobs, tree, and the commit itself as the last."""
    tree = Tree()
    for name, content in ((RELEASE_FILE, release_file(release)), (LOCK_FILE, lock_file(release))):
        blob = Blob.from_string(content)
        tree.add(name.encode(), 0o100644, blob.id)
        yield blob
    yield tree
    commit = Commit()
    commit.tree = tree.id
    commit.parents = [ObjectID(parent.encode())] if parent else []
    commit.author = commit.committer = _AUTHOR
    commit.author_time = commit.commit_time = int(release.date.timestamp())
    commit.author_timezone = commit.commit_timezone = 0
    commit.message = f"PyTorch {release.version}\n".encode()
    yield commit


def _tags(commits: Mapping[str, Release], releases: Sequence[Release]) -> dict[str, str]:
    """Each release's own tag; a tag such as ``v2.4`` at the newest patch of a minor version."""
    tags = {release.tag: sha for sha, release in commits.items()}
    for sha, release in commits.items():
        if catalogue.newest_patch(release.minor, releases) == release:
            tags[f"v{release.minor}"] = sha
    return tags


def _refs(commits: Mapping[str, Release], tags: Mapping[str, str]) -> dict[str, str]:
    refs = {f"refs/tags/{tag}": sha for tag, sha in tags.items()}
    # Branches come last, because they make the other objects visible.
    for branch, nightly in ((NIGHTLY_BRANCH, True), (BRANCH, False)):
        members = [sha for sha, release in commits.items() if release.nightly is nightly]
        if members:
            refs[f"refs/heads/{branch}"] = members[-1]
    return refs

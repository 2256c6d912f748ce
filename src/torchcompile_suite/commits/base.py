"""The base of a commit: the release or nightly whose binary the commit's Python files run on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import SuiteError
from ..releases import catalogue
from ..releases.catalogue import Release
from .clone import Clone

# A commit of the nightly branch names its commit of the main branch in its subject.
_NIGHTLY_OF = re.compile(r"nightly release \(([0-9a-f]{40})\)")


class Refused(SuiteError):
    """This commit cannot be measured. The message gives the reason."""


def base_of(
    clone: Clone, commit: str, releases: Sequence[Release] | None = None
) -> tuple[Release, str]:
    """The newest release or nightly that the commit descends from, and its upstream commit.

    Raises Refused if there is none.
    """
    known = catalogue.everything() if releases is None else releases
    for release in sorted(known, key=lambda release: release.date, reverse=True):
        origin = _origin(clone, release)
        if origin is not None and clone.is_ancestor(origin, commit):
            return release, origin
    raise Refused(
        f"{commit[:10]} descends from no known release or nightly; commits of the main branch need "
        "an older nightly: torchcompile-suite releases add 2.16.0.dev20261120 --index-url URL"
    )


def _origin(clone: Clone, release: Release) -> str | None:
    """The commit that a release was built from; None if the clone does not have it."""
    commit = clone.first_of([release.git_version or "", release.tag])
    if commit is None or not release.nightly:
        return commit
    named = _NIGHTLY_OF.search(clone.subject(commit))
    return clone.first_of([named[1]]) if named else commit

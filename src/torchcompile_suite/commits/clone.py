"""Reads a clone of PyTorch. Runs git, and changes nothing in the clone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from ..errors import SuiteError

# One command of git: a diff of two releases in a clone without blobs fetches thousands of files.
_LIMIT_S = 1800
_OF_A_REPOSITORY = {
    *("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"),
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_SHALLOW_FILE"),
    *("GIT_NAMESPACE", "GIT_REPLACE_REF_BASE", "GIT_GRAFT_FILE"),
}


class Difference(NamedTuple):
    """A path where two commits differ.

    ``there``: the second commit has a regular file at the path, not a link or a submodule.
    """

    path: str
    there: bool


class Clone:
    """A PyTorch repository on disk, with a work tree or bare. Only its objects are read.

    The methods raise SuiteError if git fails.
    """

    def __init__(self, path: Path) -> None:
        """Raises SuiteError if there is no repository at ``path``."""
        self.path = path
        if not path.is_dir():
            raise SuiteError(
                f"there is no clone of PyTorch at {path}; make one (git clone --filter=blob:none "
                "--no-checkout URL), or name yours with --repo"
            )
        self._git("rev-parse", "--git-dir")

    def resolve(self, name: str) -> str:
        """The full SHA of a commit. ``name`` is a branch, a tag or an abbreviated SHA."""
        commit = self._find(name)
        if commit is None:
            raise SuiteError(f"{self.path} has no commit {name!r}; fetch it, or correct its name")
        return commit

    def _find(self, name: str) -> str | None:
        if not name or name.startswith("-"):
            return None
        done = self._run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return done.stdout.decode().strip() if done.returncode == 0 else None

    def first_of(self, names: Sequence[str]) -> str | None:
        """The commit of the first name that the clone has; None if it has none of them."""
        return next(filter(None, map(self._find, names)), None)

    def subject(self, commit: str) -> str:
        """The first line of the commit's message."""
        return self.described(commit)[1]

    def described(self, name: str) -> tuple[str, str]:
        """The date of a commit (UTC, ISO 8601) and the first line of its message.

        Two empty strings if the clone does not have it.
        """
        commit = self._find(name)
        if commit is None:
            return "", ""
        shown = self._git("show", "--no-patch", "--format=%ct%n%s", commit)
        seconds, _, subject = shown.decode("utf-8", "replace").partition("\n")
        date = datetime.fromtimestamp(int(seconds), timezone.utc)
        return date.isoformat(), subject.strip()

    def state(self) -> str:
        """All names of commits and their SHAs: what a fetch changes."""
        return self._run("for-each-ref", "--format=%(objectname) %(refname)").stdout.decode()

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Whether ``newer`` is the same commit as ``older`` or descends from it."""
        return self._run("merge-base", "--is-ancestor", older, newer).returncode == 0

    def between(self, good: str, bad: str) -> list[str]:
        """The commits after ``good`` up to ``bad``, oldest first. A merge counts as one commit.

        Raises SuiteError if ``bad`` does not descend from ``good``.
        """
        if good == bad or not self.is_ancestor(good, bad):
            raise SuiteError(
                f"{bad[:10]} does not come after {good[:10]}; name an older and a newer commit"
            )
        commits = self._git("rev-list", "--reverse", "--first-parent", f"{good}..{bad}")
        return commits.decode().split()

    def differences(self, older: str, newer: str) -> list[Difference]:
        """The paths where two commits differ."""
        raw = self._git("diff-tree", "-r", "-z", "--no-renames", older, newer).decode(
            "utf-8", "surrogateescape"
        )
        # ":100644 100644 <blob> <blob> M" NUL path NUL
        parts = raw.split("\0")
        return [
            Difference(path, facts.split()[1] in ("100644", "100755"))
            for facts, path in zip(parts[::2], parts[1::2], strict=False)
        ]

    def contents(self, commit: str, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Path and contents of each file in the commit."""
        names = "".join(f"{commit}:{path}\n" for path in paths).encode("utf-8", "surrogateescape")
        data = self._git("cat-file", "--batch", stdin=names)
        at = 0
        for path in paths:
            end = data.index(b"\n", at)
            header = data[at:end].split()
            if len(header) != 3 or header[1] != b"blob":
                raise SuiteError(f"{self.path} cannot read {path} of {commit[:10]}; run: git fsck")
            size = int(header[2])
            yield path, data[end + 1 : end + 1 + size]
            at = end + 1 + size + 1

    def _git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        done = self._run(*arguments, stdin=stdin)
        if done.returncode:
            errors = done.stderr.decode("utf-8", "replace").strip().splitlines()
            reason = errors[0] if errors else "failed"
            raise SuiteError(f"git {arguments[0]} in {self.path}: {reason}")
        return done.stdout

    def _run(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        # If a git hook runs us, these point to another repository.
        kept = {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}
        try:
            return subprocess.run(
                ["git", *arguments],
                cwd=self.path,
                # A clone without blobs fetches them now, and nobody answers a question.
                env={**kept, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
                input=stdin,
                capture_output=True,
                check=False,
                timeout=_LIMIT_S,
            )
        except subprocess.TimeoutExpired:
            raise SuiteError(
                f"git {arguments[0]} in {self.path} took more than {_LIMIT_S} s; if the clone "
                "fetches from a server, see that the server answers"
            ) from None

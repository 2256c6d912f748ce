"""Questions to a clone of PyTorch. Runs git, and changes nothing in the clone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import SuiteError


class CloneError(SuiteError):
    """The clone cannot answer; the message says what to change."""


class Difference(NamedTuple):
    """A file that two commits differ in: its path, and whether the second one has it (as a file,
    not as a link or a submodule).
    """

    path: str
    there: bool


class Clone:
    """A PyTorch repository on disk, with a work tree or bare. Only its objects are read."""

    def __init__(self, path: Path) -> None:
        """Raises CloneError where there is no repository."""
        self.path = path
        if not path.is_dir():
            raise CloneError(
                f"there is no clone of PyTorch at {path}; make one (git clone --filter=blob:none "
                "--no-checkout URL), or name yours with --repo"
            )
        self._git("rev-parse", "--git-dir")

    def resolve(self, name: str) -> str:
        """The full SHA of the commit that a branch, tag or abbreviation names."""
        found = self._find(name)
        if found is None:
            raise CloneError(f"{self.path} has no commit {name!r}; fetch it, or mend its name")
        return found

    def _find(self, name: str) -> str | None:
        if not name or name.startswith("-"):
            return None
        done = self._run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return done.stdout.decode().strip() if done.returncode == 0 else None

    def first_of(self, names: Sequence[str]) -> str | None:
        """The commit of the first name that the clone has; None where it has none."""
        return next(filter(None, map(self._find, names)), None)

    def subject(self, commit: str) -> str:
        """The first line of its message."""
        return (
            self._git("show", "--no-patch", "--format=%s", commit)
            .decode("utf-8", "replace")
            .strip()
        )

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Whether ``newer`` is ``older`` or descends from it."""
        return self._run("merge-base", "--is-ancestor", older, newer).returncode == 0

    def between(self, good: str, bad: str) -> list[str]:
        """The commits after ``good`` up to ``bad``, oldest first, merges as one.

        Raises CloneError where ``bad`` does not descend from ``good``.
        """
        if good == bad or not self.is_ancestor(good, bad):
            raise CloneError(
                f"{bad[:10]} does not come after {good[:10]}; name an older and a newer commit"
            )
        found = self._git("rev-list", "--reverse", "--first-parent", f"{good}..{bad}")
        return found.decode().split()

    def differences(self, older: str, newer: str) -> list[Difference]:
        """The files in which two commits differ, by path."""
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
        """Each file as the commit has it."""
        asked = "".join(f"{commit}:{path}\n" for path in paths).encode("utf-8", "surrogateescape")
        data = self._git("cat-file", "--batch", given=asked)
        at = 0
        for path in paths:
            end = data.index(b"\n", at)
            header = data[at:end].split()
            if len(header) != 3 or header[1] != b"blob":
                raise CloneError(f"{self.path} cannot read {path} of {commit[:10]}; run: git fsck")
            size = int(header[2])
            yield path, data[end + 1 : end + 1 + size]
            at = end + 1 + size + 1

    def _git(self, *arguments: str, given: bytes = b"") -> bytes:
        done = self._run(*arguments, given=given)
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise CloneError(f"git {arguments[0]} in {self.path}: {said[0] if said else 'failed'}")
        return done.stdout

    def _run(self, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        # GIT_DIR and its kin of whoever calls us from a hook would lead to another repository.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        return subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env={**kept, "LC_ALL": "C"},
            input=given,
            capture_output=True,
            check=False,
        )

"""The sources in releases' wheels, under the paths that they have in PyTorch's repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

from torchcompile_suite.releases import catalogue

# From a wheel's folders to the repository's. What is under none of these is generated, or built.
_PLACES = {
    "torch/include/ATen/": "aten/src/ATen/",
    "torch/include/c10/": "c10/",
    "torch/include/torch/csrc/": "torch/csrc/",
    "torch/include/torch/headeronly/": "torch/headeronly/",
    "torchgen/packaged/ATen/": "aten/src/ATen/",
    "torchgen/packaged/autograd/": "tools/autograd/",
}
_GENERATED = ("torch/version.py", "torch/_C/", "torch/include/", "torch/lib/", "torch/bin/")
_NEVER_SOURCE = {".so", ".pyc", ".a", ".cmake", ".dist-info"}


def sources(packages: Path) -> dict[str, Path]:
    """The sources in a site-packages folder: from repository path to file."""
    found = {}
    for top in ("torch", "torchgen", "functorch"):
        for file in sorted((packages / top).rglob("*")):
            if file.is_file() and file.suffix not in _NEVER_SOURCE:
                path = repository_path(file.relative_to(packages).as_posix())
                if path:
                    found[path] = file
    return found


def repository_path(path: str) -> str:
    """Where the repository has a wheel's file; empty for what is generated or built."""
    for place, original in _PLACES.items():
        if path.startswith(place):
            return original + path.removeprefix(place)
    return "" if path.startswith(_GENERATED) else path


class Repository:
    """A git repository that begins with the sources of a release, tagged as PyTorch's is."""

    def __init__(self, folder: Path) -> None:
        """Make it in ``folder``, which must not exist."""
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch", "main")
        self.git("config", "user.name", "evidence")
        self.git("config", "user.email", "evidence@example.invalid")

    def begin(self, version: str, files: dict[str, Path]) -> str:
        """Commit the release's files and tag them."""
        for path, file in files.items():
            self.write(path, file.read_bytes())
        commit = self.commit(f"PyTorch {version}")
        self.tag(catalogue.find(version).tag)
        return commit

    def tag(self, name: str) -> None:
        """Name the last commit."""
        self.git("tag", name)

    def read(self, path: str) -> str:
        """A file as the work tree has it."""
        return (self.folder / path).read_text("utf-8")

    def write(self, path: str, content: bytes) -> None:
        """Write a file of the work tree."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def append(self, path: str, text: str) -> None:
        """Add to the end of a file of the work tree."""
        self.write(path, (self.read(path) + text).encode())

    def commit(self, subject: str) -> str:
        """Commit the work tree; the SHA."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.git("rev-parse", "HEAD")

    def revert(self) -> str:
        """Undo the last commit by another one."""
        self.git("revert", "--no-edit", "HEAD")
        return self.git("rev-parse", "HEAD")

    def git(self, *arguments: str) -> str:
        """What git prints."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

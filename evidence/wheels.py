"""The sources in the wheels of releases, under their paths in PyTorch's repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

from torchcompile_suite.releases import catalogue

# Folders of a wheel and the folders of the repository that they come from. Files of a wheel's other
# folders (`_GENERATED`) are generated or built; the rest has the same path in both.
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
    """The sources in a site-packages folder: repository path to file."""
    files = {}
    for top in ("torch", "torchgen", "functorch"):
        for file in sorted((packages / top).rglob("*")):
            if file.is_file() and file.suffix not in _NEVER_SOURCE:
                path = repository_path(file.relative_to(packages).as_posix())
                if path:
                    files[path] = file
    return files


def repository_path(path: str) -> str:
    """The path in the repository of a file of a wheel; empty if it is generated or built."""
    for place, original in _PLACES.items():
        if path.startswith(place):
            return original + path.removeprefix(place)
    return "" if path.startswith(_GENERATED) else path


class Repository:
    """A git repository that begins with the sources of a release, with the tag that PyTorch has."""

    def __init__(self, folder: Path) -> None:
        """Create the repository in ``folder``, which must not exist."""
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch", "main")
        self.git("config", "user.name", "evidence")
        self.git("config", "user.email", "evidence@example.invalid")

    def begin(self, version: str, files: dict[str, Path]) -> str:
        """Commit and tag the files of the release; the commit's SHA."""
        for path, file in files.items():
            self.write(path, file.read_bytes())
        commit = self.commit(f"PyTorch {version}")
        self.tag(catalogue.find(version).tag)
        return commit

    def tag(self, name: str) -> None:
        """Tag the last commit."""
        self.git("tag", name)

    def read(self, path: str) -> str:
        """The text of a file in the work tree."""
        return (self.folder / path).read_text("utf-8")

    def write(self, path: str, content: bytes) -> None:
        """Write a file in the work tree."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def append(self, path: str, text: str) -> None:
        """Append to a file in the work tree."""
        self.write(path, (self.read(path) + text).encode())

    def commit(self, subject: str) -> str:
        """Commit the work tree; the SHA."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.git("rev-parse", "HEAD")

    def revert(self) -> str:
        """Revert the last commit with another commit; its SHA."""
        self.git("revert", "--no-edit", "HEAD")
        return self.git("rev-parse", "HEAD")

    def git(self, *arguments: str) -> str:
        """Run git; its output. Raises CalledProcessError."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

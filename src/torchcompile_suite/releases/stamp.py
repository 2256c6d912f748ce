"""The stamp of a release's environment: a file in its folder that says what the environment holds.

It is written when the installation is complete and proven. A measuring process reads the stamp of
its own environment, so this module needs the standard library only.
"""

from __future__ import annotations

import sys
from pathlib import Path

FILE = "torchcompile-suite-release"
# The first word of the stamp of an environment that stands for one of the user's.
ADOPTED = "adopted"
# Where the Python files of a commit lie over a lock: see `commits.journal`. Older versions of the
# suite wrote it in place of a stamp.
OVERLAID = "torchcompile-suite-overlay.journal"


def read(folder: Path) -> str:
    """The content of the stamp; empty if there is none."""
    file = folder / FILE
    return file.read_text("utf-8") if file.exists() else ""


def is_adopted(content: str) -> bool:
    """Whether the environment with that stamp stands for one of the user's."""
    return content.startswith(f"{ADOPTED} ")


def from_a_lock(prefix: str = sys.prefix) -> bool:
    """Whether the packages of the environment at ``prefix`` are those of a release's lock."""
    content = read(Path(prefix))
    return (bool(content) and not is_adopted(content)) or Path(prefix, OVERLAID).exists()


def apart(library: str, prefix: str | Path = sys.prefix) -> Path:
    """The folder of a library that the environment at ``prefix`` has apart; it may be missing.

    By its last part others tell that the code is not the user's.
    """
    return Path(prefix) / f"apart-{library}" / "site-packages"

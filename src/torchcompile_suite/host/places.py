"""Where things lie: the user's home folder, what can be made again, installed packages."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..errors import SuiteError

# Debian's Python installs to dist-packages.
_INSTALLED = re.compile(r".*[\\/](?:site|dist)-packages[\\/](?P<inside>.+)", re.DOTALL)


def home() -> Path | None:
    """The user's home folder; None for a user without one, as in some containers."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def cache_folder() -> Path:
    """The suite's folder for what can be made again: in XDG_CACHE_HOME, or in ~/.cache.

    Raises SuiteError for a user without a home folder.
    """
    if named := os.environ.get("XDG_CACHE_HOME", "").strip():
        return Path(named, "torchcompile-suite")
    if own := home():
        return own / ".cache" / "torchcompile-suite"
    raise SuiteError("this user has no home folder; name a folder with XDG_CACHE_HOME")


def in_packages(file: str) -> str:
    """The file's path in the folder of installed packages; empty for any other file."""
    found = _INSTALLED.fullmatch(file)
    return found["inside"] if found else ""


def without(text: str, *folders: str) -> str:
    """The text without the paths of these folders and of the user's home folder."""
    for folder in (*folders, str(home() or "")):
        if len(folder) > 1:  # a home folder may be "/"
            text = text.replace(folder, "...")
    return text

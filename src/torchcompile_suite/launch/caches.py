"""The compilers' cache folders: environment variables that each launch sets for itself.

Other processes unset them. Newer releases of torch create the folder during the import, so a folder
that cannot be created would look like a torch that cannot be imported.
"""

from __future__ import annotations

import os
from pathlib import Path

# Folder for temporary files inside a launch's cache folder. It is not part of the cache.
TEMPORARY = "tmp"
INDUCTOR, TRITON = VARIABLES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


def variables(folder: Path) -> dict[str, str]:
    """The variables that set the caches of a process to the folder."""
    return {INDUCTOR: str(folder), TRITON: str(folder / "triton")}


def use(folder: Path) -> None:
    """Set the caches of this process to the folder."""
    os.environ.update(variables(folder))


def size(folder: Path) -> int:
    """Bytes that were compiled for this model. Headers do not count: all models share them."""
    return sum(
        file.stat().st_size
        for file in folder.rglob("*")
        if file.is_file() and folder / TEMPORARY not in file.parents
    )


def drop() -> None:
    """Unset the variables, so that the caller's folders stay as they are."""
    for name in VARIABLES:
        os.environ.pop(name, None)

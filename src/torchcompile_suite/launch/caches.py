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


def use(folder: Path) -> None:
    """Set the caches of this process to the folder."""
    os.environ[INDUCTOR] = str(folder)
    os.environ[TRITON] = str(folder / "triton")


def drop() -> None:
    """Unset the variables, so that the caller's folders stay as they are."""
    for name in VARIABLES:
        os.environ.pop(name, None)

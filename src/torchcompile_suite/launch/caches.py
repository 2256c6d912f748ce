"""Where the compilers keep what they made: variables that every launch gets values of its own for.

Elsewhere they are dropped: newer releases make the folder as soon as something is imported, which
would have a folder that cannot be made look like a torch that cannot be imported.
"""

from __future__ import annotations

import os
from pathlib import Path

# The folder for temporary files inside a launch's cache folder. It is not part of the cache.
TEMPORARY = "tmp"
INDUCTOR, TRITON = VARIABLES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


def use(folder: Path) -> None:
    """Have this process keep everything there."""
    os.environ[INDUCTOR] = str(folder)
    os.environ[TRITON] = str(folder / "triton")


def drop() -> None:
    """Leave the caller's folders alone."""
    for name in VARIABLES:
        os.environ.pop(name, None)

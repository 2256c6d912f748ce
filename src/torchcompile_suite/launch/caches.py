"""The compilers' cache folders: environment variables that each launch sets for itself.

Other processes unset them. Newer releases of torch create the folder during the import, so a folder
that cannot be created would look like a torch that cannot be imported.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

# Folder for temporary files inside a launch's cache folder. It is not part of the cache.
TEMPORARY = "tmp"
TMPDIR = "TMPDIR"
# The user's own folder for temporary files: a launch imports this module before it sets its own.
_USERS_TMPDIR = os.environ.get(TMPDIR)
INDUCTOR, TRITON = VARIABLES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


def variables(folder: Path) -> dict[str, str]:
    """The variables that set the caches of a process to the folder."""
    return {INDUCTOR: str(folder), TRITON: str(folder / "triton")}


def with_temporary(folder: Path) -> dict[str, str]:
    """The same, and the folder for temporary files: one in the folder, which is made now.

    Inductor precompiles C++ headers once for all models, in ten seconds, and keeps them there. With
    a shared folder the first cell would pay for all cells.
    """
    temporary = folder / TEMPORARY
    temporary.mkdir(parents=True, exist_ok=True)
    return {**variables(folder), TMPDIR: str(temporary)}


def use(folder: Path) -> None:
    """Set the caches of this process to the folder."""
    os.environ.update(variables(folder))


def use_with_temporary(folder: Path) -> None:
    """Set the caches and the temporary files of this process to the folder."""
    os.environ.update(with_temporary(folder))
    tempfile.tempdir = None


@contextlib.contextmanager
def left_to_the_user() -> Iterator[list[str]]:
    """A context for the user's code, which finds the folder for temporary files of a script.

    Afterwards the folders of this process are what they were: else the code's own cache would be
    warm in the next "cold" launch. The list gets the names of the variables that the code has set.
    """
    ours = {name: os.environ.get(name) for name in (*VARIABLES, TMPDIR)}
    users = {**ours, TMPDIR: _USERS_TMPDIR}
    changed: list[str] = []
    _set(TMPDIR, _USERS_TMPDIR)
    tempfile.tempdir = None
    try:
        yield changed
    finally:
        # torch itself sets a variable that nobody has set.
        changed += [
            name
            for name, value in users.items()
            if os.environ.get(name) != value and (value is not None or name == TMPDIR)
        ]
        for name, value in ours.items():
            _set(name, value)
        tempfile.tempdir = None


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def size(folder: Path) -> int:
    """Bytes that were compiled for this model. Headers do not count: all models share them."""
    return sum(
        file.stat().st_size
        for file in folder.rglob("*")
        if file.is_file() and folder / TEMPORARY not in file.parents
    )

"""Applies an overlay to an environment, and restores the base, whatever interrupts it.

No file of the base is written to, because uv links these files from its cache. Each is kept as
a hard link, and another file is moved into its place. A journal is written first: from it the next
run restores the very same files, whatever interrupted this run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ..conditions import Overlay
from ..errors import SuiteError
from ..host.files import write_atomically
from ..releases import stamp
from ..releases.environments import packages_in
from ..results.descriptions import OVERLAY_FILE

JOURNAL = stamp.OVERLAID
# The folder with the files of the base that an overlay replaces.
SAVED = "torchcompile-suite-overlay.base"
STAGED = "torchcompile-suite-overlay.new"
# The reason in the marker while files change.
UNFINISHED = "the overlay was interrupted; install the commit again"


class _Journal(msgspec.Struct):
    """The base of an environment, and each overlaid path: whether the base has such a file."""

    base: str
    paths: dict[str, bool] = {}


def base_version(folder: Path) -> str:
    """Version of the environment's base; empty if it is not known."""
    return _read(folder).base


def begin(folder: Path, base: str) -> None:
    """Note that the environment holds the base and no overlay."""
    _write(folder, _Journal(base))


def forget(folder: Path) -> None:
    """Note that the environment's base is not known."""
    (folder / JOURNAL).unlink(missing_ok=True)


def mark(folder: Path, overlay: Overlay) -> None:
    """Write the marker that tells measuring processes what the environment holds."""
    write_atomically(folder / OVERLAY_FILE, msgspec.json.encode(overlay))


def apply(
    folder: Path, base: str, contents: Iterable[tuple[str, bytes]], paths: Iterable[str]
) -> None:
    """Overlay files over the base (a version) in the environment.

    ``paths`` are all paths that change, ``contents`` their new contents. A path without contents is
    removed. The marker then says that the overlay is unfinished; `mark` replaces it.
    """
    packages, saved = packages_in(folder), folder / SAVED
    journal = _Journal(base, {path: (packages / path).is_file() for path in paths})
    mark(folder, Overlay(base, "", refused=UNFINISHED))
    _write(folder, journal)
    for path, in_base in journal.paths.items():
        if in_base:
            (saved / path).parent.mkdir(parents=True, exist_ok=True)
            os.link(packages / path, saved / path)
    removed = set(journal.paths)
    for path, content in contents:
        # Written outside the packages first: a kill must not leave half a file in a package.
        (folder / STAGED).write_bytes(content)
        (packages / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / STAGED).replace(packages / path)
        _remove_bytecode(packages / path)
        removed.discard(path)
    for path in removed:
        (packages / path).unlink(missing_ok=True)
        _remove_bytecode(packages / path)


def restore(folder: Path) -> None:
    """Restore every file of the base: the same file (inode), not a copy."""
    journal = _read(folder)
    if not journal.base:
        return
    mark(folder, Overlay(journal.base, "", refused=UNFINISHED))
    packages, saved = packages_in(folder), folder / SAVED
    for path, in_base in journal.paths.items():
        target = packages / path
        if not in_base:
            target.unlink(missing_ok=True)
            _remove_bytecode(target)
            _remove_empty(target.parent, packages)
            continue
        if (saved / path).exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            (saved / path).replace(target)
        _remove_bytecode(target)
    begin(folder, journal.base)
    shutil.rmtree(saved, ignore_errors=True)
    (folder / OVERLAY_FILE).unlink(missing_ok=True)


def _remove_empty(folder: Path, top: Path) -> None:
    """Remove folders that only the commit had: Python would import them as empty packages."""
    while (
        folder != top
        and folder.is_dir()
        and {entry.name for entry in folder.iterdir()} <= {"__pycache__"}
    ):
        shutil.rmtree(folder)
        folder = folder.parent


def _remove_bytecode(source: Path) -> None:
    """Delete the .pyc files of a source.

    Python uses a .pyc file if the size and the time of its source fit, and those of two commits can
    coincide.
    """
    for file in source.parent.glob(f"__pycache__/{source.stem}.*.pyc"):
        file.unlink(missing_ok=True)


def _read(folder: Path) -> _Journal:
    try:
        return msgspec.json.decode((folder / JOURNAL).read_bytes(), type=_Journal)
    except FileNotFoundError:
        return _Journal("")
    except (OSError, msgspec.DecodeError) as error:
        raise SuiteError(
            f"{folder / JOURNAL} cannot be read ({error}); delete {folder}: the next run makes it "
            "again"
        ) from None


def _write(folder: Path, journal: _Journal) -> None:
    write_atomically(folder / JOURNAL, msgspec.json.encode(journal))

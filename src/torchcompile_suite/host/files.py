"""Writes files so that a kill or a full disk never leaves half of one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import TypeVar

import msgspec

from ..errors import SuiteError

T = TypeVar("T")


def write_atomically(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Replace the file's contents, all or nothing. Raises OSError; then the old contents remain.

    Without ``sync`` this is safe against kills and full disks but not against a power cut, and it
    is as fast as a plain write.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            if sync:
                stream.flush()
                os.fsync(stream.fileno())
        # mkstemp makes private files, but other users must be able to read results.
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_or_say(path: Path, data: bytes, remedy: str = "the file did not change") -> None:
    """`write_atomically` where the user wants it; raises SuiteError, which ends with the remedy.

    The target of a link is replaced, not the link. A pipe or a device gets the data.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            write_atomically(path.resolve(), data)
    except (OSError, RuntimeError) as error:  # a link that leads to itself
        why = getattr(error, "strerror", None) or error
        raise SuiteError(f"cannot write {path}: {why}; {remedy}") from None


@contextlib.contextmanager
def alone(path: Path) -> Iterator[FileIO]:
    """Open a file for reading and appending. Whoever else opens it by `alone` waits until the end.

    Another process may remove or replace the file meanwhile: then this one opens the new file. So
    nothing is ever written to a file that is gone. On a file system without locks nobody waits.
    Raises OSError.
    """
    while True:
        # Unbuffered, because closing a buffer would write the rest of a failed line.
        with path.open("ab+", buffering=0) as stream:
            with contextlib.suppress(OSError):
                fcntl.flock(stream, fcntl.LOCK_EX)
            if _is_at(stream, path):
                yield stream
                return


def _is_at(stream: FileIO, path: Path) -> bool:
    """Whether the open file is still the one of that path."""
    try:
        return os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def held(lock: Path, busy: str, wait_s: float = 0.0) -> Iterator[None]:
    """Hold a lock. Raises SuiteError with ``busy`` if another process holds it for longer."""
    from filelock import FileLock, Timeout  # measuring processes lack it

    lock.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(lock).acquire(wait_s):
            yield
    except Timeout:
        raise SuiteError(busy) from None


def append_line(path: Path, line: bytes) -> None:
    """Add one line (without its newline) to the end of a file, all or nothing.

    If an earlier kill left an incomplete line, it gets its newline first, so that only that line is
    lost. Raises OSError; then the file remains as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with alone(path) as stream:
        size = stream.seek(0, os.SEEK_END)
        torn = False
        if size:
            stream.seek(size - 1)
            torn = stream.read(1) != b"\n"
        left = memoryview((b"\n" if torn else b"") + line + b"\n")
        try:
            while left:
                left = left[stream.write(left) :]
            os.fsync(stream.fileno())
        except OSError:
            stream.truncate(size)
            raise


def read_lines(path: Path, kind: type[T]) -> list[T]:
    """The lines of a file that `append_line` has written, as JSON of the type ``kind``.

    Incomplete lines and lines of another type are left out. Empty if there is no file. Raises
    OSError.
    """
    values = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            values.append(msgspec.json.decode(line, type=kind))
        except msgspec.DecodeError:
            continue
    return values


def need_free(folder: Path, needed_bytes: int, purpose: str, remedy: str) -> None:
    """Raise SuiteError if the folder's disk has less free space than that.

    ``remedy``: what to do when there is enough space.
    """
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise SuiteError(
            f"the disk for {purpose} has only {free >> 20} MiB left; free at least "
            f"{needed_bytes >> 20} MiB, then {remedy}"
        )

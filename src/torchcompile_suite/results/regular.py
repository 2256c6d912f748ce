"""Reads what anybody can put into results/: regular files only, and JSON that may be anything.

Reading a FIFO waits for ever, and reading a device may never end. Every reader of results/ opens
its files here.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

T = TypeVar("T")

REASON = "not a regular file"
# `digest` reads files in parts of this size.
_PART_BYTES = 1 << 20


def open_own(file: Path) -> BinaryIO:
    """Open ``file``, which is no link, for reading.

    Raises FileNotFoundError, and OSError for a link, a directory, a FIFO, a socket or a device.
    """
    if not stat.S_ISREG(file.lstat().st_mode):
        raise OSError(errno.EINVAL, REASON, str(file))
    # The file may be replaced between the two calls: the flags refuse a link and never wait.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return os.fdopen(os.open(file, flags | getattr(os, "O_BINARY", 0)), "rb")


def read_own(file: Path, most_bytes: int) -> bytes:
    """The content of ``file``, which is no link and has at most ``most_bytes``.

    Raises the errors of `open_own`, and OSError for a larger file. No more than
    ``most_bytes`` are read, whatever the size of the file becomes meanwhile.
    """
    with open_own(file) as stream:
        data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"larger than {most_bytes >> 20} MiB", str(file))
    return data


def decoded(text: bytes, kind: type[T], fault: str) -> T:
    """The JSON ``text`` as that type. Raises ValueError in one line that begins with ``fault``."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"{fault}: {error}") from None


def digest(file: Path) -> str:
    """The SHA-256 of the bytes of a file; that of nothing if it cannot be read."""
    found = hashlib.sha256()
    with contextlib.suppress(OSError), open_own(file) as stream:
        while part := stream.read(_PART_BYTES):
            found.update(part)
    return found.hexdigest()

"""Reads regular files only.

Anybody can put a file into results/. Reading a FIFO waits for ever, and reading a device may never
end. Every reader of results/ opens its files here.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

REASON = "not a regular file"


def is_regular(file: Path) -> bool:
    """Whether ``file`` is a regular file, or a link to one."""
    try:
        return stat.S_ISREG(file.stat().st_mode)
    except OSError:
        return False


def open_binary(file: Path) -> BinaryIO:
    """Open ``file`` for reading.

    Raises FileNotFoundError, and OSError for a directory, a FIFO, a socket or a device.
    """
    if not stat.S_ISREG(file.stat().st_mode):
        raise OSError(errno.EINVAL, REASON, str(file))
    return file.open("rb")


def open_own(file: Path) -> BinaryIO:
    """Open ``file``, which is no link, for reading. Raises the errors of `open_binary`."""
    if not stat.S_ISREG(file.lstat().st_mode):
        raise OSError(errno.EINVAL, REASON, str(file))
    # The file may be replaced between the two calls: the flags refuse a link and never wait.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return os.fdopen(os.open(file, flags | getattr(os, "O_BINARY", 0)), "rb")


def read_own(file: Path, most_bytes: int) -> bytes:
    """The content of ``file``, which is no link and has at most ``most_bytes``.

    Raises the errors of `open_binary`, also for a link, and OSError for a larger file. No more than
    ``most_bytes`` are read, whatever the size of the file becomes meanwhile.
    """
    with open_own(file) as stream:
        data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"larger than {most_bytes >> 20} MiB", str(file))
    return data

"""Reads regular files only.

Anybody can put a file into results/. Reading a FIFO waits for ever, and reading a device may never
end. Every reader of results/ opens its files here.
"""

from __future__ import annotations

import errno
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


def read_bytes(file: Path) -> bytes:
    """The content of ``file``. Raises the errors of `open_binary`."""
    with open_binary(file) as stream:
        return stream.read()

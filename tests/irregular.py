"""Things in a folder that have the name of a file and cannot be read like one."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path


@contextmanager
def fifo(file: Path) -> Iterator[None]:
    """A named pipe that nobody writes to."""
    file.parent.mkdir(exist_ok=True)
    os.mkfifo(file)
    yield


@contextmanager
def unix_socket(file: Path) -> Iterator[None]:
    """A socket. Its path must be short, so that it is bound by its name in the current folder."""
    file.parent.mkdir(exist_ok=True)
    before = Path.cwd()
    with socket.socket(socket.AF_UNIX) as bound:
        os.chdir(file.parent)
        try:
            bound.bind(file.name)
        finally:
            os.chdir(before)
        yield


@contextmanager
def device(file: Path) -> Iterator[None]:
    """A link to a device that never ends."""
    file.parent.mkdir(exist_ok=True)
    file.symlink_to("/dev/zero")
    yield


@contextmanager
def directory(file: Path) -> Iterator[None]:
    """A directory."""
    file.mkdir(parents=True)
    yield


IRREGULAR: dict[str, Callable[[Path], AbstractContextManager[None]]] = {
    made.__name__: made for made in (fifo, unix_socket, device, directory)
}

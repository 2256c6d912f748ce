"""The malloc libraries that a process can be started with, and their paths."""

from __future__ import annotations

import ctypes.util
import platform
import re
from pathlib import Path

from ..cell import DEFAULT_HEAP

# Name -> (the linker's name of the library, Debian's package).
LIBRARIES = {
    "tcmalloc": ("tcmalloc_minimal", "libtcmalloc-minimal4"),
    "jemalloc": ("jemalloc", "libjemalloc2"),
}
# The C library's malloc, in a process that is started in the same way as with the others.
LIBC = "libc"


def loaded() -> str:
    """The malloc of this process: a preloaded library's name, or the C library and its version."""
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return "unknown"
    for name in (*LIBRARIES, "mimalloc"):
        if re.search(rf"/lib{name}[^/\n]*\.so", maps):
            return name
    libc, version = platform.libc_ver()
    return f"{libc} {version}".strip() or "system"


def preloaded(name: str) -> bool:
    """Whether a `Cell.allocator` is a library that the process has to be started with."""
    return name not in ("system", LIBC, DEFAULT_HEAP)


def preload(name: str) -> tuple[str, str]:
    """The value of LD_PRELOAD for an allocator, and the reason if it is not available.

    One of the two is empty; both are where nothing is preloaded.
    """
    if not preloaded(name):
        return "", ""
    if name not in LIBRARIES:
        known = ", ".join((LIBC, DEFAULT_HEAP, *LIBRARIES))
        return "", f"no allocator {name!r}; there are: {known}"
    library, package = LIBRARIES[name]
    if soname := ctypes.util.find_library(library):
        return soname, ""  # the linker knows the path
    return "", f"lib{library} is not installed; on Debian: apt-get install {package}"

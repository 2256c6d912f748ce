"""The malloc libraries that a process can be started with, and their paths."""

from __future__ import annotations

import ctypes.util
import subprocess

# Name -> (the linker's name of the library, Debian's package).
LIBRARIES = {
    "tcmalloc": ("tcmalloc_minimal", "libtcmalloc-minimal4"),
    "jemalloc": ("jemalloc", "libjemalloc2"),
}
# The C library's malloc, in a process that is started in the same way as with the others.
LIBC = "libc"


def preload(name: str) -> tuple[str, str]:
    """The value of LD_PRELOAD for an allocator, and the reason if it is not available.

    One of the two is empty; both are for the C library's malloc.
    """
    if name == LIBC:
        return "", ""
    if name not in LIBRARIES:
        known = ", ".join((LIBC, *LIBRARIES))
        return "", f"no allocator {name!r}; there are: {known}"
    library, package = LIBRARIES[name]
    if soname := ctypes.util.find_library(library):
        return _path(soname), ""
    return "", f"lib{library} is not installed; on Debian: apt-get install {package}"


def _path(soname: str) -> str:
    """The library's path from the linker's cache, or its name, which the linker also accepts."""
    try:
        listed = subprocess.run(
            ["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return soname
    for line in listed.splitlines():
        if line.strip().startswith(soname + " "):
            return line.rpartition("=> ")[2].strip()
    return soname

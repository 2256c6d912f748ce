"""The malloc libraries that a process can be started with, and where they are."""

from __future__ import annotations

import ctypes.util
import subprocess

# Name -> (library as the linker knows it, Debian's package).
LIBRARIES = {
    "tcmalloc": ("tcmalloc_minimal", "libtcmalloc-minimal4"),
    "jemalloc": ("jemalloc", "libjemalloc2"),
}
# The C library's own, in a process started the same way as the others.
LIBC = "libc"


def preload(name: str) -> tuple[str, str]:
    """What LD_PRELOAD must hold for that allocator, and why it cannot be had (one is empty)."""
    if name == LIBC:
        return "", ""
    if name not in LIBRARIES:
        known = ", ".join((LIBC, *LIBRARIES))
        return "", f"no allocator {name!r}; there are: {known}"
    library, package = LIBRARIES[name]
    if found := ctypes.util.find_library(library):
        return _path(found), ""
    return "", f"lib{library} is not installed; on Debian: apt-get install {package}"


def _path(soname: str) -> str:
    """The library's path, which the linker's cache knows; its bare name serves as well."""
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

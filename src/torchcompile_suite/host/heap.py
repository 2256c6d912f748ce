"""The malloc of a process, and the state of its heap, which decides how long a call takes on a CPU.

The C library's malloc takes large blocks straight from the kernel and gives them back when they are
freed, until its sliding threshold has moved above their size (mallopt(3), M_MMAP_THRESHOLD). The
kernel fills each page with zeros when the process first writes to it. So the same call costs no
page fault or ten thousand, depending on what the process has allocated and freed before.

A *settled* heap keeps what it has, so no call depends on the process's past. A user gets the same
with the environment variables `VARIABLES`.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from ..cell import DEFAULT_HEAP
from . import kernel

_T = TypeVar("_T")

# Name -> (the linker's name of the library, Debian's package).
LIBRARIES = {
    "tcmalloc": ("tcmalloc_minimal", "libtcmalloc-minimal4"),
    "jemalloc": ("jemalloc", "libjemalloc2"),
}
# The C library's malloc, in a process that is started in the same way as with the others.
LIBC = "libc"

# The parameters of mallopt(3), from glibc's malloc.h, and what they are set to.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
_KEEP_BYTES = 2**31 - 1
_PAD_BYTES = 64 << 20
_PAGE_BYTES = 4096
_SETTINGS = {_M_MMAP_MAX: 0, _M_TRIM_THRESHOLD: _KEEP_BYTES, _M_TOP_PAD: _PAD_BYTES}


class _Mallinfo(ctypes.Structure):
    """`struct mallinfo2` of glibc's malloc.h. The fields are described in mallinfo2(3)."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


VARIABLES = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(_KEEP_BYTES),
    "MALLOC_TOP_PAD_": str(_PAD_BYTES),
}
"""The environment variables that settle the heap of a process from its start."""


def allocator() -> str:
    """The malloc of this process: a preloaded library's name, or the C library and its version."""
    maps = kernel.text(Path("/proc/self/maps"))
    if not maps:
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


def settle() -> str:
    """Tell malloc to keep its memory, from now on. Returns why that is not possible, or "".

    Call it before the process allocates tensors.
    """
    loaded = allocator()
    if loaded in LIBRARIES or loaded == "mimalloc":
        return f"{loaded} is loaded, which keeps its memory in its own way"
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return f"the C library ({loaded}) has no mallopt"
    taken = [mallopt(each, value) for each, value in _SETTINGS.items()]
    if not all(taken):
        return f"the C library ({loaded}) refuses mallopt"
    return ""


def touch() -> None:
    """Write once to all that malloc holds in reserve, so that no later call is the first to do so.

    Compiled code that frees many small blocks in another order than it takes them wanders through
    the reserve: a loop of 400 steps made 19 page faults a call in 900 calls, and then none. The
    reserve stays free, and the blocks in use stay where they are.
    """
    mallinfo2 = _mallinfo2()
    reserve = mallinfo2().keepcost - _PAGE_BYTES if mallinfo2 is not None else 0
    if reserve <= 0:
        return
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    block = libc.malloc(reserve)
    if block:
        ctypes.memset(block, 0, reserve)
        libc.free(block)


def held() -> tuple[int, int] | None:
    """Bytes that the C library's malloc has handed out, and bytes that it holds, over all arenas.

    Blocks that it took straight from the kernel count in both. None where the C library does not
    tell: mallinfo2(3) came with glibc 2.33.
    """
    mallinfo2 = _mallinfo2()
    if mallinfo2 is None:
        return None
    info = mallinfo2()
    return info.uordblks + info.hblkhd, info.arena + info.hblkhd


@cache
def _mallinfo2() -> Any:
    """The C library's function; None without one. Looked up once: that takes memory."""
    if not allocator().startswith("glibc"):
        return None
    try:
        function = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return None
    function.restype = _Mallinfo
    return function


# Since 3.11 CPython keeps the frames of Python functions in chunks of 16 KB. It maps a chunk when a
# call needs one, and gives the chunk back when that call returns (its function is
# ``_PyThreadState_BumpFramePointerSlow``). A model that is called where a chunk ends would pay for
# that in every call: 52 page faults for mobilenetv2_100. Where a chunk ends depends on how deep the
# caller is, and a measuring process is deeper than a user's script.
#
# Words of a frame. CPython maps a chunk of the next power of two bytes, which is 1 MB here. The
# half that this frame leaves is more than the frames of a thousand calls need.
_WORDS = 66_000


def with_room(call: Callable[[], _T]) -> _T:
    """What ``call`` returns. Half a megabyte for frames is mapped before, and is not given back
    until it returns.
    """
    return call()


with_room.__code__ = with_room.__code__.replace(co_stacksize=_WORDS)

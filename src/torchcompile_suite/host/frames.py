"""Room for Python's own frames, so that a measured call never takes memory for them.

Since 3.11 CPython keeps the frames of Python functions in chunks of 16 KB. It maps a chunk when a
call needs one, and gives the chunk back when that call returns (its function is
``_PyThreadState_BumpFramePointerSlow``). A model that is called where a chunk ends would pay for
that in every call: 52 page faults for mobilenetv2_100. Where a chunk ends depends on how deep the
caller is, and a measuring process is deeper than a user's script.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Words of a frame. CPython maps a chunk of the next power of two bytes, which is 1 MB here. The
# half that this frame leaves is more than the frames of a thousand calls need.
_WORDS = 66_000


def with_room(call: Callable[[], T]) -> T:
    """What ``call`` returns. Half a megabyte for frames is mapped before, and is not given back
    until it returns.
    """
    return call()


with_room.__code__ = with_room.__code__.replace(co_stacksize=_WORDS)

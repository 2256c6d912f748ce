"""Python's own frames: a call at the end of a chunk of frames takes no memory in each call."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable

import pytest

from torchcompile_suite.host import heap

CALLS = 200


def _deeper(depth: int, call: Callable[[], float]) -> float:
    return call() if depth == 0 else _deeper(depth - 1, call)


def _faults() -> float:
    """Page faults of a call that needs some frames."""

    def called() -> float:
        return _deeper(12, lambda: 0.0)

    called()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(CALLS):
        called()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / CALLS


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no chunks of frames")
def test_no_depth_of_the_caller_costs_page_faults() -> None:
    # A chunk has room for 100 to 200 of these frames: one of the depths is at its end.
    depths = range(0, 240, 4)
    assert max(_deeper(depth, _faults) for depth in depths) >= 1
    assert heap.with_room(lambda: max(_deeper(depth, _faults) for depth in depths)) < 0.5


def test_it_returns_and_raises_what_the_call_does() -> None:
    assert heap.with_room(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        heap.with_room(lambda: 1 / 0)

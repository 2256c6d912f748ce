"""``python -m evidence.peers.turns WORKLOAD SECONDS...``: eager and compiled calls in turns.

A turn lasts that many seconds or one call, and its first call is not counted; 0 is call by call,
everything counted. Prints for each of the turns' lengths ``[eager, compiled]``, seconds a call.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from evidence.peers import made

# Of each length, both modes together.
TIMED_S = 3.0


def in_turns(
    calls: tuple[Callable[..., Any], Callable[..., Any]], inputs: tuple[Any, ...], turn_s: float
) -> list[float]:
    """Medians over all counted calls of each."""
    found: tuple[list[float], list[float]] = ([], [])
    start = time.perf_counter()
    while time.perf_counter() - start < TIMED_S or len(found[1]) < 2:
        for call, seconds in zip(calls, found, strict=True):
            if turn_s:
                call(*inputs)
            begin = now = time.perf_counter()
            while True:
                call(*inputs)
                before, now = now, time.perf_counter()
                seconds.append(now - before)
                if now - begin >= turn_s:
                    break
    return [median(seconds) for seconds in found]


def main() -> None:
    """Measure and print."""
    module, inputs, compiled = made(sys.argv[1])
    with torch.inference_mode():
        for _ in range(20):
            module(*inputs)
            compiled(*inputs)
        gc.collect()
        gc.disable()
        print(
            json.dumps([in_turns((module, compiled), inputs, float(each)) for each in sys.argv[2:]])
        )


if __name__ == "__main__":
    main()

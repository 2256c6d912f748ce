"""``python -m evidence.peers.turns WORKLOAD SECONDS...``: eager and compiled calls in turns.

A turn lasts that many seconds or one call. Prints a list for each of the turns' lengths, as JSON:
the time ratio for each of `SETTLES` that fits in, from the calls that began when their turn was so
old.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import fmean
from typing import Any

import torch

from evidence.peers import SETTLES, made
from torchcompile_suite.analysis import statistics

# Of each length, both modes together, as long as a launch of ours; but always two of each.
TIMED_S = 4.0
TURNS = 2

Turn = list[tuple[float, float]]


def turn(call: Callable[[], Any], seconds: float) -> Turn:
    """When each call began, counted from the turn's start, and how long it took."""
    found = []
    start = begin = time.perf_counter()
    while True:
        call()
        end = time.perf_counter()
        found.append((begin - start, end - begin))
        if end - start >= seconds:
            return found
        begin = end


def call_s(one: Turn, settle_s: float) -> float:
    """Mean seconds of the calls that count: at least the last."""
    return fmean([seconds for begin, seconds in one if begin >= settle_s] or [one[-1][1]])


def ratios(calls: tuple[Callable[[], Any], Callable[[], Any]], seconds: float) -> list[float]:
    """Of turns of that length, for each settling time that fits in."""
    found: list[tuple[Turn, Turn]] = []
    start = time.perf_counter()
    while time.perf_counter() - start < TIMED_S or len(found) < TURNS:
        # The order alternates, as in our launches.
        order = -1 if len(found) % 2 else 1
        eager, mode = [turn(call, seconds) for call in calls[::order]][::order]
        found.append((eager, mode))
    return [
        statistics.launch_ratio(
            [(call_s(eager, settle_s), call_s(mode, settle_s)) for eager, mode in found]
        )
        for settle_s in SETTLES
        if settle_s < seconds or not settle_s
    ]


def main() -> None:
    """Measure and print."""
    module, inputs, compiled = made(sys.argv[1])
    with torch.inference_mode():
        calls = (partial(module, *inputs), partial(compiled, *inputs))
        for _ in range(20):
            for call in calls:
                call()
        gc.collect()
        gc.disable()
        print(json.dumps([ratios(calls, float(each)) for each in sys.argv[2:]]))


if __name__ == "__main__":
    main()

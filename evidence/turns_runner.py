"""``python -m evidence.peers.turns WORKLOAD SECONDS...``: eager and compiled calls in turns.

A turn lasts SECONDS, or one call if that is longer. Prints as JSON a list for each length of a
turn: the time ratio for each of `SETTLES` that is shorter than the turn. Calls that begin before
the settling time is over do not count.
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

from evidence.peers import SETTLES, build
from torchcompile_suite.analysis import statistics

# For each length of a turn: seconds of both modes together, as in a launch of the suite, and at
# least this many pairs of turns.
TIMED_S = 4.0
TURNS = 2

Turn = list[tuple[float, float]]


def turn(call: Callable[[], Any], seconds: float) -> Turn:
    """The calls of one turn: seconds from the start of the turn to each call, and its duration."""
    calls = []
    start = begin = time.perf_counter()
    while True:
        call()
        end = time.perf_counter()
        calls.append((begin - start, end - begin))
        if end - start >= seconds:
            return calls
        begin = end


def call_s(calls: Turn, settle_s: float) -> float:
    """Mean seconds of the calls that count. The last call always counts."""
    return fmean([seconds for begin, seconds in calls if begin >= settle_s] or [calls[-1][1]])


def ratios(calls: tuple[Callable[[], Any], Callable[[], Any]], seconds: float) -> list[float]:
    """The time ratios with turns of this length, for each settling time shorter than a turn."""
    turns: list[tuple[Turn, Turn]] = []
    start = time.perf_counter()
    while time.perf_counter() - start < TIMED_S or len(turns) < TURNS:
        # The order alternates, as in our launches.
        order = -1 if len(turns) % 2 else 1
        eager, mode = [turn(call, seconds) for call in calls[::order]][::order]
        turns.append((eager, mode))
    return [
        statistics.launch_ratio(
            [(call_s(eager, settle_s), call_s(mode, settle_s)) for eager, mode in turns]
        )
        for settle_s in SETTLES
        if settle_s < seconds or not settle_s
    ]


def main() -> None:
    """Measure and print."""
    module, inputs, compiled = build(sys.argv[1])
    with torch.inference_mode():
        calls = (partial(module, *inputs), partial(compiled, *inputs))
        for _ in range(20):
            for call in calls:
                call()
        gc.collect()
        gc.disable()
        print(json.dumps([ratios(calls, float(seconds)) for seconds in sys.argv[2:]]))


if __name__ == "__main__":
    main()

"""Runs in the environment of a release: eager and compiled calls in turns, in one process.

    python -m evidence.turns_runner WORKLOAD SECONDS...

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

from torchcompile_suite import workloads
from torchcompile_suite.analysis import statistics

# Seconds at the start of a turn whose calls do not count.
SETTLES = (0.0, 0.01, 0.02, 0.03, 0.05, 0.1)
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
    import torch

    torch.manual_seed(0)
    module, inputs = workloads.get(sys.argv[1]).build(1)
    module.eval()
    with torch.inference_mode():
        calls = (partial(module, *inputs), partial(torch.compile(module), *inputs))
        for _ in range(20):
            for call in calls:
                call()
        gc.collect()
        gc.disable()
        print(json.dumps([ratios(calls, float(seconds)) for seconds in sys.argv[2:]]))


if __name__ == "__main__":
    main()

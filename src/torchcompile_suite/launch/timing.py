"""How calls are timed: one by one in warm-up, then in turns of eager and the mode."""

from __future__ import annotations

import gc
import math
import time
from statistics import fmean

from ..analysis import statistics
from ..cell import Plan
from .calibration import CalibrationLoop
from .device import Device
from .subject import Call

# Calls for the peak memory: the second one meets a warm allocator. If the first takes longer than
# the limit, it is the only one: the warm-up has run before.
MEMORY_CALLS = 3
MEMORY_LIMIT_S = 3.0
# Time between two readings of the clock. One short call alone would measure mostly the clock and
# the interpreter.
SAMPLE_S = 0.01
# Calls of at least this many times `Plan.settle_s` need no settling: what the other mode left in
# the caches is under 1 % of their time, and calls that do not count would double the time.
LONG_CALL = 10


def timed(call: Call, on: Device, count: int = 1) -> float:
    """Seconds a call, over ``count`` calls. The device is idle at both readings of the clock."""
    on.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        call()
    on.synchronize()
    return (time.perf_counter() - start) / count


def warm_up(call: Call, on: Device, plan: Plan) -> tuple[list[float], bool]:
    """Call until steady or until the plan's limit. Returns the seconds of each call, and whether
    the calls became steady.
    """
    calls_s: list[float] = []
    deadline = time.perf_counter() + plan.warm_up_limit_s
    while True:
        calls_s.append(timed(call, on))
        if statistics.is_steady(calls_s):
            return calls_s, True
        if time.perf_counter() > deadline:
            return calls_s, False


def peak_memory_bytes(call: Call, on: Device) -> int | None:
    """The peak memory of a few steady calls."""
    gc.collect()
    on.reset_peak_memory()
    deadline = time.perf_counter() + MEMORY_LIMIT_S
    for _ in range(MEMORY_CALLS):
        call()
        on.synchronize()
        if time.perf_counter() > deadline:
            break
    return on.peak_memory_bytes()


class Turn:
    """Times calls of eager or of the mode, between turns of the other one.

    The first calls of a turn do not count: they run on caches and branch predictors that the other
    one has filled, which does not happen to a user who runs only one of them. Without settling, the
    compiled calls of a convolutional network were 10 % slower.
    """

    def __init__(self, on: Device, plan: Plan, shorter_s: float, longer_s: float) -> None:
        """``shorter_s`` and ``longer_s``: seconds of a steady call of the two."""
        self._on = on
        self._turn_s = plan.turn_s
        self._settle_s = plan.settle_s if longer_s < LONG_CALL * plan.settle_s else 0.0
        self.count = max(1, math.ceil(SAMPLE_S / shorter_s))

    def __call__(self, call: Call) -> float:
        """Seconds a call: the mean of the calls that count."""
        self._samples(call, self._settle_s)
        return rounded(fmean(self._samples(call, self._turn_s)))

    def _samples(self, call: Call, seconds: float) -> list[float]:
        """Seconds a call in each sample, until the samples have taken that many seconds."""
        samples: list[float] = []
        while self.count * math.fsum(samples) < seconds:
            samples.append(timed(call, self._on, self.count))
        return samples


def pairs(
    eager: Call, mode: Call, turn: Turn, plan: Plan, calibration: CalibrationLoop
) -> list[tuple[float, float]]:
    """Turns of both in alternating order, until the plan is met; a calibration before each pair."""
    pairs_s: list[tuple[float, float]] = []
    # As timeit does: a garbage collection would count against the call in which it starts.
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        while True:
            calibration()
            if len(pairs_s) % 2:
                mode_s = turn(mode)
                pairs_s.append((turn(eager), mode_s))
            else:
                eager_s = turn(eager)
                pairs_s.append((eager_s, turn(mode)))
            spent = time.perf_counter() - start
            enough = len(pairs_s) >= plan.min_pairs and spent >= plan.min_timed_s
            if enough or spent >= plan.max_timed_s:
                return pairs_s
    finally:
        gc.enable()


def rounded(seconds: float) -> float:
    """Six significant digits: finer than the noise of any clock, and half the bytes in a record."""
    return float(f"{seconds:.6g}")

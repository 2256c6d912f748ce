"""Plain ASV classes: time, memory and compile time, compiled in setup."""

from __future__ import annotations

import os
import time

import torch

from evidence.peers import ROUNDS, WORKLOAD_VARIABLE, build

WORKLOAD = os.environ[WORKLOAD_VARIABLE]


class Inference:
    """Eager and compiled calls."""

    params = ("eager", "compiled")
    param_names = ("mode",)
    timeout = 900
    rounds = ROUNDS

    def setup(self, mode: str) -> None:
        """Build, and call once."""
        module, self.inputs, compiled = build(WORKLOAD)
        self.call = compiled if mode == "compiled" else module
        with torch.inference_mode():
            self.call(*self.inputs)

    def time_call(self, _mode: str) -> None:
        """Seconds a call."""
        with torch.inference_mode():
            self.call(*self.inputs)

    def peakmem_call(self, mode: str) -> None:
        """The process's largest resident set."""
        self.time_call(mode)


class Compilation:
    """The first compiled call."""

    timeout = 900
    unit = "seconds"

    def track_compile(self) -> float:
        """Seconds more than the second call."""
        _, inputs, compiled = build(WORKLOAD)
        seconds = []
        with torch.inference_mode():
            for _ in range(2):
                start = time.perf_counter()
                compiled(*inputs)
                seconds.append(time.perf_counter() - start)
        return seconds[0] - seconds[1]

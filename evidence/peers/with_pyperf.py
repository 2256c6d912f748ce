"""A pyperf script: eager and compiled calls, each process building what it calls."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import pyperf

from evidence.peers import WORKLOAD_VARIABLE, made


@cache
def _call(compiled: bool) -> Callable[[], Any]:
    module, inputs, compiled_module = made(os.environ[WORKLOAD_VARIABLE])
    call = compiled_module if compiled else module
    return lambda: call(*inputs)


def call(compiled: bool) -> None:
    """One call; the first in a process builds and compiles, which pyperf's warm-up throws away."""
    import torch

    with torch.inference_mode():
        _call(compiled)()


if __name__ == "__main__":
    runner = pyperf.Runner()
    for mode in ("eager", "compiled"):
        runner.bench_func(mode, call, mode == "compiled")

"""A pyperf script: eager and compiled calls. Each process builds the module that it calls."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import pyperf

from evidence.peers import WORKLOAD_VARIABLE, build


@cache
def _call(compiled: bool) -> Callable[[], Any]:
    module, inputs, compiled_module = build(os.environ[WORKLOAD_VARIABLE])
    call = compiled_module if compiled else module
    return lambda: call(*inputs)


def call(compiled: bool) -> None:
    """One call. The first one in a process builds and compiles; pyperf's warm-up discards it."""
    import torch

    with torch.inference_mode():
        _call(compiled)()


if __name__ == "__main__":
    runner = pyperf.Runner()
    for mode in ("eager", "compiled"):
        runner.bench_func(mode, call, mode == "compiled")

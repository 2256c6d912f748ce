"""Workloads that fail, each in another way, and some that do not. Tests load this file."""

from __future__ import annotations

from typing import Any

from torchcompile_suite.workloads import workload


def module(forward: Any) -> Any:
    import torch

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(16, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return forward(self.layer, x)

    return Module(), (torch.randn(4, 16),)


@workload("well", family="tests")
def well(batch_size: int) -> Any:
    return module(lambda layer, x: layer(x).relu())


@workload("drawn", family="tests")
def drawn(batch_size: int) -> Any:
    """Draws constants that no checkpoint has."""
    import random
    import sys

    scale = random.random() + float(sys.modules["numpy"].random.random())
    return module(lambda layer, x: layer(x) * scale)


@workload("unrolled", family="tests")
def unrolled(batch_size: int) -> Any:
    """Dynamo unrolls the loop: the graph has so many operators that no machine compiles it in a
    minute.
    """
    import torch

    def forward(layer: Any, x: torch.Tensor) -> torch.Tensor:
        for _ in range(6000):
            x = torch.tanh(layer(x))
        return x

    return module(forward)


def _sizes(batch_size: int) -> Any:
    import torch

    return [(torch.randn(batch_size, 16, width),) for width in (16, 24, 32, 40, 48, 56)]


@workload("shapes", family="tests", stream=_sizes)
def shapes(batch_size: int) -> Any:
    """With inputs of any size, so that a process can have many graphs of it."""
    made, _ = module(lambda layer, x: (x * 2 + 1).relu().sum(-1))
    return made, _sizes(batch_size)[0]


@workload("leaking", family="tests")
def leaking(batch_size: int) -> Any:
    """Keeps 16 KiB of each call that is not compiled."""
    import torch

    kept: list[torch.Tensor] = []

    def forward(layer: Any, x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_compiling():
            kept.append(torch.ones(4096))
        return layer(x).relu()

    return module(forward)


@workload("large", family="tests")
def large(batch_size: int) -> Any:
    import torch

    made, _ = module(lambda layer, x: (x * 2 + 1).relu())
    return made, (torch.randn(12 << 20),)


@workload("wrong", family="tests")
def wrong(batch_size: int) -> Any:
    import torch

    def forward(layer: Any, x: torch.Tensor) -> torch.Tensor:
        return layer(x) + 1 if torch.compiler.is_compiling() else layer(x)

    return module(forward)


@workload("greedy", family="tests")
def greedy(batch_size: int) -> Any:
    import torch

    return module(lambda layer, x: layer(x) + torch.empty(1 << 55, dtype=torch.uint8)[0])


@workload("slow", family="tests")
def slow(batch_size: int) -> Any:
    import os
    import subprocess
    import time

    # Like a compiler that hangs: it must end with the launch that started it.
    subprocess.Popen(["sleep", os.environ["TESTS_SLEEP_S"]])
    time.sleep(1000)
    raise AssertionError


@workload("suicidal", family="tests")
def suicidal(batch_size: int) -> Any:
    import os
    import signal

    os.kill(os.getpid(), signal.SIGSEGV)


@workload("killed", family="tests")
def killed(batch_size: int) -> Any:
    import os
    import signal

    os.kill(os.getpid(), signal.SIGKILL)


@workload("raising", family="tests")
def raising(batch_size: int) -> Any:
    raise ValueError("the <b>first</b> line\nthe second line")


@workload("chatty", family="tests")
def chatty(batch_size: int) -> Any:
    import os

    print("on Python's stdout", flush=True)
    os.write(1, b"on descriptor 1\n")
    return well(batch_size)


@workload("uncompilable", family="tests")
def uncompilable(batch_size: int) -> Any:
    import torch

    def forward(layer: Any, x: torch.Tensor) -> torch.Tensor:
        if torch.compiler.is_compiling():
            torch._dynamo.graph_break()
            raise RuntimeError("this cannot be compiled")
        return layer(x)

    return module(forward)


@workload("skipped", family="tests")
def skipped(batch_size: int) -> Any:
    """With a backend that refuses each graph, as Inductor refuses bfloat16 before Ampere."""
    import torch
    from torch._dynamo.exc import SkipFrame

    def skipping(graph: Any, inputs: Any) -> Any:
        raise SkipFrame("BF16 is not supported")

    torch._dynamo.register_backend(skipping)
    return well(batch_size)


@workload("disabled", family="tests")
def disabled(batch_size: int) -> Any:
    """Its forward is not for Dynamo."""
    import torch

    made, inputs = well(batch_size)
    type(made).forward = torch._dynamo.disable(type(made).forward)
    return made, inputs

"""Models to attribute, and faults planted in Inductor. Tests give this file to the suite.

The variable `FAULT` names a fault; without it there is none.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from torchcompile_suite.workloads import workload

FAULT = "TORCHCOMPILE_SUITE_TEST_FAULT"


@workload("conv_net", family="tests", also=("training",))
def conv_net(batch_size: int) -> Any:
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 32, 3)
            self.bn = torch.nn.BatchNorm2d(32)
            self.head = torch.nn.Linear(32, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.relu(self.bn(self.conv(x)))
            return self.head(x.mean((2, 3)))

    return Net(), (torch.randn(batch_size, 3, 96, 96),)


@workload("pointwise_net", family="tests")
def pointwise_net(batch_size: int) -> Any:
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(256, 256)
            self.second = torch.nn.Linear(256, 256)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.nn.functional.gelu(self.first(x))
            x = torch.softmax(self.second(x), dim=-1)
            return torch.sin(x) * torch.cos(x) + x

    return Net(), (torch.randn(512 * batch_size, 256),)


def _scalar_loops() -> None:
    """No loop is vectorised."""
    import torch._inductor.config

    torch._inductor.config.cpp.simdlen = 1


def _slow_library() -> None:
    """A convolution is computed ten times."""
    from torch._inductor.select_algorithm import extern_kernels

    fast = extern_kernels.convolution

    def slow(*arguments: Any, **options: Any) -> Any:
        for _ in range(9):
            fast(*arguments, **options)
        return fast(*arguments, **options)

    extern_kernels.convolution = slow


def _dear_buffers() -> None:
    """Beside each buffer of the generated code, a large one is filled."""
    from torch._inductor.codegen import wrapper

    writer = getattr(wrapper, "PythonWrapperCodegen", None) or wrapper.WrapperCodeGen
    make = writer.make_allocation

    def dear(*arguments: Any, **options: Any) -> str:
        return f"{make(*arguments, **options)}; torch.zeros(1 << 22)"

    writer.make_allocation = dear


def _slow_entry() -> None:
    """A compiled module waits before each call."""
    import time

    import torch

    compiled = torch.nn.Module.__call__
    wait_s = 0.02

    def slow(self: Any, *arguments: Any, **options: Any) -> Any:
        if type(self).__name__ == "OptimizedModule":
            end_s = time.perf_counter() + wait_s
            while time.perf_counter() < end_s:
                pass
        return compiled(self, *arguments, **options)

    torch.nn.Module.__call__ = slow


FAULTS: dict[str, Callable[[], None]] = {
    "scalar loops": _scalar_loops,
    "slow library": _slow_library,
    "dear buffers": _dear_buffers,
    "slow entry": _slow_entry,
}
if fault := os.environ.get(FAULT):
    FAULTS[fault]()

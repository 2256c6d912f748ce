"""Workloads with a real fault: slower compiled code, or a slower compiler.

TORCHCOMPILE_SUITE_WORKLOADS names this file to the suite. The size of each fault, in seconds, comes
from the environment, because it is a share of what the healthy workload takes on the machine.
"""

from __future__ import annotations

import os
import time
from typing import Any

from evidence.faults import CALL_VARIABLE, COMPILE_VARIABLE, HEALTHY, SLIGHT_CALL_VARIABLE
from torchcompile_suite import workloads
from torchcompile_suite.workloads import workload


def _spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def _slower_call(batch_size: int, seconds: float) -> Any:
    """The healthy model. Only its compiled form wastes time, at the end of a call."""
    import torch

    @torch.library.custom_op(  # type: ignore[untyped-decorator]
        "evidence::waste", mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    def waste(x: torch.Tensor) -> torch.Tensor:
        _spin(seconds)
        return x.clone()

    @waste.register_fake  # type: ignore[untyped-decorator]
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    healthy, inputs = workloads.get(HEALTHY).build(batch_size)

    class Slower(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = healthy

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.inner(x)
            return waste(y) if torch.compiler.is_compiling() else y

    return Slower(), inputs


@workload("slower_call", family="injected", imports=("timm",))
def slower_call(batch_size: int) -> Any:
    """The healthy model with a slower compiled call."""
    return _slower_call(batch_size, float(os.environ[CALL_VARIABLE]))


@workload("slightly_slower_call", family="injected", imports=("timm",))
def slightly_slower_call(batch_size: int) -> Any:
    """The healthy model with a slightly slower compiled call."""
    return _slower_call(batch_size, float(os.environ[SLIGHT_CALL_VARIABLE]))


@workload("slower_compile", family="injected", imports=("timm",))
def slower_compile(batch_size: int) -> Any:
    """The healthy model. Inductor wastes time each time it compiles a graph."""
    import torch

    seconds = float(os.environ[COMPILE_VARIABLE])
    real_compile = torch.compile

    def compile_with_waste(*arguments: Any, **options: Any) -> Any:
        # Imported here and not earlier: the import of the compiler is part of the compile cost,
        # and is timed before this function is called.
        from torch._inductor import compile_fx

        real = compile_fx.compile_fx

        def slower(*inner: Any, **inner_options: Any) -> Any:
            _spin(seconds)
            return real(*inner, **inner_options)

        compile_fx.compile_fx = slower
        return real_compile(*arguments, **options)

    torch.compile = compile_with_waste
    return workloads.get(HEALTHY).build(batch_size)

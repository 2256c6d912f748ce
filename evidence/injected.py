"""A workload with a real fault: slower compiled code.

TORCHCOMPILE_SUITE_WORKLOADS names this file to the suite. The size of the fault, in seconds, comes
from the environment, because it is a share of what the healthy workload takes on the machine.
"""

from __future__ import annotations

import os
import time
from typing import Any

from evidence.faults import CALL_VARIABLE, FAULTY, HEALTHY
from torchcompile_suite import workloads
from torchcompile_suite.workloads import workload


def _spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


@workload(FAULTY, family="injected", imports=("timm",))
def slower_call(batch_size: int) -> Any:
    """The healthy model. Only its compiled form wastes time, at the end of a call."""
    import torch

    seconds = float(os.environ[CALL_VARIABLE])

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

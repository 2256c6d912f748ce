"""Other tools that measure, each used as is common: see `evidence.cost`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# The name of the workload. pyperf and ASV pass no other arguments to the processes they start.
WORKLOAD_VARIABLE = "EVIDENCE_WORKLOAD"
# Seconds at the start of a turn whose calls do not count.
SETTLES = (0.0, 0.01, 0.02, 0.03, 0.05, 0.1)
# Processes that ASV starts in one run; fewer give no interval.
ROUNDS = 3


def build(name: str) -> tuple[Any, tuple[Any, ...], Callable[..., Any]]:
    """The module of a workload, its inputs, and the compiled module, not yet called."""
    import torch

    from torchcompile_suite import workloads

    torch.manual_seed(0)
    module, inputs = workloads.get(name).build(1)
    assert isinstance(inputs, tuple)
    return module.eval(), inputs, torch.compile(module)

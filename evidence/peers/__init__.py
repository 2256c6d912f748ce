"""What others measure with, each as it is commonly written: see `evidence.cost`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Whose value is the workload's name; pyperf and ASV start processes that get no other arguments.
WORKLOAD_VARIABLE = "EVIDENCE_WORKLOAD"
# Seconds at the start of a turn whose calls do not count.
SETTLES = (0.0, 0.01, 0.02, 0.03, 0.05, 0.1)
# Processes that ASV makes at once; fewer give no interval.
ROUNDS = 3


def made(name: str) -> tuple[Any, tuple[Any, ...], Callable[..., Any]]:
    """A workload's module, its inputs, and `torch.compile` of it, which has not been called yet."""
    import torch

    from torchcompile_suite import workloads

    torch.manual_seed(0)
    module, inputs = workloads.get(name).build(1)
    assert isinstance(inputs, tuple)
    return module.eval(), inputs, torch.compile(module)

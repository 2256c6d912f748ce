"""control_flow: Python statements that a graph cannot hold, or that make it large."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import workload

if TYPE_CHECKING:
    import torch

    from . import Built

WIDTH = 256
STEPS = 32


def _other_branch(batch_size: int) -> list[tuple[Any, ...]]:
    import torch

    return [(-torch.rand(batch_size, WIDTH),)]


@workload(
    "branch_on_value", family="control_flow", core=("inference", "tracing"), cases=_other_branch
)
def branch_on_value(batch_size: int) -> Built:
    """Takes one of two branches by the sign of its input's sum, which is known only at run time."""
    import torch
    from torch import nn

    class Branch(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(WIDTH, WIDTH)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.layer(x) + x
            if x.sum() > 0:
                return torch.relu(x)
            return torch.sigmoid(x) - 2

    return Branch(), (torch.rand(batch_size, WIDTH),)


class _Sink:
    """A stream that discards its text."""

    def write(self, text: str) -> int:
        return len(text)


@workload("side_effect", family="control_flow")
def side_effect(batch_size: int) -> Built:
    """Prints between two layers, like a forgotten debugging aid."""
    import torch
    from torch import nn

    sink = _Sink()

    class Talkative(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(WIDTH, WIDTH)
            self.second = nn.Linear(WIDTH, WIDTH)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.relu(self.first(x))
            print("half way", file=sink)
            return torch.sigmoid(self.second(x))

    return Talkative(), (torch.randn(batch_size, WIDTH),)


@workload("shape_loop", family="control_flow")
def shape_loop(batch_size: int) -> Built:
    """A recurrence with one step for each position of the input. Capture must unroll the loop.

    Maps (batch_size, 32, 256) to (batch_size, 256).
    """
    import torch
    from torch import nn

    class Recurrence(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(WIDTH, WIDTH)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            state = torch.zeros_like(x[:, 0])
            for step in range(x.shape[1]):
                state = torch.tanh(self.layer(state) + x[:, step])
            return state

    return Recurrence(), (torch.randn(batch_size, STEPS, WIDTH),)

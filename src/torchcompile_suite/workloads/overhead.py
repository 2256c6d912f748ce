"""overhead: graphs of small operators, whose arithmetic is nothing beside what a call costs.

Each operator works on 16 floats for each element of the batch, which is one vector register. So the
time of a call is that of Python, the dispatcher, guards and wrappers. A name is small_ + number of
operators + x + number of inputs. Every operator reads one of the inputs, in turns, so no input is
unused: the compiler checks guards of used inputs only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import workload

if TYPE_CHECKING:
    import torch

    from . import Built

WIDTH = 16
# Operators, inputs, and whether a bare `asv run` measures the workload.
SIZES = (
    (1, 1, True),
    (10, 1, False),
    (100, 1, True),
    (1000, 1, False),
    (10, 10, False),
    (100, 10, False),
    (1000, 10, False),
    (100, 100, False),
    (1000, 100, False),
)


def build(batch_size: int, operators: int, inputs: int) -> Built:
    """A chain of operators over that many inputs of shape (batch_size, 16)."""
    import torch

    class Chain(torch.nn.Module):  # type: ignore[misc]
        def forward(self, *given: torch.Tensor) -> torch.Tensor:
            x = given[0]
            for number in range(operators):
                # One operator of the dispatcher. The factor keeps the values small.
                x = torch.add(given[number % inputs], x, alpha=0.5)
            return x

    return Chain(), tuple(torch.randn(inputs, batch_size, WIDTH).unbind(0))


for _operators, _inputs, _in_core in SIZES:
    workload(
        f"small_{_operators}x{_inputs}",
        family="overhead",
        core=("overhead",) if _in_core else (),
        also=("overhead",),
    )(lambda batch_size, operators=_operators, inputs=_inputs: build(batch_size, operators, inputs))

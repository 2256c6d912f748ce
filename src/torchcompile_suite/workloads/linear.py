"""linear: one large matrix times a vector, as in a decoder of billions of weights.

At batch 1 the call reads each weight once, so its time is that of memory. This is where smaller
weights help most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import workload

if TYPE_CHECKING:
    from . import Built

WIDTH = 4096


@workload("linear_4096", family="linear", core=("quantisation",))
def linear_4096(batch_size: int) -> Built:
    """4096 x 4096 weights, 64 MiB in float32, on (batch_size, 4096)."""
    import torch

    return torch.nn.Linear(WIDTH, WIDTH), (torch.randn(batch_size, WIDTH),)

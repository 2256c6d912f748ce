"""Workloads of a few operators, of two families.

fusion: a fusing compiler should turn them into one kernel. In the smallest, launch overhead
dominates. The largest do not fit in any cache, so memory traffic dominates. Fusion reduces both.

linear: one large matrix times a vector, as in a decoder of billions of weights. At batch 1 the call
reads each weight once, so its time is that of memory. This is where smaller weights help most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import attention, workload

if TYPE_CHECKING:
    import torch

    from . import Built

# The width of the linear layer.
WIDTH = 4096


def _squares(batch_size: int) -> list[tuple[Any, ...]]:
    """Six requests of different sizes."""
    import torch

    sizes = (40, 100, 52, 116, 64, 128)
    return [tuple(torch.randn(2, batch_size, size, size).unbind()) for size in sizes]


@workload(
    "softmax_matmul",
    family="fusion",
    core=("inference", "guards", "memory_over_time"),
    also=("protocol", "starts"),
    stream=_squares,
)
def softmax_matmul(batch_size: int) -> Built:
    """softmax(x @ y), both (batch_size, 100, 100): so small that the call's overhead dominates."""
    import torch

    class SoftmaxMatmul(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x @ y, dim=-1)

    return SoftmaxMatmul(), (
        torch.randn(batch_size, 100, 100),
        torch.randn(batch_size, 100, 100),
    )


def _entropy(batch_size: int, rows: int) -> Built:
    import torch

    class Entropy(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            p = torch.softmax(x, dim=-1)
            return -(p * torch.log(p)).sum(dim=-1)

    return Entropy(), (torch.randn(batch_size, rows, 1024),)


@workload("entropy_in_cache", family="fusion")
def entropy_in_cache(batch_size: int) -> Built:
    """Softmax, log, product and sum over rows of (batch_size, 64, 1024): 256 KiB."""
    return _entropy(batch_size, 64)


@workload("entropy_in_memory", family="fusion")
def entropy_in_memory(batch_size: int) -> Built:
    """The same over (batch_size, 32768, 1024): 128 MiB, more than a cache holds."""
    return _entropy(batch_size, 32768)


@workload(
    "pointwise_chain",
    family="fusion",
    core=("inference", "allocator", "default_heap"),
    also=("backends",),
)
def pointwise_chain(batch_size: int) -> Built:
    """Nine pointwise operators in a row on (batch_size, 1024, 1024) floats of 4 MiB. Eager writes
    and reads eight intermediate results of that size; a fused kernel writes none.
    """
    import torch

    class PointwiseChain(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            gate = torch.sigmoid(x * 1.5 + 0.5)
            return torch.relu(x * gate - 0.1).square().neg().exp()

    return PointwiseChain(), (torch.randn(batch_size, 1024, 1024),)


@workload("layernorm_gelu", family="fusion")
def layernorm_gelu(batch_size: int) -> Built:
    """LayerNorm, then GELU, over (batch_size, 1024, 768) tokens."""
    import torch
    from torch import nn

    return nn.Sequential(nn.LayerNorm(768), nn.GELU()), (torch.randn(batch_size, 1024, 768),)


@workload("attention_spelled_out", family="fusion")
def attention_spelled_out(batch_size: int) -> Built:
    """Scaled dot-product attention by hand: q, k and v are (batch_size, 8, 256, 64)."""
    return attention.build(batch_size, "spelled_out", 256)


@workload("linear_4096", family="linear", core=("quantisation",))
def linear_4096(batch_size: int) -> Built:
    """4096 x 4096 weights, 64 MiB in float32, on (batch_size, 4096)."""
    import torch

    return torch.nn.Linear(WIDTH, WIDTH), (torch.randn(batch_size, WIDTH),)

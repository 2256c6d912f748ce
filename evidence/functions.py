"""Two functions beside the models: one fuses into a single kernel, one is mostly overhead.

Named to the suite by TORCHCOMPILE_SUITE_WORKLOADS, so that they are no part of the published axis.
"""

from __future__ import annotations

from typing import Any

from torchcompile_suite.workloads import workload


@workload("pointwise_chain", family="evidence")
def pointwise_chain(batch_size: int) -> Any:
    """Nine pointwise operators in a row on (batch_size, 1024, 1024) floats, 4 MiB each: eager
    writes and reads eight intermediate results of that size, a fused kernel none.
    """
    import torch

    class PointwiseChain(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            gate = torch.sigmoid(x * 1.5 + 0.5)
            return torch.relu(x * gate - 0.1).square().neg().exp()

    return PointwiseChain(), (torch.randn(batch_size, 1024, 1024),)


@workload("softmax_matmul", family="evidence")
def softmax_matmul(batch_size: int) -> Any:
    """softmax(x @ y), each (batch_size, 100, 100): so small that calling it costs most."""
    import torch

    class SoftmaxMatmul(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x @ y, dim=-1)

    return SoftmaxMatmul(), (
        torch.randn(batch_size, 100, 100),
        torch.randn(batch_size, 100, 100),
    )

"""neural_operator: small convolutional networks with dropout and noise.

They follow a project's performance note from December 2025. The note measures a 4-layer network
with 64 channels on inputs of 5 x 3 x 128 x 128, in eager and with max-autotune, with PyTorch 2.9.1
(cu128) on an RTX 3060 Ti. Each layer is convolution, normalisation, GELU, dropout and added
Gaussian noise. Dropout and noise stay on in eval mode, because the note's project uses the networks
to generate random data. The claims cite the note as 003_32e60b92b4945e96.txt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import workload

if TYPE_CHECKING:
    import torch

    from . import Built

CHANNELS = 64
SIZE = 128
DROPOUT = 0.1
NOISE = 0.05


def operator(
    batch_size: int, layers: int = 4, norm: str = "instance", stochastic: bool = True
) -> Built:
    """A network with that many layers; maps (batch_size, 3, 128, 128) to the same shape."""
    import torch
    from torch import nn

    class Layer(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1)
            self.norm = (
                nn.InstanceNorm2d(CHANNELS, affine=True)
                if norm == "instance"
                else nn.GroupNorm(8, CHANNELS)
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = nn.functional.gelu(self.norm(self.conv(x)))
            if stochastic:
                x = nn.functional.dropout(x, DROPOUT, training=True)
                x = x + NOISE * torch.randn_like(x)
            return x

    body = [Layer() for _ in range(layers)]
    module = nn.Sequential(
        nn.Conv2d(3, CHANNELS, 3, padding=1), *body, nn.Conv2d(CHANNELS, 3, 3, padding=1)
    )
    return module, (torch.randn(batch_size, 3, SIZE, SIZE),)


@workload(
    "operator_stochastic",
    family="neural_operator",
    core=("inference",),
    also=("training", "default_heap", "precision"),
)
def operator_stochastic(batch_size: int) -> Built:
    """Four layers, InstanceNorm, dropout and noise: the note's network."""
    return operator(batch_size)


@workload("operator_deterministic", family="neural_operator")
def operator_deterministic(batch_size: int) -> Built:
    """The same network without dropout and noise: shows what the randomness costs."""
    return operator(batch_size, stochastic=False)


@workload("operator_12_layers", family="neural_operator")
def operator_12_layers(batch_size: int) -> Built:
    """The same with 12 layers: shows whether fusion gains with depth."""
    return operator(batch_size, layers=12)


@workload("operator_groupnorm", family="neural_operator")
def operator_groupnorm(batch_size: int) -> Built:
    """GroupNorm with 8 groups instead of InstanceNorm."""
    return operator(batch_size, norm="group")

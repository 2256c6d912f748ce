"""vit: plain vision transformers, in the three sizes of a research note from July 2025.

The note reports 42 experiments with ViT inference on a GPU that it does not name. It
compares the modes ``default``, ``reduce-overhead`` and ``max-autotune`` for a small, a medium and
a large ViT. It gives only their sizes, so the models here are written with torch's own layers:
patch embedding, pre-norm encoder, mean over patches, linear head. A name is vit + patch x depth x
width. The claims cite the note as 002_27a9813f24ae8bd9.txt.

Three more have one small width, and 6, 12 and 24 equal blocks: from how many blocks does it pay to
compile the block once?
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import workload

if TYPE_CHECKING:
    import torch

    from . import Built

IMAGE = 224
CLASSES = 1000
HEAD_WIDTH = 64


def vit(patch: int, depth: int, width: int) -> torch.nn.Module:
    """A ViT over 224 x 224 RGB images; maps (batch, 3, 224, 224) to (batch, 1000)."""
    import torch
    from torch import nn

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.heads = width // HEAD_WIDTH
            self.norm1 = nn.LayerNorm(width)
            self.qkv = nn.Linear(width, 3 * width)
            self.proj = nn.Linear(width, width)
            self.norm2 = nn.LayerNorm(width)
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            batch, tokens, _ = x.shape
            qkv = self.qkv(self.norm1(x)).view(batch, tokens, 3, self.heads, HEAD_WIDTH)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            attended = nn.functional.scaled_dot_product_attention(q, k, v)
            x = x + self.proj(attended.transpose(1, 2).reshape(batch, tokens, width))
            return x + self.mlp(self.norm2(x))

    class ViT(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Conv2d(3, width, patch, stride=patch)
            tokens = (IMAGE // patch) ** 2
            self.position = nn.Parameter(torch.randn(1, tokens, width) * 0.02)
            self.blocks = nn.Sequential(*(Block() for _ in range(depth)))
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, CLASSES)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            x = self.embed(images).flatten(2).transpose(1, 2) + self.position
            return self.head(self.norm(self.blocks(x)).mean(dim=1))

    return ViT()


def _build(batch_size: int, patch: int, depth: int, width: int) -> Built:
    import torch

    return vit(patch, depth, width), (torch.randn(batch_size, 3, IMAGE, IMAGE),)


@workload(
    "vit16x6x384",
    family="vit",
    core=("inference", "eager", "reduce-overhead", "max-autotune"),
    also=("training", "backends"),
)
def vit16x6x384(batch_size: int) -> Built:
    """Patch 16, depth 6, width 384: the note's small model."""
    return _build(batch_size, 16, 6, 384)


@workload("vit32x12x768", family="vit", also=("training",))
def vit32x12x768(batch_size: int) -> Built:
    """Patch 32, depth 12, width 768: the note's medium model."""
    return _build(batch_size, 32, 12, 768)


@workload("vit32x18x1024", family="vit", also=("training",))
def vit32x18x1024(batch_size: int) -> Built:
    """Patch 32, depth 18, width 1024: the note's large model."""
    return _build(batch_size, 32, 18, 1024)


@workload("vit32x6x192", family="vit", also=("regional",))
def vit32x6x192(batch_size: int) -> Built:
    """Patch 32, width 192: 6 equal blocks, which a CPU with 2 cores calculates in milliseconds."""
    return _build(batch_size, 32, 6, 192)


@workload("vit32x12x192", family="vit", core=("regional",))
def vit32x12x192(batch_size: int) -> Built:
    """Patch 32, width 192: 12 equal blocks."""
    return _build(batch_size, 32, 12, 192)


@workload("vit32x24x192", family="vit", also=("regional",))
def vit32x24x192(batch_size: int) -> Built:
    """Patch 32, width 192: 24 equal blocks."""
    return _build(batch_size, 32, 24, 192)

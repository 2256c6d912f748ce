"""vit: plain vision transformers, in the three sizes of a research note from July 2025.

The note reports 42 experiments with ViT inference on a GPU that it does not name. It
compares the modes ``default``, ``reduce-overhead`` and ``max-autotune`` for a small, a medium and
a large ViT. It gives only their sizes, so the models here are written with torch's own layers:
patch embedding, pre-norm encoder, mean over patches, linear head. A name is vit + patch x depth x
width. The claims cite the note as 002_27a9813f24ae8bd9.txt.

Three more have one small width, and 6, 12 and 24 equal blocks: from how many blocks does it pay to
compile the block once? A CPU with 2 cores calculates the smallest of them in milliseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import workload

if TYPE_CHECKING:
    from . import Built

IMAGE = 224
CLASSES = 1000
HEAD_WIDTH = 64
# Patch, depth and width -> the tags of the core, and others: the note's small, medium and large
# model, then the three of one small width.
SIZES: dict[tuple[int, int, int], tuple[tuple[str, ...], tuple[str, ...]]] = {
    (16, 6, 384): (
        ("inference", "reduce-overhead", "max-autotune"),
        ("training", "backends"),
    ),
    (32, 12, 768): ((), ("training",)),
    (32, 18, 1024): ((), ("training",)),
    (32, 6, 192): ((), ("regional",)),
    (32, 12, 192): (("regional",), ()),
    (32, 24, 192): ((), ("regional",)),
}


def vit(batch_size: int, patch: int, depth: int, width: int) -> Built:
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

    return ViT(), (torch.randn(batch_size, 3, IMAGE, IMAGE),)


for _size, (_core, _also) in SIZES.items():
    workload(f"vit{'x'.join(map(str, _size))}", family="vit", core=_core, also=_also)(
        lambda batch_size, size=_size: vit(batch_size, *size)
    )

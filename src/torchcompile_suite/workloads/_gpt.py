"""The decoder of the family decoder, as classes of a file that imports torch.

What torch saves of a compiled function may name the classes of a model, and cannot hold what they
close over. The other workloads define their classes in a function. `workloads` does not import
this file: only where a decoder is built.
"""

from __future__ import annotations

import torch
from torch import nn

DEPTH, WIDTH, HEADS, VOCABULARY = 4, 256, 4, 4096
# The tokens that the cache holds.
LONGEST = 256


class Block(nn.Module):  # type: ignore[misc]
    """Attention and an MLP, (batch, length, 256) to the same."""

    def __init__(self, cached_batch_size: int | None) -> None:
        """With a batch size, the block has a static cache of keys and values."""
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )
        if cached_batch_size is not None:
            shape = (cached_batch_size, HEADS, LONGEST, WIDTH // HEADS)
            self.register_buffer("keys", torch.randn(shape))
            self.register_buffer("values", torch.randn(shape))

    def forward(self, x: torch.Tensor, positions: torch.Tensor | None) -> torch.Tensor:
        """With positions, read and write the cache."""
        batch, length, _ = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attend = nn.functional.scaled_dot_product_attention
        if positions is None:
            attended = attend(q, k, v, is_causal=True)
        else:
            self.keys.index_copy_(2, positions, k)
            self.values.index_copy_(2, positions, v)
            seen = torch.arange(LONGEST, device=x.device)[None, :] <= positions[:, None]
            attended = attend(q, self.keys, self.values, attn_mask=seen)
        x = x + self.proj(attended.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):  # type: ignore[misc]
    """Tokens (batch, length) to logits (batch, length, 4096)."""

    def __init__(self, cached_batch_size: int | None = None) -> None:
        """With a batch size, the decoder has a static cache of keys and values for it. Its call is
        then ``(tokens, positions)`` with tokens (batch, 1) and positions (1,).
        """
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.position = nn.Embedding(LONGEST, WIDTH)
        self.blocks = nn.ModuleList(Block(cached_batch_size) for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor | None = None) -> torch.Tensor:
        """See the class."""
        where = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.position(where if positions is None else positions)
        for block in self.blocks:
            x = block(x, positions)
        return self.head(self.norm(x))

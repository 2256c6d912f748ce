"""decoder: a small GPT in plain torch, used as a server does: prefill, then one token at a time.

It has four blocks of width 256, 4 heads and a vocabulary of 4096. A prompt has 128 tokens, and the
cache holds 256.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import workload

if TYPE_CHECKING:
    import torch

    from . import Built

DEPTH, WIDTH, HEADS, VOCABULARY = 4, 256, 4, 4096
PROMPT, LONGEST = 128, 256


def gpt(batch_size: int, cached: bool) -> torch.nn.Module:
    """A decoder that maps tokens (batch, length) to logits (batch, length, 4096).

    With ``cached`` it reads and writes a static cache of keys and values. Its call is then
    ``(tokens, positions)`` with tokens (batch, 1) and positions (1,).
    """
    import torch
    from torch import nn

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.proj = nn.Linear(WIDTH, WIDTH)
            self.mlp = nn.Sequential(
                nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
            )
            if cached:
                shape = (batch_size, HEADS, LONGEST, WIDTH // HEADS)
                self.register_buffer("keys", torch.randn(shape))
                self.register_buffer("values", torch.randn(shape))

        def forward(self, x: torch.Tensor, positions: torch.Tensor | None) -> torch.Tensor:
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
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, WIDTH)
            self.position = nn.Embedding(LONGEST, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
            self.norm = nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

        def forward(
            self, tokens: torch.Tensor, positions: torch.Tensor | None = None
        ) -> torch.Tensor:
            where = torch.arange(tokens.shape[1], device=tokens.device)
            x = self.tokens(tokens) + self.position(where if positions is None else positions)
            for block in self.blocks:
                x = block(x, positions)
            return self.head(self.norm(x))

    return Decoder()


def _tokens(batch_size: int, length: int) -> torch.Tensor:
    import torch

    return torch.randint(0, VOCABULARY, (batch_size, length))


def _stream(batch_size: int) -> list[tuple[Any, ...]]:
    """Six requests of different sizes, in an order as a server may receive them."""
    sizes = ((1, 40), (2, 100), (1, 52), (2, 116), (1, 64), (2, 128))
    return [(_tokens(batch_size * many, length),) for many, length in sizes]


@workload(
    "gpt_prefill",
    family="decoder",
    core=("inference", "dynamic_shapes"),
    also=("training", "training_variants", "quantisation", "regional", "memory_over_time"),
    stream=_stream,
)
def gpt_prefill(batch_size: int) -> Built:
    """Read a prompt: tokens (batch_size, 128) to logits (batch_size, 128, 4096)."""
    return gpt(batch_size, cached=False), (_tokens(batch_size, PROMPT),)


@workload(
    "gpt_decode",
    family="decoder",
    core=("inference", "freezing", "starts"),
    also=("freezing_memory", "quantisation", "memory_over_time"),
)
def gpt_decode(batch_size: int) -> Built:
    """Write one token after 128: the smallest and most frequent call of a decoder."""
    import torch

    return gpt(batch_size, cached=True), (_tokens(batch_size, 1), torch.tensor([PROMPT]))

"""decoder: a small GPT in plain torch, used as a server does: prefill, then one token at a time.

It has four blocks of width 256, 4 heads and a vocabulary of 4096. A prompt has 128 tokens, and the
cache holds 256. The classes are in `_gpt`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import workload

if TYPE_CHECKING:
    import torch

    from . import Built

PROMPT = 128


def _tokens(batch_size: int, length: int) -> torch.Tensor:
    import torch

    from ._gpt import VOCABULARY

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
    from ._gpt import Decoder

    return Decoder(), (_tokens(batch_size, PROMPT),)


@workload(
    "gpt_decode",
    family="decoder",
    core=("inference", "freezing", "starts"),
    also=("freezing_memory", "quantisation", "memory_over_time"),
)
def gpt_decode(batch_size: int) -> Built:
    """Write one token after 128: the smallest and most frequent call of a decoder."""
    import torch

    from ._gpt import Decoder

    return Decoder(batch_size), (_tokens(batch_size, 1), torch.tensor([PROMPT]))

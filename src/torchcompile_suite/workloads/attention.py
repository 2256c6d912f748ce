"""attention: the same attention in the ways in which people write it, by sequence length.

q, k and v are (batch_size, 8, length, 64) floats. The ways are: spelled out (matmul, softmax,
matmul), `scaled_dot_product_attention`, and FlexAttention, which came with torch 2.5 and has code
for a CPU since 2.6. The last two also exist with a causal mask: no position sees a later one.
FlexAttention gets the mask as a block mask, so that it can leave out whole blocks. A name is
attention_ + way + length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import WorkloadError, workload

if TYPE_CHECKING:
    import torch

    from . import Built

HEADS, HEAD_WIDTH = 8, 64
LENGTHS = (128, 512, 2048)
# The length that a bare `asv run` measures.
CORE_LENGTH = 512


def _spelled_out(_: int) -> torch.nn.Module:
    import torch

    class Attention(torch.nn.Module):  # type: ignore[misc]
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            weights = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1)
            return weights @ v

    return Attention()


def _sdpa(causal: bool) -> torch.nn.Module:
    import torch

    class Attention(torch.nn.Module):  # type: ignore[misc]
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            attend = torch.nn.functional.scaled_dot_product_attention
            return attend(q, k, v, is_causal=causal)

    return Attention()


def _flex(length: int, causal: bool) -> torch.nn.Module:
    import torch

    try:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    except ImportError:
        raise WorkloadError("FlexAttention came with torch 2.5") from None

    def earlier(_batch: Any, _head: Any, query: Any, key: Any) -> Any:
        return query >= key

    class Attention(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.mask: Any = None
            if causal:
                self.mask = create_block_mask(earlier, None, None, length, length, device="cpu")

        def _apply(self, change: Callable[[Any], Any], *arguments: Any, **options: Any) -> Any:
            """Move the mask with the module: it is no buffer, but a set of them."""
            if self.mask is not None:
                self.mask = self.mask.to(change(torch.empty(0)).device)
            return super()._apply(change, *arguments, **options)

        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return flex_attention(q, k, v, block_mask=self.mask)

    return Attention()


# The middle of a name -> the module for a length.
WAYS: dict[str, Callable[[int], torch.nn.Module]] = {
    "spelled_out": _spelled_out,
    "sdpa": lambda _: _sdpa(causal=False),
    "flex": lambda length: _flex(length, causal=False),
    "sdpa_causal": lambda _: _sdpa(causal=True),
    "flex_causal": lambda length: _flex(length, causal=True),
}


def build(batch_size: int, way: str, length: int) -> Built:
    """Attention in that way, and q, k and v of that length.

    Raises WorkloadError if this torch does not have it.
    """
    import torch

    q, k, v = torch.randn(3, batch_size, HEADS, length, HEAD_WIDTH).unbind(0)
    return WAYS[way](length), (q, k, v)


for _way in WAYS:
    _in_core = not _way.endswith("causal")
    for _length in LENGTHS:
        workload(
            f"attention_{_way}_{_length}",
            family="attention",
            core=("attention",) if _in_core and _length == CORE_LENGTH else (),
            also=("attention",),
        )(lambda batch_size, way=_way, length=_length: build(batch_size, way, length))

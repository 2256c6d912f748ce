"""The UNet of the family diffusion, as classes of a file that imports torch (as `_gpt`)."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

WIDTHS = (128, 256, 512)
HEAD_WIDTH, GROUPS, TEXT_WIDTH = 64, 32, 256
LATENTS = 4
# Of the embedding of the time step.
TIME_WIDTH = 4 * WIDTHS[0]


def embedding(steps: torch.Tensor) -> torch.Tensor:
    """Sines and cosines of the time steps (batch,): (batch, 128)."""
    half = WIDTHS[0] // 2
    places = torch.arange(half, dtype=torch.float32, device=steps.device)
    angles = steps[:, None] * torch.exp(-math.log(10_000) / half * places)
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


class Residual(nn.Module):  # type: ignore[misc]
    """Two convolutions, with the time step added between them."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(GROUPS, inputs), nn.GroupNorm(GROUPS, outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(TIME_WIDTH, outputs)
        self.skip = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        y = self.conv1(functional.silu(self.norm1(x)))
        y = y + self.time(functional.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(functional.silu(self.norm2(y)))


class Attention(nn.Module):  # type: ignore[misc]
    """Attention of the positions to themselves, or to the text."""

    def __init__(self, width: int, other_width: int) -> None:
        super().__init__()
        self.heads = width // HEAD_WIDTH
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(other_width, 2 * width, bias=False)
        self.proj = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            part.unflatten(-1, (self.heads, HEAD_WIDTH)).transpose(1, 2)
            for part in (self.q(x), *self.kv(other).chunk(2, dim=-1))
        )
        attended = functional.scaled_dot_product_attention(q, k, v)
        return self.proj(attended.transpose(1, 2).flatten(2))


class Transformer(nn.Module):  # type: ignore[misc]
    """Self-attention, attention to the text, and a gated MLP, on (batch, width, height, width)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.itself, self.text = Attention(width, width), Attention(width, TEXT_WIDTH)
        self.up, self.down = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, image: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        x = self.norm(image).flatten(2).transpose(1, 2)
        y = self.norms[0](x)
        x = x + self.itself(y, y)
        x = x + self.text(self.norms[1](x), text)
        value, gate = self.up(self.norms[2](x)).chunk(2, dim=-1)
        x = x + self.down(value * functional.gelu(gate))
        return image + x.transpose(1, 2).unflatten(2, image.shape[2:])


class Level(nn.Module):  # type: ignore[misc]
    """A residual block and a transformer; the widest images have no transformer."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.residual = Residual(inputs, outputs)
        self.transformer = Transformer(outputs) if outputs > WIDTHS[0] else None

    def forward(self, x: torch.Tensor, time: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        x = self.residual(x, time)
        return x if self.transformer is None else self.transformer(x, text)


class UNet(nn.Module):  # type: ignore[misc]
    """The noise in the latents (batch, 4, height, width), at the time steps (batch,), given a text
    (batch, length, 256).
    """

    def __init__(self) -> None:
        super().__init__()
        first, middle, last = WIDTHS
        self.time = nn.Sequential(
            nn.Linear(first, TIME_WIDTH), nn.SiLU(), nn.Linear(TIME_WIDTH, TIME_WIDTH)
        )
        self.enter = nn.Conv2d(LATENTS, first, 3, padding=1)
        self.down = nn.ModuleList([Level(first, first), Level(first, middle), Level(middle, last)])
        self.smaller = nn.ModuleList(
            nn.Conv2d(width, width, 3, stride=2, padding=1) for width in WIDTHS[:-1]
        )
        self.middle = Level(last, last)
        self.up = nn.ModuleList(
            [Level(2 * last, last), Level(last + middle, middle), Level(middle + first, first)]
        )
        self.norm = nn.GroupNorm(GROUPS, first)
        self.leave = nn.Conv2d(first, LATENTS, 3, padding=1)

    def forward(
        self, latents: torch.Tensor, steps: torch.Tensor, text: torch.Tensor
    ) -> torch.Tensor:
        time = self.time(embedding(steps))
        x, kept = self.enter(latents), []
        for number, level in enumerate(self.down):
            x = level(x, time, text)
            kept.append(x)
            if number < len(self.smaller):
                x = self.smaller[number](x)
        x = self.middle(x, time, text)
        for number, level in enumerate(self.up):
            if number:
                x = functional.interpolate(x, scale_factor=2.0, mode="nearest")
            x = level(torch.cat([x, kept.pop()], dim=1), time, text)
        return self.leave(functional.silu(self.norm(x)))

"""relevance: three modules that score the positions of a vision-token grid.

They follow a summary of notes on torch.compile from November 2025. The summary names the scorers
InformationScorer, SalienceScorer and QueryContentScorer of a vision-language project and gives
speedups, without hardware, PyTorch version or code; the modules here are our own reading of the
names. Information is the entropy over channels. Salience is the distance from the surroundings,
and edges. Query content is the match with a query. A grid is (batch, 64 channels, 32, 32), and each
scorer starts with a learned 1 x 1 projection. The claims cite the summary as
004_828aba09b53dc708.txt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import workload

if TYPE_CHECKING:
    import torch

    from . import Built

CHANNELS = 64
GRID = 32


def _grid(batch_size: int) -> torch.Tensor:
    import torch

    return torch.randn(batch_size, CHANNELS, GRID, GRID)


@workload(
    "relevance_information",
    family="relevance",
    core=(
        "inference",
        "batch8",
        "backends",
        "training",
        "precision",
        "precision_compiled",
    ),
    also=("training_variants",),
)
def relevance_information(batch_size: int) -> Built:
    """Shannon entropy over channels; maps the grid to (batch, 32, 32) scores in nats."""
    import torch
    from torch import nn

    class Information(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.project = nn.Conv2d(CHANNELS, CHANNELS, 1)

        def forward(self, grid: torch.Tensor) -> torch.Tensor:
            p = torch.softmax(self.project(grid), dim=1)
            return -(p * torch.log(p + 1e-10)).sum(dim=1)

    return Information(), (_grid(batch_size),)


@workload("relevance_salience", family="relevance")
def relevance_salience(batch_size: int) -> Built:
    """Centre minus surround, and gradient magnitude; maps the grid to (batch, 32, 32)."""
    import torch
    from torch import nn

    class Salience(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.project = nn.Conv2d(CHANNELS, CHANNELS, 1)

        def forward(self, grid: torch.Tensor) -> torch.Tensor:
            x = self.project(grid)
            surround = nn.functional.avg_pool2d(x, 5, stride=1, padding=2)
            contrast = (x - surround).abs().mean(dim=1)
            across = nn.functional.pad(x[..., 1:] - x[..., :-1], (0, 1))
            down = nn.functional.pad(x[..., 1:, :] - x[..., :-1, :], (0, 0, 0, 1))
            edges = torch.sqrt(across.square() + down.square() + 1e-6).mean(dim=1)
            return torch.sigmoid(contrast + edges)

    return Salience(), (_grid(batch_size),)


@workload("relevance_query", family="relevance")
def relevance_query(batch_size: int) -> Built:
    """Cosine similarity of each position and a query (batch, 64), weighted by attention over
    positions; maps both to (batch, 32, 32).
    """
    import torch
    from torch import nn

    class QueryContent(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.keys = nn.Conv2d(CHANNELS, CHANNELS, 1)
            self.query = nn.Linear(CHANNELS, CHANNELS)

        def forward(self, grid: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
            keys = nn.functional.normalize(self.keys(grid), dim=1)
            wanted = nn.functional.normalize(self.query(query), dim=1)
            match = (keys * wanted[:, :, None, None]).sum(dim=1)
            weights = torch.softmax(match.flatten(1) * CHANNELS**0.5, dim=1)
            return weights.view_as(match) * match

    return QueryContent(), (_grid(batch_size), torch.randn(batch_size, CHANNELS))

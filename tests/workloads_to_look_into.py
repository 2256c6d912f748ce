"""Small workloads with known graphs and kernels. Tests give this file to the suite."""

from __future__ import annotations

from typing import Any

from torchcompile_suite.workloads import workload

WIDTH = 32


def _function(forward: Any) -> Any:
    import torch

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(WIDTH, WIDTH)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return forward(self.layer, x)

    return Module(), (torch.randn(4, WIDTH),)


def _other_sign(batch_size: int) -> list[tuple[Any, ...]]:
    import torch

    return [(-torch.ones(4, WIDTH),)]


def _lengths(batch_size: int) -> list[tuple[Any, ...]]:
    import torch

    return [(torch.randn(batch_size * n, WIDTH),) for n in (2, 3, 5, 6)]


@workload("dropping", family="tests", also=("training",))
def dropping(batch_size: int) -> Any:
    import torch

    return _function(lambda layer, x: torch.dropout(layer(x), 0.5, True))


@workload("dropping_wrongly", family="tests")
def dropping_wrongly(batch_size: int) -> Any:
    """Compiled, it drops with another probability: its draws look alike, and are not eager's."""
    import torch

    def forward(layer: Any, x: torch.Tensor) -> torch.Tensor:
        p = 0.4 if torch.compiler.is_compiling() else 0.5
        return torch.dropout(layer(x), p, True)

    return _function(forward)


@workload("wrong_elsewhere", family="tests", cases=_other_sign)
def wrong_elsewhere(batch_size: int) -> Any:
    """Right for the example input, wrong for the other one."""
    import torch

    def forward(layer: Any, x: torch.Tensor) -> torch.Tensor:
        if torch.compiler.is_compiling():
            return torch.relu(x)
        return x.abs()

    module, _ = _function(forward)
    return module, (torch.ones(4, WIDTH),)


@workload("streaming", family="tests", stream=_lengths)
def streaming(batch_size: int) -> Any:
    return _function(lambda layer, x: layer(x).relu() + x)


@workload("mixing_rows", family="tests", stream=_lengths)
def mixing_rows(batch_size: int) -> Any:
    """Padding changes its result: it must not be timed with padding."""
    return _function(lambda layer, x: layer(x) - (layer(x) + 1).mean(dim=0))


@workload("breaking", family="tests", also=("training",))
def breaking(batch_size: int) -> Any:
    import torch

    def forward(layer: Any, x: torch.Tensor) -> torch.Tensor:
        x = layer(x)
        torch._dynamo.graph_break()
        return layer(x).relu()

    return _function(forward)


@workload("wrong_gradient", family="tests", also=("training",))
def wrong_gradient(batch_size: int) -> Any:
    """Compiled, its output is right and its gradient is not."""
    import torch

    def forward(layer: Any, x: torch.Tensor) -> torch.Tensor:
        y = layer(x)
        if torch.compiler.is_compiling():
            return 2 * y - y.detach()
        return y

    return _function(forward)


@workload("at_a_corner", family="tests", also=("training",))
def at_a_corner(batch_size: int) -> Any:
    """With its first weights, rounding decides whether ReLU has a gradient."""
    import torch

    class AtACorner(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(WIDTH))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            rounding = 1e-9 if torch.compiler.is_compiling() else -1e-9
            return x + torch.relu(self.weight - 1 + rounding)

    return AtACorner(), (torch.randn(4, WIDTH),)


@workload("repeating", family="tests", also=("training",))
def repeating(batch_size: int) -> Any:
    """Three equal blocks, in a Sequential that has two other modules as well."""
    import torch

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(
                torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU(), torch.nn.Linear(WIDTH, WIDTH)
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.layers(x)

    layers = (Block() for _ in range(3))
    module = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), *layers, torch.nn.LayerNorm(WIDTH))
    return module, (torch.randn(4, WIDTH),)

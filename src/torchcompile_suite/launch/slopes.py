"""Whose gradients are right, where eager and the compiled module disagree: the slope of the loss.

Eager is what everything is compared with, in its own dtype and in float64, and may be wrong itself:
its backward pass has kernels of its own. The slope of the loss along a direction needs no backward
pass. So it is a third opinion (evidence/plain/batch_norm.py is a case).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from . import references, state
from .training import TrainingStep

# Relative to a weight of size 1: far above the rounding of a loss in float64, and so small that the
# loss is straight there.
STEP = 1e-6
DIRECTIONS = 3
# A gradient is right if it is that near to the slopes.
RIGHT = 1e-3

Gradients = Sequence[torch.Tensor]


def errors(subject: TrainingStep, *several: Gradients) -> list[float]:
    """How far each of the gradients is from the slope of the loss: the largest distance along a few
    random directions, over the gradient's norm.

    Gradients have a tensor for each weight that has a gradient in the module. Raises what the
    module raises in float64.
    """
    trained = [weight.grad is not None for weight in subject.module.parameters()]
    module, given = references.in_double(subject, subject.cell.device)
    start = state.State(module, given)
    weights = [each for each, own in zip(module.parameters(), trained, strict=True) if own]

    def loss() -> float:
        start.restore()
        state.seed(references.FIRST)
        return subject.loss_in_double(module, given)

    worst = [0.0] * len(several)
    for number in range(DIRECTIONS):
        maker = torch.Generator().manual_seed(number)
        direction = [
            torch.randn(each.shape, generator=maker, dtype=torch.float64).to(each.device)
            for each in weights
        ]
        slope = _slope(weights, direction, loss)
        for place, gradients in enumerate(several):
            doubles = [gradient.double() for gradient in gradients]
            norm = math.hypot(*(float(each.norm()) for each in doubles))
            pairs = zip(doubles, direction, strict=True)
            along = math.fsum(float((one * two).sum()) for one, two in pairs)
            distance = abs(slope - along) / norm if norm else math.inf
            worst[place] = max(worst[place], distance)
    return worst


def _slope(weights: Gradients, direction: Gradients, loss: Callable[[], float]) -> float:
    """The slope of the loss along a direction, from two losses on both sides."""

    def move(steps: float) -> None:
        with torch.no_grad():
            for weight, each in zip(weights, direction, strict=True):
                weight.add_(each, alpha=steps * STEP)

    move(1.0)
    above = loss()
    move(-2.0)
    below = loss()
    move(1.0)
    return (above - below) / (2 * STEP)

"""Calls that are an optimizer step."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

import torch

from ..cell import Cell
from . import failures
from .forward import autocast
from .subject import SEED, Inputs, Subject, apply
from .values import leaves, opened

# Small, so that the weights stay near their start in a thousand steps.
LEARNING_RATE = 1e-5
# A training step is wrong if it is wrong with each of so many sets of weights. One set in six
# brings a value of resnet18 to a corner (evidence/plain/corners.py), five in a row one in 8,000.
SETS_OF_WEIGHTS = 5
# How far a weight of a set is from that of the set before, relative. All values of the network move
# by more than rounding can bridge, and the network stays what it is.
SPREAD = 0.01


def _weights(module: torch.nn.Module) -> dict[str, Any]:
    """A copy of torch's own state of the module, whatever the model makes of ``state_dict``."""
    return copy.deepcopy(torch.nn.Module.state_dict(module))


class TrainingStep(Subject):
    """One optimizer step: forward and backward for each micro-batch, then AdamW."""

    in_a_row = False

    def __init__(
        self,
        cell: Cell,
        module: torch.nn.Module,
        inputs: Inputs,
        build: Callable[[], torch.nn.Module],
    ) -> None:
        """The module is in training mode. ``build`` makes the module as it was before any step."""
        super().__init__(cell, module, inputs)
        self._build = build
        self._optimizer = torch.optim.AdamW(module.parameters(), lr=LEARNING_RATE)
        self._start: dict[str, Any] | None = None
        self._last: Any = None
        self._sets = 1
        # CUDA graphs write gradients into their own memory, and the replay for the next micro-batch
        # overwrites them. So with several micro-batches the gradients need memory that stays.
        self._keep_gradients = cell.accumulation > 1
        self._clear(module.parameters())

    def call(self, forward: Any) -> Any:
        """The loss of the last micro-batch."""
        self._optimizer.zero_grad(set_to_none=not self._keep_gradients)
        for _ in range(self.cell.accumulation):
            loss = self._backward(forward, self.inputs, autocast(self.cell))
        self._optimizer.step()
        return loss

    def reset(self, seed: int = SEED + 1) -> None:
        """See `Subject.reset`. The weights are those before the first step.

        The number of steps before a check differs from launch to launch, and each check shall see
        the same weights. They are made again only now: a user's training loop has no second set.
        """
        if self._start is None:
            self._start = _weights(self._build())
        super().reset(seed)
        # A buffer may come with the first call, or change its size.
        buffers = dict(self.module.named_buffers())
        start = {
            name: value
            for name, value in self._start.items()
            if name not in buffers or buffers[name].shape == value.shape
        }
        # torch's own, as in `_weights`: a model's may return nothing.
        found = torch.nn.Module.load_state_dict(self.module, start, strict=False)
        if lost := {*found.missing_keys, *found.unexpected_keys} - buffers.keys():
            raise RuntimeError(f"the first call changes the names of weights: {', '.join(lost)}")

    def touched(self) -> bool:
        """A step changes all weights, and `reset` restores them."""
        return False

    def other_weights(self) -> bool:
        """See `Subject.other_weights`.

        A value may lie so near to a corner of ReLU or of max pooling that rounding decides its
        gradient. Then eager or the compiled module is wrong by up to 0.5 %, without a fault of the
        compiler. With other weights that value lies elsewhere; a wrong kernel stays wrong.
        """
        if self._sets == SETS_OF_WEIGHTS:
            return False
        self._sets += 1
        self.reset()
        torch.manual_seed(SEED + self._sets)
        with torch.no_grad():
            for weights in self.module.parameters():
                weights.mul_(1 + SPREAD * torch.randn_like(weights))
        self._start = _weights(self.module)
        return True

    def outputs(self, result: Any) -> Any:
        """The loss and all gradients."""
        return result, _gradients(self.module)

    def apart(self, result: Any) -> list[Any]:
        """The loss does not change if two of the outputs change places: they are looked at, too."""
        last, self._last = self._last, None
        return [self.outputs(result), last]

    def in_double(self, module: torch.nn.Module, given: Any) -> list[Any]:
        """See `Subject.in_double`."""
        self._clear(module.parameters())
        for _ in range(self.cell.accumulation):
            loss = self._backward(module, given, contextlib.nullcontext())
        last, self._last = self._last, None
        return [(loss, _gradients(module)), last]

    def loss_in_double(self, module: torch.nn.Module, given: Any) -> float:
        """The loss of the whole step, of a copy of the module in float64, without gradients."""
        with torch.no_grad():
            return float(_loss(apply(module, given)))

    def _backward(self, forward: Any, values: Inputs, context: AbstractContextManager[Any]) -> Any:
        with context:
            output = apply(forward, values)
        loss = _loss(output) / self.cell.accumulation
        loss.backward()
        if self._start is not None:  # a check: a timed step keeps nothing
            self._last = output
        return loss.detach()

    def _clear(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter) if self._keep_gradients else None


def _loss(output: Any) -> Any:
    found = leaves(output) or opened(output)
    if not found:
        raise failures.Unsupported("the module returns no tensor, so there is no loss to train on")
    return sum(leaf.to(_wide(leaf)).square().mean() for leaf in found)


def _gradients(module: torch.nn.Module) -> list[torch.Tensor]:
    return [p.grad.clone() for p in module.parameters() if p.grad is not None]


def _wide(leaf: torch.Tensor) -> torch.dtype:
    return leaf.dtype if leaf.dtype == torch.float64 else torch.float32

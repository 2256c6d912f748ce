"""Models as users of the suite have them; tests/test_trial.py measures them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from torch import nn

SMALL = (4, 64)


class Branching(nn.Module):
    """Takes a branch by the values of its input."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64))

    def forward(self, x):
        x = self.layers(x)
        if x.sum() > 0:
            return x * 2
        return x - 1


def branching():
    return Branching(), (torch.randn(*SMALL),)


class Large(nn.Module):
    """Its tensors of 48 MiB are too large for malloc to keep."""

    def forward(self, x):
        return (x * 2 + 1).relu()


def large():
    return Large(), (torch.randn(12 << 20),)


class Keywords(nn.Module):
    """Takes its inputs by name and returns a dict."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 8)

    def forward(self, *, values, mask=None):
        scores = self.layer(values)
        return {"scores": scores, "chosen": scores.masked_fill(mask, 0.0)}


def keywords(batch_size):
    values = torch.randn(batch_size, 64)
    return Keywords(), {"values": values, "mask": torch.rand(batch_size, 8) < 0.5}


@torch.library.custom_op("tests::unshaped", mutates_args=())
def unshaped(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@unshaped.register_fake
def _(x):
    raise RuntimeError("this operator has no shape to give")


class Uncompilable(nn.Module):
    """Runs in eager only."""

    def forward(self, x):
        return unshaped(x + 1)


def uncompilable():
    return Uncompilable(), torch.randn(*SMALL)


class Greedy(nn.Module):
    """Needs more memory than any machine has."""

    def forward(self, x):
        return x + torch.ones(1 << 42)


def greedy():
    return Greedy(), (torch.randn(1),)


def bare():
    return nn.Linear(64, 64)


def wrong():
    return "a model"


def needing(width):
    return nn.Linear(width, width)


class Repeating(nn.Module):
    """Is captured again and again, for a number that varies."""

    calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls if self.calls < 6 else x


def repeating():
    return Repeating(), (torch.randn(*SMALL),)


# Outputs that torch's pytree does not know, and outputs that are not finite


@dataclasses.dataclass
class Scores:
    """A plain dataclass with a tensor and a number."""

    logits: torch.Tensor
    classes: int


class Named(dict[str, Any]):
    """A dict subclass that no one registered with pytree."""


class Opaque:
    """An object that gives its tensor only through a function."""

    def __init__(self, hidden):
        self.read = lambda: hidden


class Answering(nn.Module):
    """Returns outputs of several types; ``wrap`` makes them of the logits."""

    def __init__(self, wrap):
        super().__init__()
        self.layer = nn.Linear(64, 8)
        self.wrap = wrap

    def forward(self, x):
        return self.wrap(self.layer(x))


def several_outputs(batch_size):
    """A dataclass, a dict subclass, an object that cannot be compared, and NaN."""

    def wrap(logits):
        return Scores(logits, 8), Named(logits=logits), Opaque(logits), logits * math.nan

    return Answering(wrap), (torch.randn(batch_size, 64),)


def opaque_output():
    """Nothing in the output can be compared."""
    return Answering(Opaque), (torch.randn(*SMALL),)

"""A small encoder, as a library would have it."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.project = nn.Linear(16, width)
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        hidden = self.project(x).relu()
        return hidden + torch.tanh(self.mix(hidden))


def make():
    """For the command line: a model and the inputs of one call."""
    return Encoder(), torch.randn(4, 16)

"""A network of convolutions; its head looks at the statistics of the input."""

import torch
from torch import nn


def normalised(x):
    return (x - x.mean((2, 3), keepdim=True)) / (x.std((2, 3), keepdim=True) + 1e-5)


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        pooled = x.mean((2, 3))
        return self.out(pooled)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.head = Head()
        self.seen = {}

    def forward(self, x):
        x = normalised(x)
        features = torch.nn.functional.gelu(self.conv(x))
        return self.head(features)


def make():
    return Network(), torch.randn(2, 3, 10, 10)

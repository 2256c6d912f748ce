"""Does a training step with batch norm compile on a CPU? training.py THREADS HEIGHT

Prints the release, both arguments, and the relative difference from eager's gradients, or the first
error of the C++ compiler.
"""

import sys

import torch
from torch import nn

threads, height = map(int, sys.argv[1:])
torch.set_num_threads(threads)
torch.manual_seed(20240724)
layers = nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1)
net = nn.Sequential(*layers)
images = torch.randn(4, 3, height, height)


def gradients(forward):
    net.zero_grad()
    forward(images).square().sum().backward()
    return torch.cat([parameter.grad.flatten() for parameter in net.parameters()])


expected = gradients(net)
try:
    difference = (gradients(torch.compile(net)) - expected).norm() / expected.norm()
    says = f"compiles, {difference:.0e}"
except Exception as error:
    lines = [line.partition("error: ")[2] for line in str(error).splitlines()]
    says = next(filter(None, lines), type(error).__name__)
print(torch.__version__, threads, height, says)

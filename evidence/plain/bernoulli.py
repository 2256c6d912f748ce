"""What takes operator_stochastic longer since 2.7? Its operators alone, with any release.

Prints milliseconds of each, the median of 100 calls.
"""

import time
from itertools import pairwise
from statistics import median

import torch
from torch import nn

x = torch.randn(1, 64, 128, 128)
convolution, norm = nn.Conv2d(64, 64, 3, padding=1), nn.InstanceNorm2d(64, affine=True)
operators = {
    "convolution": lambda: convolution(x),
    "norm": lambda: norm(x),
    "randn_like": lambda: torch.randn_like(x),
    "dropout": lambda: nn.functional.dropout(x, 0.1, training=True),
    "bernoulli_": lambda: torch.empty_like(x).bernoulli_(0.9),
}
with torch.inference_mode():
    for name, call in operators.items():
        ends = [time.perf_counter() for _ in range(121) if call() is not None][20:]
        seconds = [end - start for start, end in pairwise(ends)]
        print(torch.__version__, name, f"{1000 * median(seconds):.2f}")

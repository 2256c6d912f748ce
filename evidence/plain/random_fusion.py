"""Is a random number between convolutions computed in the loop that uses it, or in its own?

    python random_fusion.py

Prints the release and Inductor's number of C++ kernels for four layers of convolution, instance
norm, GELU, dropout and noise, and the number without dropout and noise. Does not import the suite.
"""

import torch
from torch import nn
from torch._inductor import config, metrics

config.force_disable_caches = True


class Layer(nn.Module):
    def __init__(self, width, random):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.norm, self.random = nn.InstanceNorm2d(width, affine=True), random

    def forward(self, x):
        x = nn.functional.gelu(self.norm(self.conv(x)))
        if self.random:
            x = nn.functional.dropout(x, 0.1, training=True)
            x = x + 0.05 * torch.randn_like(x)
        return x


def kernels(random):
    body = (Layer(64, random) for _ in range(4))
    net = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), *body, nn.Conv2d(64, 3, 3, padding=1))
    torch._dynamo.reset()
    metrics.reset()
    with torch.inference_mode():
        torch.compile(net.eval())(torch.randn(1, 3, 64, 64))
    return metrics.generated_kernel_count


print(torch.__version__, kernels(random=True), kernels(random=False))

"""How many kernels does Inductor make of layer norms over the last dimension between convolutions?

    python last_dimension.py [without]

Prints the release, the number of C++ kernels, and the largest difference from eager. ``without``:
Inductor's graph.py without the lines that pytorch#169260 added in 2.11. Does not import the suite.
"""

import importlib.util
import re
import sys

import torch
from torch import nn

APPLIED = r"result = maybe_apply_channels_last_stride_order\(result, n\)\n"
ADDED = rf"\n +_data = result\.data.*?if isinstance\(_data, StorageBox\).*?{APPLIED}|\n +{APPLIED}"
if "without" in sys.argv:
    spec = importlib.util.find_spec("torch._inductor.graph")
    source, count = re.subn(ADDED, "\n", spec.loader.get_source(spec.name), flags=re.S)
    if count != 2:
        sys.exit(f"PyTorch {torch.__version__} does not have these lines")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    exec(compile(source, spec.origin, "exec"), module.__dict__)

from torch._inductor import config, metrics  # noqa: E402 (after the change)

config.force_disable_caches = True  # a cached graph has the kernels of the other way


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.conv = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):  # batch, height, width, channels
        y = self.conv(self.norm(x).permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        return x + self.down(nn.functional.gelu(self.up(y)))


class Net(nn.Module):
    def __init__(self, width=48, depth=6):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, width, 3, 2, 1), nn.LayerNorm(width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))

    def forward(self, x):
        return self.blocks(self.norm(self.stem(x).permute(0, 2, 3, 1))).mean((1, 2))


torch.manual_seed(0)
net, x = Net().eval(), torch.randn(1, 3, 112, 112)
with torch.inference_mode():
    error = (torch.compile(net)(x) - net(x)).abs().max()
print(torch.__version__, metrics.generated_kernel_count, f"{error:.1e}")

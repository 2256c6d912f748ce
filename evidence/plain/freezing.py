"""freezing.py eager|plain|frozen MODEL: the first call, and the next; without the suite."""

import statistics
import sys
import time

import timm
import torch
import torch._inductor.config

torch.manual_seed(20240724)
torch._inductor.config.freezing = sys.argv[1] == "frozen"
module = timm.create_model(sys.argv[2]).eval()
forward = module if sys.argv[1] == "eager" else torch.compile(module)
image, calls = torch.randn(1, 3, 224, 224), []
with torch.inference_mode():
    while len(calls) < 61:
        start = time.perf_counter()
        forward(image)
        calls.append(time.perf_counter() - start)
steady_ms = statistics.median(calls[20:]) * 1e3
print(torch.__version__, *sys.argv[1:], f"first {calls[0]:.1f} s, call {steady_ms:.2f} ms")

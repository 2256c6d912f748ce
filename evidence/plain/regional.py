"""regional.py whole|regional BLOCKS: the first call, and the next; without the suite."""

import statistics
import sys
import time

import torch
from torch.nn import Sequential, TransformerEncoderLayer

# In training mode without dropout, because in eval mode a layer is one operator of a library.
layers = (TransformerEncoderLayer(192, 3, 768, 0.0) for _ in range(int(sys.argv[2])))
module, tokens, calls = Sequential(*layers), torch.randn(49, 1, 192), []
for part in [module] if sys.argv[1] == "whole" else module:
    part.compile()
with torch.inference_mode():
    while len(calls) < 101:
        start = time.perf_counter()
        module(tokens)
        calls.append(time.perf_counter() - start)
steady_ms = statistics.median(calls[20:]) * 1e3
print(torch.__version__, *sys.argv[1:], f"first {calls[0]:.1f} s, call {steady_ms:.2f} ms")

"""Attention of a length: attention.py LENGTH. Prints milliseconds a call of each way."""

import statistics
import sys
import timeit

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention as sdpa

n = int(sys.argv[1])
q, k, v = torch.randn(3, 1, 8, n, 64).unbind(0)
mask = create_block_mask(lambda _b, _h, i, j: i >= j, None, None, n, n, device="cpu")
compiled = torch.compile(flex_attention)
ways = {
    "SDPA, eager": lambda: sdpa(q, k, v),
    "FlexAttention, compiled": lambda: compiled(q, k, v),
    "SDPA, causal, eager": lambda: sdpa(q, k, v, is_causal=True),
    "FlexAttention, causal, compiled": lambda: compiled(q, k, v, block_mask=mask),
}
for name, call in ways.items():
    calls = timeit.Timer(call).autorange()[0]
    median = statistics.median(timeit.repeat(call, repeat=15, number=calls)) / calls
    print(name, round(median * 1e3, 3))

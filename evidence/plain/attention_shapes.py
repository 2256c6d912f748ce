"""scaled_dot_product_attention of three dimensions, and with one key and value for all heads."""

import statistics
import time

import torch
from torch.nn.functional import scaled_dot_product_attention as attend

CASES = {}
for shape in ((12, 1024, 64), (12, 196, 64), (1, 1024, 64)):
    q, k, v = (torch.randn(shape) for _ in range(3))
    CASES[f"{shape}"] = lambda q=q, k=k, v=v: attend(q, k, v)
    CASES[f"{shape}, a fourth dimension"] = lambda q=q, k=k, v=v: attend(q[None], k[None], v[None])
for tokens, others in ((1024, 1024), (196, 49)):
    q, one = torch.randn(1, 8, tokens, 64), torch.randn(1, 1, others, 64)
    every = one.expand(-1, 8, -1, -1)
    CASES[f"{tuple(q.shape)}, one head of {others}"] = lambda q=q, k=one: attend(q, k, k)
    CASES[f"{tuple(q.shape)}, repeated"] = lambda q=q, k=every: attend(q, k, k)

print(torch.__version__)
times_s = {name: [] for name in CASES}
with torch.inference_mode():
    for _ in range(25):
        for name, call in CASES.items():
            start = time.perf_counter()
            call()
            times_s[name].append(time.perf_counter() - start)
for name, taken_s in times_s.items():
    print(f"{name:40} {1e3 * statistics.median(taken_s[5:]):.2f} ms")

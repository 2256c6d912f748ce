"""How many blocks does malloc use for the intermediate results of nine pointwise operators?

    MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=8589934592 \
    MALLOC_TOP_PAD_=268435456 python blocks.py

The variables settle the heap. Prints milliseconds of a call in eager, the median of 150, and the
number of blocks of 4 MiB. Run it some dozen times: a process keeps its blocks, and the next one may
have others. Does not import the suite.
"""

import statistics
import time

import torch

x = torch.randn(1, 1024, 1024)
OPERATORS = [
    *(lambda y: y * 1.5, lambda y: y + 0.5, torch.sigmoid, lambda y: x * y, lambda y: y - 0.1),
    *(torch.relu, torch.square, torch.neg, torch.exp),
]


def chain(blocks=None):
    y = x
    for operator in OPERATORS:
        y = operator(y)
        if blocks is not None:
            blocks.add(round(y.data_ptr() / 2**20))


for _ in range(60):
    chain()
calls_s = []
for _ in range(150):
    start = time.perf_counter()
    chain()
    calls_s.append(time.perf_counter() - start)
used = set()
chain(used)
print(f"{1e3 * statistics.median(calls_s):.2f} ms, {len(used)} blocks")

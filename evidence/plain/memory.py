"""Memory without the suite: memory.py eager|compiled fixed|changing. Bytes a call, and graphs."""

import sys

import models
import psutil
import torch
from torch._dynamo.utils import counters

module, fixed = models.build("softmax_matmul", 1)
sizes = [(batch, size, size) for batch in (1, 2) for size in (40, 100, 52, 116, 64, 128)]
requests = [torch.randn(2, *size).unbind() for size in sizes]
requests = requests if sys.argv[2] == "changing" else [fixed] * 12
forward = torch.compile(module, dynamic=False) if sys.argv[1] == "compiled" else module
resident = []
with torch.inference_mode():
    for number in range(1001):
        for request in requests:
            forward(*request)
        if number % 100 == 0:
            resident.append(psutil.Process().memory_info().rss)
print(*sys.argv[1:], *(rss >> 10 for rss in resident), "KiB")
growth = (resident[-1] - resident[4]) / (600 * 12)
print(f"{growth:.1f} bytes a call, {counters['stats']['unique_graphs']} graphs")

"""Milliseconds of a compiled resnet18 on a CPU, in turns: what the setting for CUDA graphs costs.

A CPU has no CUDA graphs. Since PyTorch 2.9 graph partition comes with the setting, and moves every
kernel that needs only the graph's inputs to the front. Run it with MALLOC_MMAP_MAX_=0
MALLOC_TRIM_THRESHOLD_=2147483647 MALLOC_TOP_PAD_=67108864: no call then makes a page fault.
"""

import statistics
import sys
import time

import timm
import torch

WAYS = {
    "default": {},
    "CUDA graphs, whole": {"options": {"triton.cudagraphs": True, "graph_partition": False}},
    "CUDA graphs, partition": {"options": {"triton.cudagraphs": True, "graph_partition": True}},
    "max-autotune": {"mode": "max-autotune"},
    "max-autotune-no-cudagraphs": {"mode": "max-autotune-no-cudagraphs"},
}
torch.set_num_threads(2)
model = timm.create_model(sys.argv[1] if sys.argv[1:] else "resnet18").eval()
x = torch.randn(1, 3, 224, 224)
calls = {"eager": model} | {name: torch.compile(model, **way) for name, way in WAYS.items()}
times = {name: [] for name in calls}
with torch.no_grad():
    for turn in range(20):
        for name, call in calls.items():
            for number in range(12):
                start = time.perf_counter()
                call(x)
                # The first turns warm up; so do three calls after another way's turn.
                if turn > 3 and number > 2:
                    times[name].append(time.perf_counter() - start)
medians = (f"{name} {statistics.median(taken) * 1e3:.1f}" for name, taken in times.items())
print(torch.__version__, *medians, sep="; ")

"""Where eager's time goes, as torch.profiler says: the share of each operator that Python calls.

    python evidence/plain/profiled.py resnet18

Prints a line for each operator: name, share of the time of all, and microseconds a call.
"""

import sys
from collections import Counter

import timm
import torch
from torch.profiler import ProfilerActivity, profile

CALLS = 30
torch.manual_seed(0)
model = timm.create_model(sys.argv[1], pretrained=False).eval()
image = torch.randn(1, 3, 224, 224)
with torch.inference_mode():
    for _ in range(10):
        model(image)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(CALLS):
            model(image)
times = Counter()
for event in profiler.events():
    if event.cpu_parent is None and event.name.startswith("aten::"):
        times[event.name.removeprefix("aten::").strip("_")] += event.cpu_time_total / CALLS
for name, micros in times.most_common():
    print(f"{name} {micros / times.total():.4f} {micros:.1f}")

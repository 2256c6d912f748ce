"""A user's own script on a GPU: kernels.py MODEL MODE.

Does not import the suite. Prints microseconds as JSON: an eager and a compiled call with a wait
after each, how long the device works for each, and for the operators of libraries in eager.
"""

import json
import sys
import time

import timm
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

NAME, MODE = sys.argv[1:]
torch.manual_seed(0)
module, image = timm.create_model(NAME).eval().cuda(), torch.randn(1, 3, 224, 224, device="cuda")
compiled = torch.compile(module, mode=MODE)


def call_us(forward):
    times = []
    for _ in range(500):
        torch.cuda.synchronize()
        start = time.perf_counter()
        forward(image)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e6)
    return sorted(times)[250]


def works_us(forward):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for _ in range(10):
            forward(image)
        torch.cuda.synchronize()
    events = profiler.events()
    kernels = [event for event in events if event.device_type == DeviceType.CUDA]
    names = ("aten::cudnn_convolution", "aten::addmm")
    return sum(kernel.time_range.elapsed_us() for kernel in kernels) / 10, {
        name: sum(event.device_time_total for event in events if event.name == name) / 10
        for name in names
    }


with torch.inference_mode():
    for _ in range(20):
        module(image)
        compiled(image)
    times = call_us(module), call_us(compiled)
    (eager, operators), (graph, _) = works_us(module), works_us(compiled)
print(json.dumps({"call": times, "works": (eager, graph), **operators}))

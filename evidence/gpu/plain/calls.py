"""A user's own script on a GPU: calls.py MODEL eager|default|reduce-overhead [cpu].

Does not import the suite. Prints microseconds a call, four times over: calls one after the other
and one wait at the end; a wait after each call; the same by the device's own events; and calls one
after the other once more.
"""

import sys
import time

import models
import torch

NAME, MODE, DEVICE = sys.argv[1], sys.argv[2], (sys.argv[3:] or ["cuda"])[0]
wait = torch.cuda.synchronize if DEVICE == "cuda" else lambda: None
torch.manual_seed(0)
if NAME == "softmax_matmul":
    module, inputs = models.Softmax(), (torch.randn(1, 100, 100), torch.randn(1, 100, 100))
elif NAME.startswith("vit"):
    module, inputs = models.ViT(*map(int, NAME[3:].split("x"))), (torch.randn(1, 3, 224, 224),)
else:
    import timm

    module, inputs = timm.create_model(NAME), (torch.randn(1, 3, 224, 224),)
module, inputs = module.eval().to(DEVICE), [each.to(DEVICE) for each in inputs]
forward = module if MODE == "eager" else torch.compile(module, mode=MODE)


def apart(after_each):
    wait()
    calls, start = 0, time.perf_counter()
    while time.perf_counter() - start < 2:
        for _ in range(10):
            forward(*inputs)
            if after_each:
                wait()
        wait()
        calls += 10
    return (time.perf_counter() - start) / calls * 1e6


def by_events():
    total_ms = 0.0
    for _ in range(300):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        forward(*inputs)
        end.record()
        wait()
        total_ms += begin.elapsed_time(end)
    return total_ms / 300 * 1e3


with torch.inference_mode():
    for _ in range(30):
        forward(*inputs)
    events = by_events() if DEVICE == "cuda" else float("nan")
    print(f"{apart(False):.2f} {apart(True):.2f} {events:.2f} {apart(False):.2f}")

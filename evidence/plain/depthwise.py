"""depthwise.py MODEL [forced|fallback]: a training step, eager and compiled; without the suite."""

import statistics
import sys
import time

import timm
import torch
import torch._inductor.config
import torch._inductor.lowering as lowering

model, how = (*sys.argv[1:], "as it is")[:2]
backward = torch.ops.aten.convolution_backward.default
torch._inductor.config.force_disable_caches = True  # no cache knows of a replaced lowering
if how == "forced":  # channels last in the graph of the backward pass too
    torch._inductor.config.force_layout_optimization = True
elif how == "fallback":  # the lowering as it was up to 2.12
    lowering.lowerings[backward] = lowering.fallback_handler(backward)
torch.set_num_threads(2)
torch.manual_seed(20240724)
net = timm.create_model(model).train()
images, optimizer = torch.randn(4, 3, 224, 224), torch.optim.AdamW(net.parameters(), lr=1e-5)
forwards, milliseconds = (net, torch.compile(net)), ([], [])


def step(forward):
    start = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    forward(images).square().mean().backward()
    optimizer.step()
    return 1e3 * (time.perf_counter() - start)


for _ in range(50):
    for forward, times in zip(forwards, milliseconds, strict=True):
        times.append(min(step(forward), step(forward)))
eager, compiled = (statistics.median(times[10:]) for times in milliseconds)
print(
    f"{torch.__version__} {model} {how}: eager {eager:.1f} ms, "
    f"compiled {compiled:.1f} ms, ratio {compiled / eager:.2f}"
)

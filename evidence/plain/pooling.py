"""pooling.py: average pooling with a stride of 1, eager and compiled; without the suite."""

import statistics
import time

import torch
import torch._inductor.config
from torch._inductor import ir
from torch.nn.functional import avg_pool2d

torch._inductor.config.force_disable_caches = True  # no cache knows of a replaced function
torch.set_num_threads(2)
torch.manual_seed(20240724)
project, grid = torch.nn.Conv2d(64, 64, 1), torch.randn(1, 64, 32, 32)
create = ir.Reduction.create


def unroll_25(*arguments, **options):
    with torch._inductor.config.patch(unroll_reductions_threshold=26):
        return create(*arguments, **options)


def microseconds(forward):
    start = time.perf_counter()
    for _ in range(20):
        forward(grid)
    return 1e6 * (time.perf_counter() - start) / 20


def show(name, forward):
    forwards, times = (forward, torch.compile(forward)), ([], [])
    for _ in range(150):
        for one, those in zip(forwards, times, strict=True):
            those.append(microseconds(one))
    eager, compiled = (statistics.median(those[50:]) for those in times)
    ratio = f"ratio {compiled / eager:.2f}"
    print(f"{torch.__version__} {name}: eager {eager:.0f} us, compiled {compiled:.0f} us, {ratio}")


def pool(x, kernel, **options):
    return avg_pool2d(x, kernel, stride=1, **options).abs().mean(dim=1)


with torch.inference_mode():
    show("3 x 3 after a convolution", lambda x: pool(project(x), 3, padding=1))
    show("5 x 5 after a convolution", lambda x: pool(project(x), 5, padding=2))
    constant = {"padding": 2, "divisor_override": 25}
    show("divided by a constant", lambda x: pool(project(x), 5, **constant))
    show("5 x 5", lambda x: pool(x, 5, padding=2))
    show("4 x 6", lambda x: pool(x, (4, 6), padding=(2, 3)))
    ir.Reduction.create = unroll_25
    show("5 x 5, unrolled", lambda x: pool(x, 5, padding=2))

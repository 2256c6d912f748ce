"""What makes a small compiled call dear in PyTorch 2.9? One method, with any release.

Prints microseconds of a call: eager, compiled, and compiled with a CompiledFxGraph.__call__ that
only calls. That of 2.9 enters `record_function` first (pytorch/pytorch#163747).
"""

import statistics
import timeit

import torch

try:
    from torch._inductor.output_code import CompiledFxGraph
except ImportError:
    from torch._inductor.codecache import CompiledFxGraph


def add(x):
    return torch.add(x, x, alpha=0.5)


x, compiled, as_it_is = torch.randn(1, 16), torch.compile(add), CompiledFxGraph.__call__
with torch.inference_mode():
    for forward, method in (
        (add, as_it_is),
        (compiled, as_it_is),
        (compiled, lambda self, inputs: self.current_callable(inputs)),
    ):
        CompiledFxGraph.__call__ = method
        timer = timeit.Timer(lambda forward=forward: forward(x))
        calls = timer.autorange()[0]
        print(f"{statistics.median(timer.repeat(15, calls)) / calls * 1e6:.2f}", end=" ")
print(torch.__version__)

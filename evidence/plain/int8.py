"""A large linear layer in int8: int8.py WIDTH. Prints milliseconds a call, eager and compiled."""

import copy
import statistics
import sys
import timeit

import torch
from torchao import quantization

width = int(sys.argv[1])
plain, x = torch.nn.Linear(width, width), torch.randn(1, width)
dynamic, weights = copy.deepcopy(plain), copy.deepcopy(plain)
config = quantization.Int8DynamicActivationInt8WeightConfig(set_inductor_config=False)
quantization.quantize_(dynamic, config)
quantization.quantize_(weights, quantization.Int8WeightOnlyConfig(set_inductor_config=False))
with torch.inference_mode():
    for name, module in (("float32", plain), ("dynamic", dynamic), ("weight-only", weights)):
        for how, forward in (("eager", module), ("compiled", torch.compile(module))):
            timer = timeit.Timer(lambda forward=forward: forward(x))
            calls = timer.autorange()[0]
            median = statistics.median(timer.repeat(15, calls)) / calls * 1e3
            print(name, how, round(median, 3))

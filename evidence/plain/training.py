"""Does a training step of a timm model compile on a CPU? training.py MODEL THREADS

Prints the release, both arguments, and "compiles", or the first error of the C++ compiler.
"""

import sys

import timm
import torch

name, threads = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(threads)
torch.manual_seed(20240724)
net = timm.create_model(name).train()
images = torch.randn(4, 3, 224, 224)
try:
    torch.compile(net)(images).square().mean().backward()
    says = "compiles"
except Exception as error:
    lines = [line.partition("error: ")[2] for line in str(error).splitlines()]
    says = next(filter(None, lines), type(error).__name__)
print(torch.__version__, name, threads, says)

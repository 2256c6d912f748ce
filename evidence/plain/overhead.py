"""A call of small operators: overhead.py OPERATORS INPUTS. Prints microseconds, eager, compiled."""

import statistics
import sys
import timeit

import torch

operators, inputs = map(int, sys.argv[1:])


def chain(*given):
    x = given[0]
    for number in range(operators):
        x = torch.add(given[number % inputs], x, alpha=0.5)
    return x


given = [torch.randn(1, 16) for _ in range(inputs)]
with torch.inference_mode():
    for forward in (chain, torch.compile(chain)):
        timer = timeit.Timer(lambda forward=forward: forward(*given))
        calls = timer.autorange()[0]
        print(f"{statistics.median(timer.repeat(15, calls)) / calls * 1e6:.2f}")

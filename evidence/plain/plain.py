"""One side alone: plain.py MODEL BATCH eager|compiled [N]. Prints N stretches, then medians."""

import resource
import statistics
import sys
import time

import models
import torch

torch.manual_seed(20240724)
module, call, training = models.make(sys.argv[1], int(sys.argv[2]))
forward = torch.compile(module) if sys.argv[3] == "compiled" else module
stretches = []
with torch.inference_mode(not training):
    while len(stretches) < int(sys.argv[4] if len(sys.argv) > 4 else 70):
        faults, calls, start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, 0, time.time()
        while (end := time.time()) - start < 0.05:
            call(forward)
            calls += 1
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
        stretches.append(((end - start) / calls, faults / calls))
        print(start, end, *stretches[-1], flush=True)
print(*(statistics.median(each[i] for each in stretches[20:]) for i in (0, 1)))

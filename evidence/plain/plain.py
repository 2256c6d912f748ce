"""How long does a call take? Alone in its process: python plain.py MODEL BATCH eager|compiled"""

import resource
import statistics
import sys
import time

import models
import torch

torch.manual_seed(20240724)
module, call, training = models.make(sys.argv[1], int(sys.argv[2]))
forward = torch.compile(module) if sys.argv[3] == "compiled" else module
stretches = []  # seconds a call, and page faults a call, over 50 ms each
with torch.inference_mode(not training):
    while len(stretches) < 70:  # the first 20 are warm-up; then another process may take turns
        if len(stretches) == 20:
            print("warm", flush=True)
        faults, calls, start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, 0, time.time()
        while (seconds := time.time() - start) < 0.05:
            call(forward)
            calls += 1
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
        stretches.append((seconds / calls, faults / calls))
print(*(statistics.median(each[i] for each in stretches[20:]) for i in (0, 1)))

"""Milliseconds of a compiled call: in forks of a process that has imported torch, in new processes.

Run it with MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=2147483647 MALLOC_TOP_PAD_=67108864: no call
then makes a page fault.
"""

import os
import statistics
import subprocess
import sys
import time

import torch


def chain(x):
    gate = torch.sigmoid(x * 1.5 + 0.5)
    return torch.relu(x * gate - 0.1).square().neg().exp()


def measure():
    torch.set_num_threads(2)
    compiled, x, times = torch.compile(chain), torch.randn(1024, 1024), []
    with torch.no_grad():
        for _ in range(300):
            start = time.perf_counter()
            compiled(x)
            times.append(time.perf_counter() - start)
    print(f"{statistics.median(times) * 1e3:.2f}", end=" ", flush=True)


if sys.argv[1:] == ["one"]:
    measure()
else:
    print(torch.__version__, "forks:", end=" ", flush=True)
    for _ in range(6):
        if not (child := os.fork()):
            measure()
            os._exit(0)
        os.waitpid(child, 0)
    print("new processes:", end=" ", flush=True)
    for _ in range(6):
        subprocess.run([sys.executable, __file__, "one"], check=True, stderr=subprocess.DEVNULL)
    print()

"""Runs in the environment of a release: calls in turns, with a reading of the probes before each.

    python -m evidence.calls_runner WORKLOAD BATCH_SIZE

Prints as JSON torch's version and, of each sample, its side (0 eager, 1 compiled), the seconds a
call, and the reading.
"""

from __future__ import annotations

import gc
import itertools
import json
import math
import sys
import time
from functools import partial

from torchcompile_suite import workloads
from torchcompile_suite.host import probes

TURN_S, SAMPLE_S, TIMED_S = 0.06, 0.002, 20.0


def main() -> None:
    """Measure and print."""
    import torch

    torch.manual_seed(0)
    module, inputs = workloads.get(sys.argv[1]).build(int(sys.argv[2]))
    module.eval()
    rows = []
    with torch.inference_mode():
        calls = [partial(module, *inputs), partial(torch.compile(module), *inputs)]
        for call in calls * 20:
            call()
        gc.collect()
        gc.disable()
        end = time.perf_counter() + TIMED_S
        for side in itertools.cycle((0, 1)):
            start = time.perf_counter()
            if start > end:
                break
            calls[side]()
            count = max(1, math.ceil(SAMPLE_S / (time.perf_counter() - start)))
            while True:
                reading = probes.read()
                begin = time.perf_counter()
                for _ in range(count):
                    calls[side]()
                rows.append((side, (time.perf_counter() - begin) / count, reading))
                if time.perf_counter() > start + TURN_S:
                    break
    print(json.dumps([torch.__version__, rows]))


if __name__ == "__main__":
    main()

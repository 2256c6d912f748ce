"""Who draws the random numbers of a compiled model on a CPU? Dropout and `randn_like`, any release.

Prints milliseconds, the median of 100 calls, and what the generated code calls for them.
"""

import time
from itertools import pairwise
from statistics import median

import torch
from torch._inductor.utils import run_and_get_code

x = torch.randn(1, 64, 128, 128)
operators = {
    "dropout": lambda x: torch.nn.functional.dropout(x, 0.1, training=True),
    "randn_like": lambda x: torch.randn_like(x) + x,
}


def milliseconds(call):
    ends = [time.perf_counter() for _ in range(121) if call(x) is not None][20:]
    return 1000 * median(end - start for start, end in pairwise(ends))


with torch.inference_mode():
    for name, call in operators.items():
        compiled = torch.compile(call)
        _, (code, *_) = run_and_get_code(compiled, x)
        drawn = [word for word in ("normalized_rand_cpu", "randn_cpu", "bernoulli") if word in code]
        eager, mode = milliseconds(call), milliseconds(compiled)
        print(torch.__version__, name, f"eager {eager:.2f}, compiled {mode:.2f}:", *drawn)

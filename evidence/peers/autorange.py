"""``python -m evidence.peers.autorange WORKLOAD``: torch.utils.benchmark, one process.

Prints as JSON: seconds a call in eager and compiled, seconds of the first compiled call, and peak
memory in KiB.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import torch
from torch.utils.benchmark import Timer

from evidence.peers import build


def main() -> None:
    """Measure and print."""
    module, inputs, compiled = build(sys.argv[1])
    with torch.inference_mode():
        start = time.perf_counter()
        compiled(*inputs)
        compile_s = time.perf_counter() - start
        # With the default of one thread it would not measure what users run.
        eager_s, compiled_s = (
            Timer(
                "call(*inputs)",
                globals={"call": call, "inputs": inputs},
                num_threads=torch.get_num_threads(),
            )
            .adaptive_autorange()
            .median
            for call in (module, compiled)
        )
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([eager_s, compiled_s, compile_s, peak_kib]))


if __name__ == "__main__":
    main()

"""Imports the compiler's modules; `IMPORT_S` is the seconds that the import took.

torch imports Inductor at the first compiled call, which takes three seconds in each process of a
user. They are part of the compile cost, and are recorded apart from compiling.
"""

from __future__ import annotations

import importlib
import sys
import time

importlib.import_module("torch")  # a model needs torch anyway, so its import does not count
_start = time.perf_counter()
importlib.import_module("torch._inductor.compile_fx")
IMPORT_S = round(time.perf_counter() - _start, 4)


def captures() -> int:
    """Graphs that Dynamo has captured since its counters were cleared.

    It is not in `inspect.versions`, because each launch asks before its turns. To import that
    package takes memory that a user's script does not take.
    """
    return int(sys.modules["torch._dynamo.utils"].counters["stats"]["unique_graphs"])


def so_far() -> dict[str, int]:
    """Graphs and operators that Dynamo has captured, and kernels that Inductor has written."""
    operators = sys.modules["torch._dynamo.utils"].counters["stats"]["calls_captured"]
    kernels = getattr(sys.modules.get("torch._inductor.metrics"), "generated_kernel_count", 0)
    return {"graphs": captures(), "operators": int(operators), "kernels": int(kernels)}

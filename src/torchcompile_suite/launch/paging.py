"""The kernel's share of a call: it hands out the memory of large tensors and takes it back.

The C library's malloc returns large blocks to the system at once and requests them again at the
next call (mallopt(3), M_MMAP_THRESHOLD). Other allocators keep them. The compiler cannot save this
share of a call's time.
"""

from __future__ import annotations

import resource
import time

from ..cell import Paging
from .subject import Call

# The kernel counts a process's time in ticks of 10 ms, so a share needs many ticks.
AT_LEAST_S = 0.5


def paging(call: Call) -> Paging:
    """Page faults a call and the kernel's share of the processor time (getrusage(2)), over half a
    second of calls.
    """
    start = resource.getrusage(resource.RUSAGE_SELF)
    deadline = time.perf_counter() + AT_LEAST_S
    calls = 0
    while calls < 2 or time.perf_counter() < deadline:
        call()
        calls += 1
    end = resource.getrusage(resource.RUSAGE_SELF)
    kernel_s = end.ru_stime - start.ru_stime
    whole_s = kernel_s + end.ru_utime - start.ru_utime
    return Paging(
        faults=float(f"{(end.ru_minflt - start.ru_minflt) / calls:.4g}"),
        kernel_share=round(kernel_s / whole_s, 4) if whole_s > 0 else 0.0,
    )

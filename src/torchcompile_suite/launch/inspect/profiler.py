"""An accelerator's time line under torch.profiler: what ran, what waited, what the host started."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...cell import Profile

CALLS = 10
# What starts work on a CUDA device: single kernels, Triton's through the driver, whole graphs.
_LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch", "hipLaunchKernel")


# What the host annotates is mirrored on the device's line, as long as all that it covers. Events of
# 2.4 do not say that they are such.
_ANNOTATIONS = ("## Call", "Optimizer.", "ProfilerStep")


def profile(call: Callable[[], Any], synchronize: Callable[[], None]) -> Profile | None:
    """The time line of `CALLS` steady calls; None where the profiler saw nothing on the device.

    Never used for timings: profiling slows the host.
    """
    from torch import profiler as torch_profiler
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity

    with torch_profiler.profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]
    ) as profiler:
        for _ in range(CALLS):
            call()
        synchronize()
    events = list(profiler.events() or ())
    spans = [
        (event.time_range.start / 1e6, event.time_range.end / 1e6)
        for event in events
        if event.device_type == DeviceType.CUDA
        and not getattr(event, "is_user_annotation", False)
        and not event.name.startswith(_ANNOTATIONS)
    ]
    if not spans:
        return None
    launches = sum(1 for event in events if event.name.startswith(_LAUNCHES))
    return summary(spans, launches, CALLS)


def summary(spans: Iterable[tuple[float, float]], launches: int, calls: int) -> Profile:
    """Busy and idle time of spans (start, end) in seconds, which may overlap."""
    spans = sorted(spans)
    busy = idle = largest = 0.0
    reached: float | None = None
    for start, end in spans:
        if reached is None:
            busy += end - start
            reached = end
            continue
        gap = start - reached
        if gap > 0:
            idle += gap
            largest = max(largest, gap)
        busy += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return Profile(
        calls=calls,
        launches=launches,
        kernels=len(spans),
        busy_s=busy,
        idle_s=idle,
        largest_gap_s=largest,
    )

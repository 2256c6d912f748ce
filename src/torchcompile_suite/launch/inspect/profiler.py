"""An accelerator's time line under torch.profiler: busy time, idle time, kernel launches."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from ...compiled import Profile

CALLS = 10
# Calls of the host that start work on a device: kernels, Triton's kernels (through the driver) and
# whole CUDA graphs. Each is the beginning of several names. The second half is ROCm's.
_KERNEL_LAUNCHES = (
    *("cudaLaunchKernel", "cuLaunchKernel", "cudaLaunchCooperative", "cuLaunchCooperative"),
    *("cudaGraphLaunch", "cuGraphLaunch"),
    *("hipLaunchKernel", "hipLaunchCooperative", "hipExtLaunch", "hipModuleLaunch"),
    *("hipExtModuleLaunch", "hipGraphLaunch"),
)
# CUPTI must not be taken down after the profile: in some releases of CUDA the next CUDA graph would
# crash. torch sets the same variables, but not for each way to CUDA graphs, such as the backend
# ``cudagraphs``.
_KEEP_CUPTI = {"DISABLE_CUPTI_LAZY_REINIT": "1", "TEARDOWN_CUPTI": "0"}

# The device's time line repeats the host's annotations, each as long as all that it covers. In
# torch 2.4 these events do not carry the flag ``is_user_annotation``.
_ANNOTATIONS = ("## Call", "Optimizer.", "ProfilerStep")


def profile(call: Callable[[], Any], synchronize: Callable[[], None]) -> Profile | None:
    """The time line of `CALLS` steady calls; None if the profiler saw nothing on the device.

    Do not use it for timings: profiling slows the host, from here to the end of the process.
    """
    events = _events(call, synchronize)
    spans = _spans(events)
    if not spans:
        return None
    return summary(spans, sum(launches(event.name) for event in events), CALLS)


def device_s(
    call: Callable[[], Any], synchronize: Callable[[], None]
) -> tuple[float, dict[str, float]]:
    """Seconds in which a device works for one of `CALLS` steady calls: in all, and for what the
    host starts in a range, by the name of the range.
    """
    from torch.autograd import DeviceType

    events = _events(call, synchronize)
    within: dict[str, float] = defaultdict(float)
    for event in events:
        if event.device_type == DeviceType.CPU:
            # In 2.4 the time has the name of the only kind of device.
            newer = hasattr(event, "device_time_total")
            total_us = event.device_time_total if newer else event.cuda_time_total
            within[event.name] += total_us / 1e6 / CALLS
    return summary(_spans(events), 0, CALLS).busy_s / CALLS, within


def _events(call: Callable[[], Any], synchronize: Callable[[], None]) -> list[Any]:
    os.environ.update(_KEEP_CUPTI)
    from torch import profiler as torch_profiler
    from torch.profiler import ProfilerActivity

    with torch_profiler.profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]
    ) as profiler:
        for _ in range(CALLS):
            call()
        synchronize()
    return list(profiler.events() or ())


def _spans(events: Iterable[Any]) -> list[tuple[float, float]]:
    """When the device worked: start and end of each kernel and copy, in seconds."""
    from torch.autograd import DeviceType

    return [
        (event.time_range.start / 1e6, event.time_range.end / 1e6)
        for event in events
        if event.device_type == DeviceType.CUDA
        and not getattr(event, "is_user_annotation", False)
        and not event.name.startswith(_ANNOTATIONS)
    ]


def launches(name: str) -> bool:
    """Whether the host's call of that name starts work on a device."""
    return name.startswith(_KERNEL_LAUNCHES)


def summary(spans: Iterable[tuple[float, float]], kernel_launches: int, calls: int) -> Profile:
    """Busy and idle time of ``spans``: (start, end) of each kernel in seconds. They may overlap."""
    spans = sorted(spans)
    busy = idle = largest = 0.0
    reached = spans[0][0] if spans else 0.0
    for start, end in spans:
        gap = max(0.0, start - reached)
        idle += gap
        largest = max(largest, gap)
        busy += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return Profile(
        calls=calls,
        kernel_launches=kernel_launches,
        kernels=len(spans),
        busy_s=busy,
        idle_s=idle,
        largest_gap_s=largest,
    )

"""Facts of a device, each as a line of JSON: ``python -m evidence.gpu.proofs NAME cuda``.

They need torch, and of the suite only what they look at.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from statistics import median
from typing import Any

import torch

from torchcompile_suite.engine.calibration import CalibrationLoop
from torchcompile_suite.launch.device import get

from .campaign import MODES

CALLS = 10


def device(kind: str) -> dict[str, Any]:
    """What torch and NVML say of the device."""
    said: dict[str, Any] = {"torch": torch.__version__, "commit": torch.version.git_version}
    if kind == "cuda":
        said |= {
            "properties": str(torch.cuda.get_device_properties(0)),
            "architectures": torch.cuda.get_arch_list(),
            "cudnn": torch.backends.cudnn.version(),
            "tf32": [torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32],
        }
    try:
        import pynvml

        pynvml.nvmlInit()
        said["driver"] = pynvml.nvmlSystemGetDriverVersion()
        said["GPUs"] = pynvml.nvmlDeviceGetCount()
    except Exception as error:
        said["NVML"] = str(error)
    return said


def _resnet(kind: str, mode: str) -> Any:
    import timm

    torch.manual_seed(0)
    model = timm.create_model("resnet18").eval().to(kind)
    image = torch.randn(1, 3, 224, 224, device=kind)
    forward = model if mode == "eager" else torch.compile(model, mode=mode)
    return lambda: forward(image)


def memory(kind: str) -> dict[str, Any]:
    """Bytes that torch reserves and hands out for resnet18, and the pools of CUDA graphs."""
    said: dict[str, Any] = {}
    on = get(kind)
    for mode in MODES:
        torch._dynamo.reset()
        call = _resnet(kind, mode)
        with torch.inference_mode():
            for _ in range(5):
                call()
            on.reset_peak_memory()
            call()
            on.synchronize()
        said[mode] = {"reserved": on.peak_memory_bytes(), "held": on.held_bytes()}
        if kind == "cuda":
            said[mode]["allocated"] = torch.cuda.max_memory_allocated()
            pools: Counter[str] = Counter()
            for segment in torch.cuda.memory_snapshot():
                pools[str(segment.get("segment_pool_id"))] += segment["total_size"]
            said[mode]["pools"] = pools
        del call
    return said


def activities(kind: str) -> dict[str, Any]:
    """What torch.profiler sees of ten calls of resnet18, by name; kernels as one line."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    on, said = get(kind), {}
    for mode in MODES:
        torch._dynamo.reset()
        call = _resnet(kind, mode)
        seen = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if kind == "cuda" else [])
        with torch.inference_mode():
            for _ in range(5):
                call()
            on.synchronize()
            with profile(activities=seen) as profiler:
                for _ in range(CALLS):
                    call()
                on.synchronize()
        names: Counter[str] = Counter()
        for event in profiler.events() or ():
            if event.device_type == DeviceType.CUDA:
                names["device: " + (event.name if event.name.startswith("Mem") else "kernel")] += 1
            elif event.name.startswith(("cu", "hip")):
                names[event.name] += 1
        said[mode] = names
    return said


def calibration(kind: str) -> dict[str, Any]:
    """Microseconds of the calibration loop: one thread and one for each processor, alone and
    while the device works.
    """
    said = {}
    call, on = _resnet(kind, "eager"), get(kind)
    with torch.inference_mode():
        for threads in (1, torch.get_num_threads(), os.cpu_count() or 1):
            for works in (False, True):
                with CalibrationLoop(threads) as loop:
                    until = time.monotonic() + 2
                    while time.monotonic() < until:
                        if works:
                            for _ in range(5):
                                call()
                            on.synchronize()
                        loop()
                    times = sorted(loop._calls_s)
                key = f"{threads} threads, {'between calls' if works else 'alone'}"
                said[key] = [round(each * 1e6, 1) for each in (times[0], median(times), times[-1])]
    return said


if __name__ == "__main__":
    _, name, kind = sys.argv
    print(
        json.dumps(
            {
                "device": device,
                "memory": memory,
                "activities": activities,
                "calibration": calibration,
            }[name](kind)
        )
    )

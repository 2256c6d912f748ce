"""Checks of the GPU that torch uses, by what its driver says: one question to NVML each."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..analysis.statistics import FAULTS
from ..host import nvml
from ..host.cuda import Gpu
from ..host.machine import DEVICE_VARIABLE
from . import Check, fault, ok

# The check that a machine without an owner in front of it has to pass.
PROCESSES = "GPU processes"
# The driver rounds its limits.
_ROUNDING_W = 1.0
_UNKNOWN = "the driver does not tell"


def checks() -> Iterator[Check]:
    """All checks of the first GPU that CUDA sees; none without one, or where a CPU is measured."""
    gpus = nvml.visible()
    if not gpus or os.environ.get(DEVICE_VARIABLE) == "cpu":
        return
    gpu = gpus[0]
    with nvml.opened(gpu.uuid) as device:
        if device is None:
            yield fault("gpu_unknown", gpu=gpu.name)
            return
        yield ok("GPU driver", device.driver())
        part = f"a slice, {gpu.mig}: its results are those of a machine of its own"
        yield ok("MIG", part if gpu.mig else "a whole GPU")
        yield persistence(gpu)
        yield power(gpu.power_limit_w, device.default_power_limit_w())
        yield clocks(device.slowed_by())
        yield processes(device.processes())
        yield ecc(gpu)


def persistence(gpu: Gpu) -> Check:
    """Whether the driver stays awake when no process uses the GPU."""
    if gpu.persistence is False:
        return fault("gpu_persistence")
    return ok("GPU persistence", "on" if gpu.persistence else _UNKNOWN)


def power(limit_w: float | None, default_w: float | None) -> Check:
    """Whether somebody has lowered the limit of the power. None: the driver does not tell."""
    if limit_w is None or default_w is None:
        return ok("GPU power", _UNKNOWN)
    if limit_w < default_w - _ROUNDING_W:
        return fault("gpu_power", limit_w=limit_w, default_w=default_w)
    return ok("GPU power", f"limit {limit_w:.0f} W")


def clocks(slowed_by: list[str] | None) -> Check:
    """Whether the driver lowers the clocks now, before anything is measured."""
    if slowed_by is None:
        return ok("GPU clocks", _UNKNOWN)
    reasons = ", ".join(slowed_by)
    if FAULTS.intersection(slowed_by):
        return fault("gpu_clocks", reasons=reasons)
    return ok("GPU clocks", reasons or "nothing lowers them")


def processes(listed: list[int] | None) -> Check:
    """Whether other processes use the GPU."""
    if listed:
        return fault("gpu_processes", processes=", ".join(map(str, sorted(listed))))
    return ok(PROCESSES, _UNKNOWN if listed is None else "no other process uses the GPU")


def ecc(gpu: Gpu) -> Check:
    """Whether errors of the memory are corrected, which takes part of some GPUs' bandwidth."""
    if gpu.ecc is None:
        return ok("GPU memory", "without correction of errors (ECC)")
    return ok("GPU memory", f"correction of errors (ECC) is {'on' if gpu.ecc else 'off'}")

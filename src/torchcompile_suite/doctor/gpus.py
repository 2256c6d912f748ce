"""Checks of the GPU that torch uses, by what its driver says: one question to NVML each."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..analysis.statistics import FAULTS
from ..host import nvml
from ..host.machine import DEVICE_VARIABLE
from ..host.nvml import Gpu, Health
from .check import Check, ok, warning

# The check that a machine without an owner in front of it has to pass.
PROCESSES = "GPU processes"
# The driver rounds its limits.
_ROUNDING_W = 1.0


def checks() -> Iterator[Check]:
    """All checks of the first GPU that CUDA sees; none without one, or where a CPU is measured."""
    gpus = nvml.visible()
    if not gpus or os.environ.get(DEVICE_VARIABLE) == "cpu":
        return
    gpu, health = gpus[0], nvml.health(gpus[0].uuid)
    if health is None:
        yield warning(
            "GPU driver",
            f"NVML does not know the {gpu.name}: its clocks and other processes are not watched",
            "pip install nvidia-ml-py; for a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        )
        return
    yield ok("GPU driver", health.driver)
    yield mig(gpu)
    yield persistence(gpu)
    yield power(gpu, health)
    yield clocks(health)
    yield processes(health)
    yield ecc(gpu)


def mig(gpu: Gpu) -> Check:
    """Whether the device is a slice of a GPU, whose neighbours share its power and its heat."""
    if gpu.mig:
        return ok("MIG", f"a slice, {gpu.mig}: its results are those of a machine of its own")
    return ok("MIG", "a whole GPU")


def persistence(gpu: Gpu) -> Check:
    """Whether the driver stays awake when no process uses the GPU."""
    if gpu.persistence is None:
        return ok("GPU persistence", "the driver does not tell")
    if gpu.persistence:
        return ok("GPU persistence", "on")
    return warning(
        "GPU persistence",
        "off: the driver starts anew with each process, which takes up to seconds",
        "sudo nvidia-smi -pm 1",
    )


def power(gpu: Gpu, health: Health) -> Check:
    """Whether somebody has lowered the limit of the power."""
    limit_w, default_w = gpu.power_limit_w, health.default_power_limit_w
    if limit_w is None or default_w is None:
        return ok("GPU power", "the driver does not tell")
    if limit_w < default_w - _ROUNDING_W:
        return warning(
            "GPU power",
            f"limited to {limit_w:.0f} W; the default is {default_w:.0f} W",
            f"sudo nvidia-smi -pl {default_w:.0f}",
        )
    return ok("GPU power", f"limit {limit_w:.0f} W")


def clocks(health: Health) -> Check:
    """Whether the driver lowers the clocks now, before anything is measured."""
    if health.slowed_by is None:
        return ok("GPU clocks", "the driver does not tell")
    text = ", ".join(health.slowed_by)
    if FAULTS.intersection(health.slowed_by):
        return warning(
            "GPU clocks", f"lowered now: {text}", "let it cool, and look at its fans and supply"
        )
    return ok("GPU clocks", text or "nothing lowers them")


def processes(health: Health) -> Check:
    """Whether other processes use the GPU."""
    if health.processes is None:
        return ok(PROCESSES, "the driver does not tell")
    if health.processes:
        listed = ", ".join(map(str, sorted(health.processes)))
        return warning(PROCESSES, f"others use the GPU: {listed}", "end them, or use another GPU")
    return ok(PROCESSES, "no other process uses the GPU")


def ecc(gpu: Gpu) -> Check:
    """Whether errors of the memory are corrected, which takes part of some GPUs' bandwidth."""
    if gpu.ecc is None:
        return ok("GPU memory", "without correction of errors (ECC)")
    return ok("GPU memory", f"correction of errors (ECC) is {'on' if gpu.ecc else 'off'}")

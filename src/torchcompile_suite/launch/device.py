"""What differs between devices: how to wait for them, and how to measure their memory.

A new device needs changes in this module only. ROCm devices have the kind ``cuda`` in torch.
"""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path
from typing import Any, Protocol

import torch

from ..host import heap


class Device(Protocol):
    """A device's clock, memory and name."""

    kind: str

    def unavailable(self) -> str:
        """Why this process cannot use the device, or the empty string."""

    def synchronize(self) -> None:
        """Return when all queued work has finished. Called inside the timed region."""

    def reset_peak_memory(self) -> None:
        """Set the peak to the current memory use."""

    def peak_memory_bytes(self) -> int | None:
        """The peak memory use since the last reset, or None if it is unknown."""

    def held_bytes(self) -> tuple[int, int] | None:
        """What the allocator has handed out, and what it holds; None if it is unknown."""

    def name(self) -> str:
        """The hardware's name."""

    def driver(self) -> str:
        """The driver's version, or the empty string."""


class Cpu:
    """The host's processor. Its memory is the resident set of the process."""

    kind = "cpu"
    _status = Path("/proc/self/status")

    def unavailable(self) -> str:
        return ""

    def synchronize(self) -> None:
        pass

    def reset_peak_memory(self) -> None:
        # Linux resets VmHWM when 5 is written to this file (proc(5)). Other systems only know the
        # peak since the process began.
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            pass

    def peak_memory_bytes(self) -> int | None:
        try:
            peak = re.search(r"^VmHWM:\s+(\d+) kB", self._status.read_text(), re.MULTILINE)
        except OSError:
            peak = None
        if peak:
            return int(peak[1]) * 1024
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    def held_bytes(self) -> tuple[int, int] | None:
        return heap.held()

    def name(self) -> str:
        return ""  # `Environment.cpu` has it

    def driver(self) -> str:
        return ""


class Cuda:
    """The current CUDA or ROCm device. Its memory is what torch's allocator has reserved.

    `torch.cuda.max_memory_reserved` is the memory that the caching allocator manages.
    `torch.cuda.max_memory_allocated` counts only the tensors that are alive. The replay of a CUDA
    graph allocates no tensor, because the graph's memory stays in its private pool. So allocated
    memory would leave the pools out, and reduce-overhead would seem to need the least memory.
    """

    kind = "cuda"

    def unavailable(self) -> str:
        if torch.cuda.is_available():
            return ""
        built = torch.version.cuda or torch.version.hip
        if not built:
            return f"torch {torch.__version__} is a CPU-only build; install a CUDA build"
        return f"torch {torch.__version__} (CUDA {built}) finds no usable GPU; check nvidia-smi"

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def reset_peak_memory(self) -> None:
        # Without this, the peak would include memory that earlier stages freed.
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()

    def peak_memory_bytes(self) -> int | None:
        return int(torch.cuda.max_memory_reserved())

    def held_bytes(self) -> tuple[int, int] | None:
        return int(torch.cuda.memory_allocated()), int(torch.cuda.memory_reserved())

    def name(self) -> str:
        return str(torch.cuda.get_device_name())

    def driver(self) -> str:
        try:
            text = Path("/proc/driver/nvidia/version").read_text()
        except OSError:
            return ""
        version = re.search(r"Kernel Module.*?(\d+\.\d+(?:\.\d+)?)", text)
        return version[1] if version else ""


class Unsynchronised:
    """A device that the clock does not wait for: one of the classic timing mistakes."""

    def __init__(self, device: Device) -> None:
        """All but `synchronize` is done by ``device``."""
        self._device = device

    def synchronize(self) -> None:
        """Return at once."""

    def __getattr__(self, name: str) -> Any:
        """The device's own attribute."""
        return getattr(self._device, name)


_DEVICES: dict[str, type[Cpu] | type[Cuda]] = {"cpu": Cpu, "cuda": Cuda}


def get(kind: str) -> Device:
    """The device of that kind. Raises KeyError, which lists the known kinds."""
    try:
        return _DEVICES[kind]()
    except KeyError:
        raise KeyError(f"no device {kind!r}; there are: {', '.join(_DEVICES)}") from None

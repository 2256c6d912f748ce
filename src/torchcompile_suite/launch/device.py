"""What differs between devices: when work is done, and how much memory it took.

The only module to touch when a device is added (ROCm answers to ``cuda`` already).
"""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path
from typing import Any, Protocol

import torch


class Device(Protocol):
    """A device's clock, memory and name."""

    kind: str

    def unavailable(self) -> str:
        """Why nothing can run on it here, or the empty string."""

    def synchronize(self) -> None:
        """Return when everything queued has finished. Called inside the clock."""

    def reset_peak_memory(self) -> None:
        """Forget the highest memory use so far."""

    def peak_memory_bytes(self) -> int | None:
        """The highest memory use since the last reset, or None where it cannot be told."""

    def name(self) -> str:
        """The hardware's name."""

    def driver(self) -> str:
        """The driver's version, or the empty string."""


class Cpu:
    """The host's processor. Memory is the process's resident set."""

    kind = "cpu"
    _status = Path("/proc/self/status")

    def unavailable(self) -> str:
        return ""

    def synchronize(self) -> None:
        pass

    def reset_peak_memory(self) -> None:
        # Linux resets VmHWM when 5 is written here (proc(5)); elsewhere the peak since the
        # process began is all there is.
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            pass

    def peak_memory_bytes(self) -> int | None:
        try:
            found = re.search(r"^VmHWM:\s+(\d+) kB", self._status.read_text(), re.MULTILINE)
        except OSError:
            found = None
        if found:
            return int(found[1]) * 1024
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    def name(self) -> str:
        return ""  # the environment's `cpu` says it

    def driver(self) -> str:
        return ""


class Cuda:
    """A CUDA (or ROCm) device, the current one. Memory is what torch's allocator holds."""

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
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()

    def peak_memory_bytes(self) -> int | None:
        # Reserved, not allocated: replaying a CUDA graph allocates nothing, so that the graphs' own
        # pools would go uncounted and reduce-overhead would seem to need least.
        return int(torch.cuda.max_memory_reserved())

    def name(self) -> str:
        return str(torch.cuda.get_device_name())

    def driver(self) -> str:
        try:
            text = Path("/proc/driver/nvidia/version").read_text()
        except OSError:
            return ""
        found = re.search(r"Kernel Module.*?(\d+\.\d+(?:\.\d+)?)", text)
        return found[1] if found else ""


class Unsynchronised:
    """A device that nobody waits for: what a naive clock takes it for."""

    def __init__(self, device: Device) -> None:
        """Everything but waiting is that device's."""
        self._device = device

    def synchronize(self) -> None:
        """Return at once."""

    def __getattr__(self, name: str) -> Any:
        """What the device has."""
        return getattr(self._device, name)


_DEVICES: dict[str, type[Cpu] | type[Cuda]] = {"cpu": Cpu, "cuda": Cuda}


def get(kind: str) -> Device:
    """The device of that kind; KeyError names the known ones."""
    try:
        return _DEVICES[kind]()
    except KeyError:
        raise KeyError(f"no device {kind!r}; there are: {', '.join(_DEVICES)}") from None

"""What CUDA sees of this machine's GPUs: which, and in which order.

Only CUDA's driver knows. It reads CUDA_VISIBLE_DEVICES, with all its spellings, and
CUDA_DEVICE_ORDER, and by default it puts the fastest GPU first; NVML and nvidia-smi do neither. It
is there wherever torch can use a GPU, also in a container without nvidia-smi.

This file is a program, too, which prints the answer. It runs in a process of its own: a driver that
was started once keeps its variables, and does not survive a fork. So it uses the standard library
only.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import uuid
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

LIBRARY = "libcuda.so.1"
# The kernel's side of the driver: on Linux, and below Windows.
NODES = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
# Drivers of laptops and of hosts with many GPUs take seconds to wake up.
LIMIT_S = 60.0
_NO_DEVICE = 100
_NAME_BYTES = 256


class Gpu(NamedTuple):
    """A GPU or a MIG slice of one. None or an empty text: the driver does not say.

    - ``uuid``: with its prefix, ``GPU-`` or ``MIG-``; without one in `Seen`, as torch gives it.
    - ``name``: as torch spells it; that of a slice ends with its profile.
    - ``mig``: the profile, such as ``1g.10gb``; empty for a whole GPU.
    - ``power_limit_w``: the limit that is enforced. ``max_sm_clock_mhz``: the fastest clock.
    - ``ecc``, ``persistence``: whether the mode is on. ``numa_node``: of the host.

    CUDA knows the first two and the memory; `host.nvml` asks for the rest.
    """

    uuid: str
    name: str
    mig: str = ""
    memory_bytes: int | None = None
    power_limit_w: float | None = None
    max_sm_clock_mhz: int | None = None
    ecc: bool | None = None
    persistence: bool | None = None
    numa_node: int | None = None


class Seen(NamedTuple):
    """What CUDA sees.

    - ``devices``: in CUDA's order. ``fault``: why the driver cannot use what is there, in its
      words; empty where there is no GPU.
    - ``version``: of CUDA, the newest that the driver supports, such as 13000; 0 without a driver.
    """

    devices: tuple[Gpu, ...] = ()
    fault: str = ""
    version: int = 0


def seen() -> Seen:
    """What a process with the present variables would see. Takes a second once."""
    return _seen(os.environ.get("CUDA_VISIBLE_DEVICES"), os.environ.get("CUDA_DEVICE_ORDER"))


@cache
def _seen(_chosen: str | None, _order: str | None) -> Seen:
    command = [sys.executable, "-I", "-S", __file__]
    try:
        done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=True)
        devices, fault, version = json.loads(done.stdout)
    except (subprocess.SubprocessError, OSError, ValueError):
        fault = "it does not answer"
        devices, version = [], 0
    if not any(node.exists() for node in NODES):
        fault = ""  # the driver is installed where there is no GPU
    return Seen(tuple(Gpu(*device) for device in devices), fault, version)


class _Refused(Exception):
    """The driver's error, in its words."""


def _ask() -> Seen:
    try:
        driver = ctypes.CDLL(LIBRARY)
    except OSError:
        return Seen()
    version = ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    status = driver.cuInit(0)
    if status == _NO_DEVICE:
        return Seen(version=version.value)
    try:
        _check(driver, status)
        count = ctypes.c_int()
        _check(driver, driver.cuDeviceGetCount(ctypes.byref(count)))
        devices = tuple(_device(driver, ordinal) for ordinal in range(count.value))
    except _Refused as refused:
        return Seen((), str(refused), version.value)
    return Seen(devices, "", version.value)


def _device(driver: Any, ordinal: int) -> Gpu:
    device = ctypes.c_int()
    _check(driver, driver.cuDeviceGet(ctypes.byref(device), ordinal))
    name = ctypes.create_string_buffer(_NAME_BYTES)
    _check(driver, driver.cuDeviceGetName(name, _NAME_BYTES, device))
    memory = ctypes.c_size_t()
    _check(driver, driver.cuDeviceTotalMem_v2(ctypes.byref(memory), device))
    identity = ctypes.create_string_buffer(16)
    # The first version gives the UUID of the whole GPU for each of its slices. Drivers before R470
    # have no other one, and no slices with UUIDs.
    ask = getattr(driver, "cuDeviceGetUuid_v2", None) or driver.cuDeviceGetUuid
    _check(driver, ask(identity, device))
    identified = str(uuid.UUID(bytes=identity.raw))
    return Gpu(identified, name.value.decode(), memory_bytes=memory.value)


def _check(driver: Any, status: int) -> None:
    if status:
        text = ctypes.c_char_p()
        driver.cuGetErrorName(status, ctypes.byref(text))
        raise _Refused((text.value or b"").decode() or f"error {status}")


if __name__ == "__main__":
    print(json.dumps(_ask()))

"""What NVIDIA's management library (NVML) says of a GPU, and of its state while it works.

NVML comes with the driver, and pynvml asks it. Either may be missing: in a container, on ROCm, in
the environment of a torch that the user installed. Then nothing is known, and nothing fails. A
query that a device does not support gives None.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from statistics import median_low
from typing import Any, NamedTuple, TypeVar

from ..conditions import DeviceState
from . import cuda, kernel
from .cuda import Gpu

# The driver's reasons for a lower clock, as bits, in NVML's order. That the device is idle is none.
POWER_CAP = "software power cap"
SLOWDOWN = "hardware slowdown"
SOFTWARE_HEAT = "software thermal slowdown"
HARDWARE_HEAT = "hardware thermal slowdown"
POWER_BRAKE = "hardware power brake"
REASONS = {
    0x2: "clocks set by the user",
    0x4: POWER_CAP,
    0x8: SLOWDOWN,
    0x10: "sync boost",
    0x20: SOFTWARE_HEAT,
    0x40: HARDWARE_HEAT,
    0x80: POWER_BRAKE,
    0x100: "display clocks",
}
# Of a GPU whose memory is divided, a slice has eighths.
_EIGHTHS = 8
_GIB = 2**30

_Answer = TypeVar("_Answer")


def visible() -> list[Gpu]:
    """The GPUs and slices that CUDA sees, in its order; what NVML does not know of them is None."""
    return [_visible(one) for one in cuda.seen().devices]


def _visible(seen: Gpu) -> Gpu:
    known = device(seen.uuid)
    if known is not None:
        # torch has its name from CUDA.
        return known._replace(name=full_name(seen.name, known.mig))
    mig = seen.name.partition(" MIG ")[2]
    return seen._replace(uuid=f"{'MIG' if mig else 'GPU'}-{seen.uuid}", mig=mig)


def device(uuid: str) -> Gpu | None:
    """The GPU or slice with that UUID; None if NVML does not know it. Its prefix may be missing."""
    with opened(uuid) as found:
        return None if found is None else found.described()


def full_name(name: str, mig: str) -> str:
    """The name of a device with the profile of its slice, which newer drivers add themselves."""
    return name if not mig or name.endswith(f"MIG {mig}") else f"{name} MIG {mig}"


class Watch:
    """Reads the state of a device from time to time.

    A reading takes the driver up to some milliseconds, so it belongs between timed turns.
    """

    def __init__(self, device: Device | None) -> None:
        """``device``: see `opened`; without one, `state` is None."""
        self._device = device
        self._readings: list[_Reading] = []

    def read(self, own: Collection[int]) -> None:
        """Read the state. Call it right after work: the clocks of an idle device fall.

        ``own``: the numbers of the measuring processes, which use the device for us.
        """
        if self._device is not None:
            self._readings.append(self._device.reading(own))

    def state(self) -> DeviceState | None:
        """All readings together; None if the device cannot be asked."""
        if self._device is None:
            return None
        readings = self._readings
        clocks = _known(one.sm_clock_mhz for one in readings)
        slowed_by = {text for one in readings for text in one.slowed_by or ()}
        return DeviceState(
            sm_clock_mhz=(min(clocks), median_low(clocks), max(clocks)) if clocks else None,
            temperature_c=max(_known(one.temperature_c for one in readings), default=None),
            power_w=max(_known(one.power_w for one in readings), default=None),
            slowed_by=[reason for reason in REASONS.values() if reason in slowed_by],
            others=max(_known(one.others for one in readings), default=None),
        )


class _Reading(NamedTuple):
    """The state of a device at one time, as in `DeviceState`."""

    sm_clock_mhz: int | None
    temperature_c: int | None
    power_w: float | None
    slowed_by: list[str] | None
    others: int | None


def _known(answers: Iterable[_Answer | None]) -> list[_Answer]:
    return [answer for answer in answers if answer is not None]


def _others(listed: list[int] | None, own: Collection[int]) -> int | None:
    """How many of the listed processes are others; None if the list does not know ours.

    In a container the driver lists either nothing, or all by their numbers outside. In the second
    case one of them is ours, by another number.
    """
    if not listed:
        return None
    known = set(own).intersection(listed)
    return len(listed) - max(1, len(known))


@contextlib.contextmanager
def opened(uuid: str) -> Iterator[Device | None]:
    """The device with that UUID, while NVML is open; None without pynvml, NVML or the device."""
    try:
        import pynvml
    except ImportError:
        yield None
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield _find(pynvml, uuid)
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _find(pynvml: Any, uuid: str) -> Device | None:
    bare = uuid.removeprefix("GPU-").removeprefix("MIG-")
    for name in (f"GPU-{bare}", f"MIG-{bare}"):
        try:
            return Device(pynvml, name, pynvml.nvmlDeviceGetHandleByUUID(name))
        except pynvml.NVMLError:
            continue
    return None


class Device:
    """A device of NVML. A slice knows its memory and its processes; the rest is of its GPU."""

    def __init__(self, pynvml: Any, uuid: str, handle: Any) -> None:
        """``uuid``: with its prefix. ``handle``: NVML's own name of the device."""
        self._pynvml = pynvml
        self._uuid = uuid
        self._handle = handle
        whole = None
        if uuid.startswith("MIG-"):
            whole = self._ask("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle)
        self._gpu = whole or handle

    def _ask(self, query: str, *arguments: Any) -> Any:
        """NVML's answer; None if the device, the driver or this pynvml does not have it."""
        function: Callable[..., Any] | None = getattr(self._pynvml, query, None)
        if function is None:
            return None
        try:
            return function(*arguments)
        except self._pynvml.NVMLError:
            return None

    def described(self) -> Gpu:
        """What the device is."""
        ecc = self._ask("nvmlDeviceGetEccMode", self._gpu)
        persistence = self._ask("nvmlDeviceGetPersistenceMode", self._gpu)
        mig = self._profile()
        return Gpu(
            uuid=self._uuid,
            name=full_name(_text(self._ask("nvmlDeviceGetName", self._gpu)), mig),
            mig=mig,
            memory_bytes=self._memory_bytes(self._handle),
            power_limit_w=_watts(self._ask("nvmlDeviceGetEnforcedPowerLimit", self._gpu)),
            max_sm_clock_mhz=self._ask(
                "nvmlDeviceGetMaxClockInfo", self._gpu, self._pynvml.NVML_CLOCK_SM
            ),
            ecc=None if ecc is None else bool(ecc[0]),
            persistence=None if persistence is None else bool(persistence),
            numa_node=self._numa_node(),
        )

    def driver(self) -> str:
        """The driver's version."""
        return _text(self._ask("nvmlSystemGetDriverVersion"))

    def default_power_limit_w(self) -> float | None:
        """What ``Gpu.power_limit_w`` is by default; None if the driver does not say."""
        return _watts(self._ask("nvmlDeviceGetPowerManagementDefaultLimit", self._gpu))

    def reading(self, own: Collection[int]) -> _Reading:
        """The present state. ``own``: see `Watch.read`."""
        pynvml = self._pynvml
        return _Reading(
            self._ask("nvmlDeviceGetClockInfo", self._gpu, pynvml.NVML_CLOCK_SM),
            self._ask("nvmlDeviceGetTemperature", self._gpu, pynvml.NVML_TEMPERATURE_GPU),
            _watts(self._ask("nvmlDeviceGetPowerUsage", self._gpu)),
            self.slowed_by(),
            _others(self.processes(), own),
        )

    def slowed_by(self) -> list[str] | None:
        """The driver's reasons for a lower clock, of `REASONS`; None if it does not say."""
        bits = self._ask("nvmlDeviceGetCurrentClocksEventReasons", self._gpu)
        if bits is None:  # a driver or a pynvml from before they had another name
            bits = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", self._gpu)
        return None if bits is None else [text for bit, text in REASONS.items() if bits & bit]

    def processes(self) -> list[int] | None:
        """The processes that use the device; None if the driver does not say."""
        listed = self._ask("nvmlDeviceGetComputeRunningProcesses", self._handle)
        return None if listed is None else [process.pid for process in listed]

    def _memory_bytes(self, handle: Any) -> int | None:
        memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
        return None if memory is None else int(memory.total)

    def _numa_node(self) -> int | None:
        """The host's node at the GPU's bus. NVML's own answer is of memory on the GPU."""
        place = self._ask("nvmlDeviceGetPciInfo", self._gpu)
        if place is None:
            return None
        # NVML writes a domain of 8 digits, the kernel one of 4.
        address = _text(place.busId).lower().removeprefix("0000")
        node = kernel.text(Path("/sys/bus/pci/devices", address, "numa_node"))
        return int(node) if node.isdecimal() else None

    def _profile(self) -> str:
        """The profile of the slice as NVIDIA spells it; empty for a whole GPU."""
        if self._gpu is self._handle:
            return ""
        name = _text(self._ask("nvmlDeviceGetName", self._handle))
        if profile := name.partition(" MIG ")[2]:
            return profile
        # Older drivers give a slice the name of its GPU.
        sizes = self._ask("nvmlDeviceGetAttributes", self._handle)
        whole_bytes = self._memory_bytes(self._gpu)
        if sizes is None or not whole_bytes:
            return "slice"
        share = math.ceil(sizes.memorySizeMB * 2**20 / whole_bytes * _EIGHTHS) / _EIGHTHS
        memory_gb = round(share * math.ceil(whole_bytes / _GIB))
        gpu, compute = sizes.gpuInstanceSliceCount, sizes.computeInstanceSliceCount
        part = "" if compute == gpu else f"{compute}c."
        return f"{part}{gpu}g.{memory_gb}gb"


def _text(answer: Any) -> str:
    """A text of NVML, which older versions of pynvml give as bytes."""
    return answer.decode() if isinstance(answer, bytes) else str(answer or "")


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000

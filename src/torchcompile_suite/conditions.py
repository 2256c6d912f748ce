"""What a launch ran on, and what others took from it: environment, device, interference."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from .fields import Count, Text

# Environment variables that change what torch compiles or how fast it runs.
_VARIABLES = re.compile(
    r"^(OMP_|KMP_|MKL_|GOMP_|ATEN_|TORCH|INDUCTOR|TRITON_|PYTORCH_|MALLOC_|GLIBC_|LD_PRELOAD$|CXX$"
    r"|CC$|CUDA_VISIBLE|CUDA_LAUNCH_BLOCKING$|CUDA_DEVICE_ORDER$|CUDA_MODULE_LOADING$|CUBLAS_|CUDNN_"
    r"|CUDA_DEVICE_MAX_CONNECTIONS$|CUDA_(FORCE|DISABLE)_PTX_JIT$|NVIDIA_TF32_OVERRIDE$|THP_"
    r"|(HIP|ROCR)_VISIBLE|HIP_(FORCE|LAUNCH)_|HSA_(ENABLE|OVERRIDE|XNACK)|ROCBLAS_|HIPBLASLT_"
    r"|MIOPEN_(DEBUG|FIND)|GPU_MAX_HW_QUEUES$|AMD_SERIALIZE|ONEDNN_|DNNL_|LRU_CACHE_CAPACITY$"
    r"|OPENBLAS_|GOTO_NUM|TCMALLOC_|MIMALLOC_)"
)


def settings_of(environment: Mapping[str, str], own: Container[str]) -> dict[str, str]:
    """The variables that can change a number, by name. ``own``: those that a launch sets itself."""
    return {
        name: value[:200]
        for name, value in sorted(environment.items())
        if _VARIABLES.match(name) and name not in own and not name.startswith("TORCHCOMPILE_SUITE_")
    }


class Overlay(Struct, frozen=True, forbid_unknown_fields=True):
    """An upstream commit's Python files over a release's binary.

    - ``base``: the release's version. ``commit``: the full SHA.
    - ``overlaid``: the files of the release that were replaced, added or removed.
    - ``native``: files that differ but are compiled, so they were not replaced.
    - ``refused``: why nothing was overlaid, in one line; empty if the overlay was made.
    """

    base: Text
    commit: Text
    overlaid: list[Text] = field(default_factory=list, name="laid")
    native: list[Text] = field(default_factory=list)
    refused: Text = ""


class Accelerator(Struct, frozen=True, forbid_unknown_fields=True):
    """The accelerator of a measuring process, and its settings.

    None or an empty text: the driver does not say.

    - ``mig``: the profile of a MIG slice, such as ``1g.10gb``; empty for a whole device.
    - ``memory_bytes``: of the device or of the slice. ``capability``: such as ``9.0``.
    - ``libraries``: CUDA, cuDNN and others, with their versions.
    - ``float32``: how precise products and convolutions of float32 are, such as
      ``{"matmul": "highest", "cudnn": "tf32"}``.
    - ``power_limit_w``: the limit that is enforced. ``max_sm_clock_mhz``: the fastest clock.
    - ``ecc``, ``persistence``: whether the mode is on. ``numa_node``: of the host.
    """

    mig: Text = ""
    memory_bytes: Count | None = None
    capability: Text = ""
    libraries: dict[str, Text] = field(default_factory=dict)
    float32: dict[str, Text] = field(default_factory=dict)
    power_limit_w: float | None = None
    max_sm_clock_mhz: Count | None = None
    ecc: bool | None = None
    persistence: bool | None = None
    numa_node: int | None = None


class Environment(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can change a number and is not in the `Cell`.

    ``adopted``: the build of a torch that the user installed, such as ``2.11.0+cu130``; empty if
    the packages are those of the release's lock. ``accelerator``: None on a CPU.
    """

    torch: Text
    torch_git: Text
    python: Text
    packages: dict[str, Text]
    cpu: Text
    device_name: Text
    driver: Text
    threads: Count
    interop_threads: Count
    allocator: Text
    compiler: Text
    kernel: Text
    variables: dict[str, Text]
    load_1min: float
    suite: Text
    overlay: Overlay | None = None
    adopted: Text = ""
    accelerator: Accelerator | None = None

    @property
    def loop(self) -> tuple[str, int]:
        """What the calibration loop is, beside the machine: a Python's zlib, on so many threads."""
        return self.python, self.threads


class DeviceState(Struct, frozen=True, forbid_unknown_fields=True):
    """The accelerator while a launch timed its pairs, read between the pairs.

    - ``sm_clock_mhz``: the slowest, the median and the fastest clock of the multiprocessors.
    - ``temperature_c``, ``power_w``: the highest.
    - ``slowed_by``: the driver's reasons for a lower clock, other than that the device was idle.
    - ``others``: the most processes of others that used the device at once.
    """

    sm_clock_mhz: tuple[Count, Count, Count] | None = None
    temperature_c: Count | None = None
    power_w: float | None = None
    slowed_by: list[Text] = field(default_factory=list)
    others: Count | None = None


# Where a host runs two processors of a guest: on cores of their own near each other, on such cores
# far from each other, or on one core.
Place = Literal["near", "far", "shared"]


class HostState(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the host runs the processors while a launch times its pairs (`host.probes`).

    - ``handoff_ns``: of a hand-off between two processors and back, before each turn and after the
      last one. ``together``: of a computation on both processors over that on one; ``load_ns``: of
      a load from memory. Medians.
    - ``place``: of the pairs that count; "mixed" where all count, whatever their place.
      ``counted_ns``: their median hand-off. Empty and None in records from before schema 16.
    - ``crowded``: the share of readings on two cores at which a neighbour computed on one of them.
      None without such a reading, and in records from before schema 17.
    - ``split``: pairs that do not count because the host moved the processors during them.
      ``elsewhere``: those that do not count because it ran the processors at other places, and
      ``elsewhere_ratio`` the time ratio of all of these, the median.
    """

    handoff_ns: Annotated[list[Count], Meta(min_length=1, max_length=20_000)]
    together: Annotated[float, Meta(ge=0)]
    load_ns: Annotated[float, Meta(ge=0)]
    split: Count = 0
    elsewhere: Count = 0
    elsewhere_ratio: Annotated[float, Meta(gt=0)] | None = None
    counted_ns: Count | None = None
    place: Literal[Place, "mixed", ""] = ""
    crowded: Annotated[float, Meta(ge=0, le=1)] | None = None


class Interference(Struct, frozen=True, forbid_unknown_fields=True):
    """Processor time that others used while a launch timed its pairs.

    Both are shares of the processors' time, 0 to 1. ``steal_share``: used by other guests of the
    same host, as the hypervisor reports it. ``others_share``: used by other processes of this
    machine. ``device``: the accelerator; None on a CPU, or if its driver cannot be asked. ``host``:
    where the host ran the processors; None if there are no probes.
    """

    steal_share: float
    others_share: float
    device: DeviceState | None = None
    host: HostState | None = None


class Paging(Struct, frozen=True, forbid_unknown_fields=True):
    """The kernel's work for a steady call: it hands out memory, and takes it back.

    ``faults``: page faults a call, the median over turns (the lower one of two middle turns): a
    heap that grows once is not a cost of each call. ``kernel_share``: the kernel's share of the
    calls' processor time. Both are of the calls that count, by getrusage(2).
    """

    faults: Annotated[float, Meta(ge=0)]
    kernel_share: Annotated[float, Meta(ge=0, le=1)]

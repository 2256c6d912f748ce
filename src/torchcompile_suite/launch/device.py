"""What differs between devices: how to wait for them, and how to measure their memory.

`describe` is the environment of this process: versions, hardware, and settings that change speed. A
new device needs changes in this module only. ROCm devices have the kind ``cuda`` in torch.
"""

from __future__ import annotations

import operator
import os
import platform
import re
import resource
import shlex
import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from .._version import __version__
from ..conditions import Accelerator, Environment, settings_of
from ..host import cuda, heap, kernel, nvml
from ..host.machine import cpu_model
from ..measurement import OK, Launch
from ..releases import stamp
from ..request import Request
from ..results import descriptions
from . import caches, failures
from .progress import Stages

_PACKAGES = ("timm", "torchvision", "numpy", "triton", "setuptools", "torchao", "transformers")

# Settings of torch.backends for the products and convolutions of float32. A release that has the
# new ones decides by them, and raises for an old one where both were used.
_FLOAT32 = (
    *("cuda.matmul.allow_tf32", "cudnn.allow_tf32"),
    *("cuda.matmul.fp32_precision", "cudnn.conv.fp32_precision", "cudnn.rnn.fp32_precision"),
)


class Device:
    """A device's clock, memory and name. Those of this class are the host processor's, whose memory
    is the resident set of the process.
    """

    kind = "cpu"
    _status = Path("/proc/self/status")

    def need(self) -> None:
        """Return if this process can use the device.

        Raises `failures.Unsupported` if this build of torch never can on this hardware, and
        `failures.Unusable` if another driver or another setting would help.
        """

    def synchronize(self) -> None:
        """Return when all queued work has finished. Called inside the timed region."""

    def release(self) -> None:
        """Give back to the system what the allocator holds for tensors to come."""

    def reset_peak_memory(self) -> bool:
        """Set the peak to the current memory use. Returns whether the system can do that."""
        # Linux resets VmHWM when 5 is written to this file (proc(5)). Other systems only know the
        # peak since the process began.
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            return False
        return True

    def peak_memory_bytes(self) -> int:
        """The peak memory use since the last reset."""
        if peak := re.search(r"^VmHWM:\s+(\d+) kB", kernel.text(self._status), re.MULTILINE):
            return int(peak[1]) * 1024
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    def peak_allocated_bytes(self) -> int | None:
        """The same without what the allocator keeps in reserve; None if it is unknown."""
        return None

    def held_bytes(self) -> tuple[int, int] | None:
        """What the allocator has handed out, and what it holds; None if it is unknown."""
        return heap.held()

    def name(self) -> str:
        """The hardware's name; empty if `Environment.cpu` has it."""
        return ""

    def driver(self) -> str:
        """The driver's version, or the empty string."""
        return ""


class Cuda(Device):
    """The current CUDA or ROCm device. Its memory is what torch's allocator has reserved.

    `torch.cuda.max_memory_reserved` is the memory that the caching allocator manages. It moves by
    segments of 2 or 20 MiB. `torch.cuda.max_memory_allocated` counts only the tensors that are
    alive. The replay of a CUDA graph allocates no tensor, because the graph's memory stays in its
    private pool. So allocated memory alone would leave the pools out, and reduce-overhead would
    seem to need the least memory. What is allocated is counted with the pools as a whole.
    """

    kind = "cuda"

    def need(self) -> None:
        if not (torch.version.cuda or torch.version.hip):
            raise failures.Unsupported(
                f"torch {torch.__version__} is a CPU-only build; install a CUDA build"
            )
        if not torch.cuda.is_available():
            raise failures.Unusable(f"torch {torch.__version__} finds no usable GPU: {_refusal()}")
        if not torch.version.hip and (reason := unlike(*torch.cuda.get_device_capability())):
            raise failures.Unsupported(reason)

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def release(self) -> None:
        torch.cuda.empty_cache()

    def reset_peak_memory(self) -> bool:
        # Without this, the peak would include memory that earlier stages freed.
        self.release()
        torch.cuda.reset_peak_memory_stats()
        return True

    def peak_memory_bytes(self) -> int:
        return int(torch.cuda.max_memory_reserved())

    def peak_allocated_bytes(self) -> int | None:
        unused = _unused_in_pools()
        return None if unused is None else int(torch.cuda.max_memory_allocated()) + unused

    def held_bytes(self) -> tuple[int, int] | None:
        unused = _unused_in_pools() or 0
        return int(torch.cuda.memory_allocated()) + unused, int(torch.cuda.memory_reserved())

    def name(self) -> str:
        return str(torch.cuda.get_device_name())

    def driver(self) -> str:
        text = kernel.text(Path("/proc/driver/nvidia/version"))
        version = re.search(r"Kernel Module.*?(\d+\.\d+(?:\.\d+)?)", text)
        return version[1] if version else ""


def unlike(major: int, minor: int) -> str:
    """Why this build of torch does not run on that compute capability; empty if it does.

    Code for an architecture runs on later minor versions of the same major version; PTX
    (``compute_``) on all later ones.
    """
    architectures = torch._C._cuda_getArchFlags() or ""
    for name in architectures.split():
        kind, _, digits = name.partition("_")
        number = int("".join(filter(str.isdigit, digits)) or 0)
        same = divmod(number, 10) <= (major, minor)
        if same and (kind == "compute" or number // 10 == major):
            return ""
    return (
        f"torch {torch.__version__} (CUDA {torch.version.cuda}) is built for {architectures}: it "
        f"does not run on compute capability {major}.{minor}"
    )


def _refusal() -> str:
    """Why torch does not use the GPU, in torch's own words: `is_available` only warns."""
    try:
        torch.cuda.init()
    except Exception as error:
        return failures.one_line(str(error))
    return "no device is visible; see CUDA_VISIBLE_DEVICES"


def _unused_in_pools() -> int | None:
    """Bytes in the private pools of CUDA graphs that no tensor has now; None if it is unknown.

    They stay with their graphs: a replay writes there. Segments outside the pools have the id
    (0, 0), in all releases. Only torch's own allocator can tell.
    """
    if torch.cuda.get_allocator_backend() != "native":
        return None
    here = torch.cuda.current_device()
    unused: int = sum(
        segment["total_size"] - segment["allocated_size"]
        for segment in torch.cuda.memory_snapshot()
        if segment["device"] == here and tuple(segment["segment_pool_id"]) != (0, 0)
    )
    return unused


def unsynchronised(device: Device) -> Device:
    """The device, but the clock does not wait for it: one of the classic timing mistakes."""
    impatient = type(device)()
    vars(impatient)["synchronize"] = lambda: None
    return impatient


_DEVICES: dict[str, type[Device]] = {"cpu": Device, "cuda": Cuda}


def get(kind: str) -> Device:
    """The device of that kind. Raises KeyError, which lists the known kinds."""
    try:
        return _DEVICES[kind]()
    except KeyError:
        raise KeyError(f"no device {kind!r}; there are: {', '.join(_DEVICES)}") from None


def launched(
    request: Request,
    prefix: str,
    work: Callable[[Device, Stages], dict[str, Any]],
    *,
    describing: bool = True,
    **known: Any,
) -> Launch:
    """The launch of a process that works on the request alone, without a partner.

    ``work`` returns further fields of the launch; ``known``: others. ``prefix``: as in `Stages`.
    Without ``describing`` the environment is described only if the work fails. Never raises for
    what the cell does: a failure is the launch's outcome.
    """
    load = os.getloadavg()[0]
    stages = Stages(str(request.cell), prefix)
    outcome, environment, done = OK, None, False
    try:
        with stages("prepare"):
            on = get(request.cell.device)
            on.need()
        try:
            known |= work(on, stages)
            done = True
        finally:
            if describing or not done:
                environment = describe(on, load)
    except Exception as error:
        outcome = failures.outcome(error, stages.now)
    known |= {"environment": environment, "stages_s": stages.seconds}
    return Launch(request.kind, outcome, **known)


def describe(device: Device, load_1min: float) -> Environment:
    """The environment of this process, which measures on ``device``. ``load_1min``: the load of
    the machine when the process began.
    """
    overlay = descriptions.overlay()
    return Environment(
        torch=str(torch.__version__),  # a TorchVersion, which JSON does not know
        torch_git=torch.version.git_version or "",
        python=platform.python_version(),
        packages={name: version for name in _PACKAGES if (version := _version(name))},
        cpu=cpu_model(),
        device_name=device.name() or cpu_model(),
        driver=device.driver(),
        threads=torch.get_num_threads(),
        interop_threads=torch.get_num_interop_threads(),
        allocator=heap.allocator(),
        compiler=_compiler(),
        kernel=f"{platform.system()} {platform.release()}",
        variables=settings_of(os.environ, caches.VARIABLES),
        load_1min=round(load_1min, 2),
        suite=__version__,
        overlay=overlay,
        adopted="" if overlay or stamp.from_a_lock() else str(torch.__version__),
        accelerator=None if device.kind == "cpu" else accelerator(),
    )


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _compiler() -> str:
    """The first line of the C++ compiler's version, as Inductor would find it."""
    for command in (os.environ.get("CXX", ""), "g++", "clang++", "c++"):
        try:
            words = [*shlex.split(command), "--version"]
            answer = subprocess.run(words, capture_output=True, text=True, timeout=20, check=True)
        except (OSError, ValueError, subprocess.SubprocessError):
            continue
        return answer.stdout.splitlines()[0][:200] if answer.stdout else command
    return "none"


def has_tf32() -> bool:
    """Whether the GPU has TF32: NVIDIA's, from Ampere on. Starts CUDA."""
    return not torch.version.hip and torch.cuda.get_device_capability() >= (8, 0)


def accelerator() -> Accelerator:
    """The current device. What neither torch nor the driver says is left out."""
    ordinal = torch.cuda.current_device()
    here = torch.cuda.get_device_properties(ordinal)
    # torch has no UUID in older releases, and for a slice that of the whole GPU.
    seen = cuda.seen().devices
    gpu = nvml.device(seen[ordinal].uuid) if ordinal < len(seen) else None
    known = ("mig", "power_limit_w", "max_sm_clock_mhz", "ecc", "persistence", "numa_node")
    return Accelerator(
        memory_bytes=here.total_memory,
        capability=f"{here.major}.{here.minor}",
        libraries=_libraries(),
        float32=_float32(),
        **({name: getattr(gpu, name) for name in known} if gpu else {}),
    )


def _libraries() -> dict[str, str]:
    versions = {
        "CUDA": torch.version.cuda,
        "ROCm": torch.version.hip,
        "cuDNN": torch.backends.cudnn.version(),
    }
    return {name: str(version) for name, version in versions.items() if version}


def _float32() -> dict[str, str]:
    """How precise products and convolutions of float32 are."""
    settings = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each of the older settings says that there are newer ones
        try:
            settings["matmul"] = torch.get_float32_matmul_precision()
            settings["cudnn"] = "tf32" if torch.backends.cudnn.allow_tf32 else "ieee"
        except RuntimeError as error:
            settings["mixed"] = failures.one_line(str(error))
        for name in _FLOAT32:
            try:
                settings[name] = str(operator.attrgetter(name)(torch.backends))
            except (AttributeError, AssertionError, RuntimeError):
                continue
    return settings

"""The environment of this process: versions, hardware, and settings that change speed."""

from __future__ import annotations

import operator
import os
import platform
import re
import shutil
import subprocess
import warnings
from importlib import metadata

import msgspec
import torch

from .._version import __version__
from ..conditions import Accelerator, Environment
from ..host import allocators, cuda, nvml
from ..host.machine import cpu_model
from ..releases import stamp
from ..results import descriptions
from . import caches, failures
from .device import Device

# Environment variables that change what torch compiles or how fast it runs.
_VARIABLES = re.compile(
    r"^(OMP_|KMP_|MKL_|GOMP_|ATEN_|TORCH|INDUCTOR|TRITON_|PYTORCH_|MALLOC_|GLIBC_|LD_PRELOAD$|CXX$"
    r"|CC$|CUDA_VISIBLE|CUDA_LAUNCH_BLOCKING$|CUDA_DEVICE_ORDER$|CUDA_MODULE_LOADING$|CUBLAS_|CUDNN_"
    r"|NVIDIA_TF32_OVERRIDE$|HIP_VISIBLE|ROCR_VISIBLE)"
)

_PACKAGES = ("timm", "torchvision", "numpy", "triton", "setuptools", "torchao")

# Settings of torch.backends for the products and convolutions of float32. A release that has the
# new ones decides by them, and raises for an old one where both were used.
_FLOAT32 = (
    *("cuda.matmul.allow_tf32", "cudnn.allow_tf32"),
    *("cuda.matmul.fp32_precision", "cudnn.conv.fp32_precision", "cudnn.rnn.fp32_precision"),
)


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
        allocator=allocators.loaded(),
        compiler=_compiler(),
        kernel=f"{platform.system()} {platform.release()}",
        variables=_settings(),
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


def _settings() -> dict[str, str]:
    return {
        name: value[:200]
        for name, value in sorted(os.environ.items())
        if _VARIABLES.match(name)
        and name not in caches.VARIABLES
        and not name.startswith("TORCHCOMPILE_SUITE_")
    }


def _compiler() -> str:
    """The first line of the C++ compiler's version, as Inductor would find it."""
    for name in (os.environ.get("CXX"), "g++", "clang++", "c++"):
        path = shutil.which(name) if name else None
        if path:
            try:
                answer = subprocess.run(
                    [path, "--version"], capture_output=True, text=True, timeout=20, check=True
                )
            except (OSError, subprocess.SubprocessError):
                continue
            return answer.stdout.splitlines()[0][:200] if answer.stdout else path
    return "none"


def accelerator() -> Accelerator:
    """The current device. What neither torch nor the driver says is left out."""
    ordinal = torch.cuda.current_device()
    here = torch.cuda.get_device_properties(ordinal)
    # torch has no UUID in older releases, and for a slice that of the whole GPU.
    seen = cuda.seen().devices
    gpu = nvml.device(seen[ordinal].uuid) if ordinal < len(seen) else None
    told = Accelerator(
        memory_bytes=here.total_memory,
        capability=f"{here.major}.{here.minor}",
        libraries=_libraries(),
        float32=_float32(),
    )
    if gpu is None:
        return told
    return msgspec.structs.replace(
        told,
        mig=gpu.mig,
        power_limit_w=gpu.power_limit_w,
        max_sm_clock_mhz=gpu.max_sm_clock_mhz,
        ecc=gpu.ecc,
        persistence=gpu.persistence,
        numa_node=gpu.numa_node,
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

"""The environment of this process: versions, hardware, and settings that change speed."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from importlib import metadata

import torch

from .._version import __version__
from ..conditions import Environment
from ..host import allocators
from ..host.machine import cpu_model
from ..releases import stamp
from ..results import descriptions
from . import accelerator, caches
from .device import Device

# Environment variables that change what torch compiles or how fast it runs.
_VARIABLES = re.compile(
    r"^(OMP_|KMP_|MKL_|GOMP_|ATEN_|TORCH|INDUCTOR|TRITON_|PYTORCH_|MALLOC_|GLIBC_|LD_PRELOAD$|CXX$"
    r"|CC$|CUDA_VISIBLE|CUDA_LAUNCH_BLOCKING$|CUDA_DEVICE_ORDER$|CUDA_MODULE_LOADING$|CUBLAS_|CUDNN_"
    r"|NVIDIA_TF32_OVERRIDE$|HIP_VISIBLE|ROCR_VISIBLE)"
)

_PACKAGES = ("timm", "torchvision", "numpy", "triton", "setuptools", "torchao")


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
        accelerator=None if device.kind == "cpu" else accelerator.describe(),
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

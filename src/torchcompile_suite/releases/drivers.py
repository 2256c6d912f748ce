"""Which driver the CUDA of a torch needs. Known before gigabytes of it are downloaded."""

from __future__ import annotations

import os
import re

from ..errors import SuiteError
from ..host import cuda, machine
from .catalogue import Release

# Of uv: which build of torch, such as cpu, cu128 or rocm6.4.
BACKEND_VARIABLE = "UV_TORCH_BACKEND"
# CUDA's major version -> the oldest drivers that support it. A driver supports all minor versions
# of a major one: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
BRANCHES = {11: 450, 12: 525, 13: 580}
_RUNTIME = re.compile(r"^nvidia-cuda-runtime(?:-cu\d+)?==(\d+\.\d+)", re.MULTILINE)
_BACKEND = re.compile(r"cu(\d+)(\d)")


def cuda_of(release: Release) -> str:
    """The CUDA with which the release would be installed now, such as 13.0; empty if unknown."""
    if backend := os.environ.get(BACKEND_VARIABLE):
        named = _BACKEND.fullmatch(backend)
        return f"{named[1]}.{named[2]}" if named else ""
    pinned = _RUNTIME.search(release.lock.read_text("utf-8")) if release.lock.exists() else None
    return pinned[1] if pinned else ""


def too_old(built: str) -> str:
    """Why the driver cannot run a torch for that CUDA, such as 13.0; empty if it can."""
    supported = cuda.seen().version
    if not supported or supported // 1000 >= _major(built):
        return ""
    return f"the driver supports CUDA {supported // 1000}.{supported % 1000 // 10} at most"


def remedy(built: str) -> str:
    """What to do about a driver that is too old for that CUDA."""
    branch = BRANCHES.get(_major(built))
    return f"update the driver to {f'R{branch}' if branch else 'one for that CUDA'} or newer"


def _major(built: str) -> int:
    """The major version; 0 of a text that is no version."""
    found = re.match(r"\d+", built)
    return int(found[0]) if found else 0


def check(release: Release, device: str | None = None) -> None:
    """Raise SuiteError if the driver is too old for the release, and a GPU is to be measured.

    ``device``: the kind that is to be measured; None: that of `machine.device_kind`.
    """
    if (device or machine.device_kind()) != "cuda":
        return
    built = cuda_of(release)
    if fault := too_old(built):
        raise SuiteError(
            f"PyTorch {release.version} is for CUDA {built}, and {fault}: {remedy(built)}, set "
            f"{BACKEND_VARIABLE} to an older CUDA, or measure the CPU with "
            f"{machine.DEVICE_VARIABLE}=cpu"
        )

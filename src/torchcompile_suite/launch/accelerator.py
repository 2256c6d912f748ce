"""What the accelerator of this process is, and how torch uses it."""

from __future__ import annotations

import operator
import warnings

import msgspec
import torch

from ..conditions import Accelerator
from ..host import cuda, nvml
from . import failures

# Settings of torch.backends for the products and convolutions of float32. A release that has the
# new ones decides by them, and raises for an old one where both were used.
_FLOAT32 = (
    *("cuda.matmul.allow_tf32", "cudnn.allow_tf32"),
    *("cuda.matmul.fp32_precision", "cudnn.conv.fp32_precision", "cudnn.rnn.fp32_precision"),
)


def describe() -> Accelerator:
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

"""What torch and Triton ask a device, answered for one that is not here, torch 2.4 to 2.15."""

from __future__ import annotations

from types import SimpleNamespace

import torch
import torch._subclasses.fake_tensor

from ....targets import WARP, Target
from ... import failures
from ...device import unlike


class NoLaunch(Exception):
    """A Triton kernel was to run on the device that is not here."""


def give(target: Target) -> None:
    """Answer torch's and Triton's questions about the device with the target's properties.

    For the rest of this process: nothing in it may measure. Raises `failures.Unsupported` if this
    release cannot generate code for the target.
    """
    if not hasattr(torch._C, "_cuda_getDeviceCount"):
        raise failures.Unsupported(f"torch {torch.__version__} is a CPU-only build")
    if reason := unlike(target.major, target.minor):
        raise failures.Unsupported(reason)
    properties = SimpleNamespace(
        name=target.device,
        major=target.major,
        minor=target.minor,
        multi_processor_count=target.multiprocessors,
        max_threads_per_multi_processor=target.threads_a_multiprocessor,
        max_threads_per_block=1024,
        regs_per_multiprocessor=target.registers_a_multiprocessor,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=target.shared_a_block,
        shared_memory_per_multiprocessor=target.shared_a_multiprocessor,
        warp_size=WARP,
        L2_cache_size=target.l2_bytes,
        total_memory=target.memory_bytes,
        is_integrated=False,
        is_multi_gpu_board=False,
        uuid="",
        gcnArchName="",
    )
    cuda = torch.cuda
    cuda._lazy_init = lambda: None
    cuda._get_device_properties = lambda _: properties
    # The state of the generator is not part of any code.
    state = torch.zeros(16, dtype=torch.uint8)
    for module in (cuda, cuda.random):
        module.get_rng_state = lambda *_, **__: state.clone()
        module.set_rng_state = lambda *_, **__: None
    cuda.is_current_stream_capturing = lambda: False
    fake = torch._subclasses.fake_tensor
    # The names of the function that makes a real tensor on the device: since 2.5, 2.4.
    name = "init_gpu_context" if hasattr(fake, "init_gpu_context") else "init_cuda_context"
    setattr(fake, name, lambda *_: None)
    # torch.tensor with a device makes a real tensor there, unless there is no device.
    fake.FakeTensorMode.avoid_device_init = property(lambda _: True)
    _answer_triton(target)


def _refuse_launch(*_: object) -> None:
    raise NoLaunch


def _answer_triton(target: Target) -> None:
    """Give Triton a driver that knows the target, and nothing else."""
    try:
        from triton.backends.compiler import GPUTarget
        from triton.runtime.driver import driver
    except ImportError:
        raise failures.Unsupported(
            f"torch {torch.__version__} has no Triton beside it; install the CUDA build"
        ) from None
    sizes = {
        "max_shared_mem": target.shared_a_block,
        "multiprocessor_count": target.multiprocessors,
        "max_num_regs": target.registers_a_multiprocessor,
        "warpSize": WARP,
    }
    driver.set_active(
        SimpleNamespace(
            get_current_target=lambda: GPUTarget("cuda", target.capability, WARP),
            get_current_device=lambda: 0,
            set_current_device=lambda _: None,
            get_current_stream=lambda _=0: 0,
            get_device_capability=lambda *_: (target.major, target.minor),
            get_active_torch_device=lambda: torch.device("cuda", 0),
            launcher_cls=_refuse_launch,
            utils=SimpleNamespace(get_device_properties=lambda _: sizes),
        )
    )
    from torch._inductor.runtime import triton_helpers

    # The generated module of a kernel calls these: Triton's own driver would look for the device's.
    for name in ("set_driver_to_gpu", "set_driver_to_cpu"):
        if hasattr(triton_helpers, name):
            setattr(triton_helpers, name, lambda: None)

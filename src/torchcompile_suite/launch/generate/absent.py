"""A process in which a GPU that does not exist seems to be present.

`start_again` compiles ``absent.c`` for the target and starts this process again with it preloaded:
ATen and c10 ask the CUDA runtime, and only the dynamic linker can answer for it. The layout of the
answers is that of the header that the release installs with its CUDA runtime.

`give` answers what torch and Triton ask in Python, 2.4 to 2.15. Only it and `answer` import torch.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ...host.programs import run
from ...measurement import Outcome
from ...targets import WARP, Target
from .. import failures

SOURCE = Path(__file__).with_name("absent.c")
# Names the folder of the library in the process that was started again.
PRELOADED_VARIABLE = "TORCHCOMPILE_SUITE_PRELOADED"
# The release's header includes a header of CUDA's compiler, which no release installs. It gives
# words of CUDA's C++ a meaning, which C does not need.
_HOST_DEFINES = """\
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __builtin_align__(size) __attribute__((aligned(size)))
#define __align__(size) __attribute__((aligned(size)))
#define CUDARTAPI
#define __host__
#define __device__
"""


def enter(target: Target, module: str) -> Outcome | None:
    """Start this process again, as that module, with the answers preloaded, if it is not yet.

    Its connection must not have been read. Returns why that cannot be done; None if it is done.
    """
    if not preloaded():
        try:
            start_again(target, ["-m", module, *sys.argv[1:]])
        except (failures.Unsupported, failures.Unusable, OSError) as error:
            return failures.outcome(error, "prepare")
    return None


def answer(target: Target) -> Outcome | None:
    """Import the compiler, and answer for the device. Returns why that cannot be done here; None if
    it is done.
    """
    try:
        importlib.import_module("torch._subclasses.fake_tensor")
        give(target)
        importlib.import_module(f"{__package__}.generate")  # with Dynamo and Inductor
    except Exception as error:
        return failures.outcome(error, "prepare")
    return None


def preloaded() -> bool:
    """Whether this process was started again. Its own processes are then not affected."""
    folder = os.environ.pop(PRELOADED_VARIABLE, None)
    if folder is None:
        return False
    # The library is mapped, so its file can go. g++ and ptxas must not get it.
    shutil.rmtree(folder, ignore_errors=True)
    os.environ.pop("LD_PRELOAD", None)
    return True


def start_again(target: Target, command: Sequence[str]) -> None:
    """Replace this process by the command, with the answers preloaded.

    Its connection must not have been read. An allocator that is preloaded stays. Raises
    `failures.Unsupported` if this torch cannot have a GPU, and `failures.Unusable` if something is
    missing here.
    """
    place = tempfile.gettempdir()
    # For the dynamic linker, a space or a colon is the end of a path.
    folder = Path(
        tempfile.mkdtemp(prefix="absent-", dir="/tmp" if re.search(r"[\s:]", place) else place)
    )
    try:
        library = _compile(target, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    others = os.environ.get("LD_PRELOAD", "")
    os.environ["LD_PRELOAD"] = " ".join(filter(None, (str(library), others)))
    os.environ[PRELOADED_VARIABLE] = str(folder)
    os.execv(sys.executable, [sys.executable, *command])


def _compile(target: Target, folder: Path) -> Path:
    """The library in ``folder``."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise failures.Unusable("no C compiler; install one (on Debian: apt-get install g++)")
    (folder / "crt").mkdir()
    (folder / "crt" / "host_defines.h").write_text(_HOST_DEFINES)
    values = {
        "NAME": f'"{target.device}"',
        "MAJOR": target.major,
        "MINOR": target.minor,
        "MULTIPROCESSORS": target.multiprocessors,
        "THREADS": target.threads_a_multiprocessor,
        "REGISTERS": target.registers_a_multiprocessor,
        "SHARED_BLOCK": target.shared_a_block,
        "SHARED": target.shared_a_multiprocessor,
        "L2": target.l2_bytes,
        "MEMORY": target.memory_bytes,
    }
    library = folder / "libcuda.so.1"
    done = run(
        [
            *(compiler, "-shared", "-fPIC", "-O1", f"-Wl,-soname,{library.name}"),
            *(f"-I{folder}", f"-I{_headers()}"),
            *(f"-DTARGET_{name}={value}" for name, value in values.items()),
            *(SOURCE, "-o", library),
        ]
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line]
        raise failures.Unusable(
            f"{SOURCE.name} does not compile: {(lines or ['no message'])[0][:200]}"
        )
    return library


def _headers() -> Path:
    """The folder with the header of the release's CUDA runtime."""
    cuda = _cuda()
    if not cuda:
        raise failures.Unsupported(
            "this torch is a CPU-only build: it cannot generate code for a GPU"
        )
    major = cuda.partition(".")[0]
    # Until CUDA 12 each library has a folder of its own, later all are in one.
    names = (f"cu{major}", "cuda_runtime")
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        for name in names:
            folder = Path(root, name, "include")
            if (folder / "driver_types.h").is_file():
                return folder
    raise failures.Unusable(
        f"the header driver_types.h of CUDA {cuda} is missing; it comes with torch's package "
        "nvidia-cuda-runtime"
    )


def _cuda() -> str:
    """The CUDA version of this Python's torch, without importing torch; empty for a CPU build."""
    spec = importlib.util.find_spec("torch")
    content: dict[str, str | None] = {}
    for root in spec.submodule_search_locations or () if spec else ():
        with contextlib.suppress(OSError):
            exec(Path(root, "version.py").read_text(encoding="utf-8"), content)
    return content.get("cuda") or ""


class NoLaunch(Exception):
    """A Triton kernel was to run on the device that is not here."""


def give(target: Target) -> None:
    """Answer torch's and Triton's questions about the device with the target's properties.

    For the rest of this process: nothing in it may measure. Raises `failures.Unsupported` if this
    release cannot generate code for the target.
    """
    import torch
    import torch._subclasses.fake_tensor

    from ..device import unlike

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
    # Else NVML is asked, or CUDA_VISIBLE_DEVICES, which may hide all devices.
    cuda.device_count = lambda: 1
    # The state of the generator is not part of any code.
    state = torch.zeros(16, dtype=torch.uint8)
    for module in (cuda, cuda.random):
        module.get_rng_state = lambda *_, **__: state.clone()
        module.set_rng_state = lambda *_, **__: None
    cuda.is_current_stream_capturing = lambda: False
    # The runtime would be asked for the place of a constant in memory.
    torch.Tensor.is_pinned = lambda *_, **__: False
    fake = torch._subclasses.fake_tensor
    # The names of the function that makes a real tensor on the device: since 2.5, 2.4.
    name = "init_gpu_context" if hasattr(fake, "init_gpu_context") else "init_cuda_context"
    setattr(fake, name, lambda *_: None)
    # torch.tensor with a device makes a real tensor there, unless there is no device.
    fake.FakeTensorMode.avoid_device_init = property(lambda _: True)
    _keep_constants_on_host()
    _answer_triton(target)


def _keep_constants_on_host() -> None:
    """Let the tracer keep the value of a small constant of the device in a tensor of the CPU.

    ``torch.tensor(0.5, device="cuda")`` is one. The tracer computes with it beside the graph,
    because the model may ask for its value.
    """
    import torch
    import torch.fx.experimental.proxy_tensor as tracer
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_map_only

    host = torch.device("cpu")

    class OnHost(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            # 2.4 enters this where Inductor builds its patterns, too, out of fake tensors.
            if torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is None:
                args, kwargs = tree_map_only(torch.device, lambda _: host, (args, kwargs))
            return func(*args, **kwargs)

    of_torch = tracer.unset_fake_temporarily

    @contextlib.contextmanager
    def on_host() -> Iterator[Any]:
        with of_torch() as mode, OnHost():
            yield mode

    tracer.unset_fake_temporarily = on_host


def _refuse_launch(*_: object) -> None:
    raise NoLaunch


def _answer_triton(target: Target) -> None:
    """Give Triton a driver that knows the target, and nothing else."""
    import torch

    try:
        from triton.backends.compiler import GPUTarget
        from triton.runtime.driver import driver
    except ImportError:
        raise failures.Unsupported(
            f"torch {torch.__version__} has no Triton beside it; install the CUDA build"
        ) from None
    # The clock of the multiprocessors has no answer: Inductor asks for it only before it times a
    # padded product, and here no product is timed.
    sizes = {
        "max_shared_mem": target.shared_a_block,
        "multiprocessor_count": target.multiprocessors,
        "max_num_regs": target.registers_a_multiprocessor,
        "warpSize": WARP,
        "mem_clock_rate": target.memory_clock_khz,
        "mem_bus_width": target.memory_bus_bits,
    }
    driver.set_active(
        SimpleNamespace(
            get_current_target=lambda: GPUTarget("cuda", target.capability, WARP),
            get_current_device=lambda: 0,
            set_current_device=lambda _: None,
            get_current_stream=lambda _=0: 0,
            get_device_capability=lambda *_: (target.major, target.minor),
            get_active_torch_device=lambda: torch.device("cuda", 0),
            get_device_interface=lambda: torch.cuda,
            launcher_cls=_refuse_launch,
            utils=SimpleNamespace(get_device_properties=lambda _: sizes),
        )
    )
    from torch._inductor.runtime import triton_helpers

    # The generated module of a kernel calls these: Triton's own driver would look for the device's.
    for name in ("set_driver_to_gpu", "set_driver_to_cpu"):
        if hasattr(triton_helpers, name):
            setattr(triton_helpers, name, lambda: None)

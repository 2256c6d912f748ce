"""What a launch does on a device: without one, with devices that are invented, and on a CPU.

The code under test imports torch, so it runs in the environments of two releases.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchcompile_suite.conditions import Accelerator
from torchcompile_suite.measurement import Status

from .conftest import ReleaseEnvironment, releases

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# A GPU of the script's own: what torch would say of it. The script prints what the suite makes of
# it, as JSON.
SCRIPT = """
import contextlib, json, os, types
import msgspec, torch
from torchcompile_suite.cell import Cell
from torchcompile_suite.host import cuda, nvml
from torchcompile_suite.conditions import settings_of
from torchcompile_suite.launch import caches, device, failures, measure, timing
from torchcompile_suite.launch.messages import Turn
from torchcompile_suite.launch.forward import Quantised
from torchcompile_suite.launch.stream import ShapeStream

told = {}

def end_of(call):
    try:
        call()
    except Exception as error:
        return msgspec.to_builtins(failures.outcome(error, "prepare"))
    return None

# --- no GPU, another architecture, a slice
gpu = device.Cuda()
told["absent"] = end_of(gpu.need)
torch.cuda.is_available = lambda: True
for name, capability in {"fits": (9, 0), "too new": (13, 0), "too old": (3, 5)}.items():
    torch.cuda.get_device_capability = lambda capability=capability: capability
    told[name] = end_of(gpu.need)
properties = types.SimpleNamespace(major=9, minor=0, total_memory=10 << 30)
torch.cuda.current_device = lambda: 1
torch.backends.cudnn.version = lambda: 91002
torch.cuda.get_device_properties = lambda ordinal: properties
cuda.seen = lambda: cuda.Seen((cuda.Gpu("a", "H100"), cuda.Gpu("b", "H100")))
slice_ = cuda.Gpu("MIG-b", "H100", "1g.10gb", 10 << 30, 700.0, 1980, True, True, 0)
nvml.device = lambda uuid: slice_ if uuid == "b" else None
told["accelerator"] = msgspec.to_builtins(device.accelerator())
nvml.device = lambda uuid: None
told["without NVML"] = msgspec.to_builtins(device.accelerator())
os.environ.update(CUBLAS_WORKSPACE_CONFIG=":4096:8", CUDA_LAUNCH_BLOCKING="1", CUDA_OTHER="1")
libraries = ("DNNL_DEFAULT_FPMATH_MODE", "ONEDNN_MAX_CPU_ISA", "LRU_CACHE_CAPACITY",
    "OPENBLAS_CORETYPE", "GOTO_NUM_THREADS", "TCMALLOC_RELEASE_RATE", "MIMALLOC_PURGE_DELAY")
everything = {**os.environ, **dict.fromkeys((*libraries, "LRU_CACHE_CAPACITY_OF_ME"), "1")}
told["variables"] = sorted(settings_of(everything, caches.VARIABLES))
told["libraries"] = libraries

# --- the compiler, as Inductor takes it
told["compilers"] = {}
for given in ("echo mine", "g++", " ", "/nowhere/g++", 'g++ "'):
    os.environ["CXX"] = given
    told["compilers"][given] = device._compiler()
del os.environ["CXX"]

# --- memory
def segment(size, used, pool=(0, 0), device=1):
    return {"total_size": size, "allocated_size": used, "segment_pool_id": pool, "device": device}

torch.cuda.memory_snapshot = lambda: [
    segment(20, 5), segment(20, 5, (0, 1)), segment(30, 30, (0, 2)), segment(40, 0, (0, 1), 0)
]
torch.cuda.max_memory_allocated = lambda: 100
torch.cuda.memory_allocated = lambda: 60
torch.cuda.memory_reserved = lambda: 70
told["memory"] = [gpu.peak_allocated_bytes(), *gpu.held_bytes()]
torch.cuda.get_allocator_backend = lambda: "cudaMallocAsync"
told["another allocator"] = [gpu.peak_allocated_bytes(), *gpu.held_bytes()]

# --- single calls: a device that is done 2 ms later
class Slow(device.Device):
    kind = "cuda"
    def synchronize(self):
        import time
        time.sleep(0.002)

for count in (1, 50):
    for single in (True, False):
        timed = timing.turn(lambda: None, Slow(), Turn("mode", count, 0.0, 0.04), single)
        told[f"turn of {count}, {single}"] = [timed.call_s, timed.single_s]

# --- outputs that share memory, as those of CUDA graphs do
memory = torch.zeros(64)

class OneMemory(torch.nn.Module):
    def forward(self, x):
        place = memory[: x.numel()].view_as(x)
        place.copy_(x + 1)
        return {"a": place, "b": [place]}

def stream(size):
    return [(torch.full((size, n), float(n)),) for n in (1, 2, 3)]

subject = ShapeStream(Cell("x", 1, "default", shapes="recompile"), OneMemory(), stream)
with subject.context():
    told["timed"] = subject.eager()
    subject.reset()
    outputs = subject.outputs(subject.eager())
    told["checked"] = [output["a"].flatten().tolist() for output in outputs]
    outputs = subject.outputs(subject.eager())
    told["checked in a row"] = [output["a"].flatten().tolist() for output in outputs]

# --- two models: one of them leaves the device meanwhile
moved = []

class Module(torch.nn.Linear):
    def to(self, *where):
        moved.append([*where, torch.is_inference_mode_enabled()])
        return self

for place in ("cpu", "cuda"):
    both = Quantised.__new__(Quantised)
    both.cell = Cell("x", 1, "default", dtype="int8-dynamic", device=place)
    both._float32 = Module(1, 1)
    with torch.inference_mode():
        for side in ("eager", "mode"):
            with both.alone(side) as alone:
                told[f"alone {place} {side}"] = [alone, len(moved)]
told["moved"] = moved

# --- malloc
def refused(**fields):
    return measure._unsupported(Cell("x", 1, "default", **fields))

told["malloc"] = {
    "cuda, default-heap": refused(device="cuda", allocator="default-heap"),
    "cuda, tcmalloc": refused(device="cuda", allocator="tcmalloc"),
    "cuda, libc, many calls": refused(device="cuda", allocator="libc", protocol="many-calls"),
    "cuda": refused(device="cuda"),
    "cuda, many calls": refused(device="cuda", allocator="default-heap", protocol="many-calls"),
    "cpu": refused(allocator="default-heap"),
}
# --- a GPU with too few multiprocessors
from torchcompile_suite.measurement import Accuracy
from torchcompile_suite.request import Request
from torchcompile_suite.launch.inspect import inductor
inductor.times_products = lambda: False
told["notes"] = {}
for mode in ("default", "max-autotune"):
    request = Request(Cell("x", 1, mode, device="cuda"), "cold", "")
    steps = measure._Steps(request, "")
    steps.fields["accuracy"] = Accuracy("float64", 0.0, 0.0, 0.0, ["first"])
    steps.note_mode()
    told["notes"][mode] = steps.fields["accuracy"].notes
print(json.dumps(told))
"""


@pytest.fixture(scope="module", params=releases("v2.4"))
def told(
    request: pytest.FixtureRequest,
    make_environment: Callable[[str], ReleaseEnvironment],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    file = Path(tmp_path_factory.mktemp("device"), "script.py")
    file.write_text(SCRIPT)
    done = make_environment(request.param).run(str(file))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def test_no_gpu_is_repeated_and_has_torchs_words(told: dict[str, Any]) -> None:
    assert told["absent"]["status"] == Status.CRASH.value
    assert "finds no usable GPU: Found no NVIDIA driver" in told["absent"]["reason"]


def test_an_architecture_that_is_not_in_the_wheel_is_unsupported(told: dict[str, Any]) -> None:
    assert told["fits"] is None
    for name, capability in (("too new", "13.0"), ("too old", "3.5")):
        assert told[name]["status"] == Status.UNSUPPORTED.value
        assert f"does not run on compute capability {capability}" in told[name]["reason"]


def test_what_the_driver_does_not_say_is_left_out(told: dict[str, Any]) -> None:
    slice_, bare = told["accelerator"], told["without NVML"]
    assert slice_.keys() == bare.keys() == set(Accelerator.__struct_fields__)
    assert (slice_["mig"], slice_["power_limit_w"], slice_["ecc"]) == ("1g.10gb", 700.0, True)
    assert (bare["mig"], bare["power_limit_w"], bare["ecc"]) == ("", None, None)
    for one in (slice_, bare):
        assert (one["capability"], one["memory_bytes"]) == ("9.0", 10 << 30)
        assert one["libraries"].keys() >= {"CUDA", "cuDNN"}
        assert one["float32"].items() >= {"matmul": "highest", "cudnn": "tf32"}.items()
    recorded = told["variables"]
    assert {"CUBLAS_WORKSPACE_CONFIG", "CUDA_LAUNCH_BLOCKING"} <= set(recorded)
    assert set(told["libraries"]) <= set(recorded)
    assert not {"CUDA_OTHER", "LRU_CACHE_CAPACITY_OF_ME"} & set(recorded)


def test_the_compiler_is_run_with_its_arguments(told: dict[str, Any]) -> None:
    assert told["compilers"].pop("echo mine") == "mine --version"
    (other,) = set(told["compilers"].values())
    assert other.startswith("g++ "), "the next one that is there"


def test_allocated_memory_has_the_pools_of_graphs_as_a_whole(told: dict[str, Any]) -> None:
    assert told["memory"] == [100 + 15, 60 + 15, 70], "15 bytes of this device's pools are unused"
    assert told["another allocator"] == [None, 60, 70]


def test_a_single_call_is_waited_for(told: dict[str, Any]) -> None:
    together_s, single_s = told["turn of 50, True"]
    assert single_s > 0.002
    assert together_s < single_s / 10
    assert told["turn of 1, True"][0] == told["turn of 1, True"][1], "the same calls"
    assert told["turn of 1, False"][1] is None
    assert told["turn of 50, False"][1] is None


def test_outputs_of_one_memory_are_copied_for_the_check_only(told: dict[str, Any]) -> None:
    assert told["timed"] == []
    assert told["checked"] == told["checked in a row"] == [[2.0], [3.0, 3.0], [4.0, 4.0, 4.0]]


def test_the_memory_of_a_quantised_model_is_its_own_or_unknown(told: dict[str, Any]) -> None:
    assert told["alone cpu eager"] == told["alone cpu mode"] == [False, 0]
    assert told["alone cuda eager"] == [False, 0]
    assert told["alone cuda mode"] == [True, 1]
    assert told["moved"] == [["cpu", False], ["cuda", False]]


def test_less_than_the_name_of_a_mode_is_noted(told: dict[str, Any]) -> None:
    assert told["notes"]["default"] == ["first"]
    first, noted = told["notes"]["max-autotune"]
    assert first == "first"
    assert "not enough multiprocessors" in noted


def test_malloc_is_no_axis_of_an_accelerator(told: dict[str, Any]) -> None:
    refused = told["malloc"]
    for name in ("cuda, default-heap", "cuda, tcmalloc", "cuda, libc, many calls"):
        assert "torch's own allocator" in refused[name]
    assert (refused["cuda"], refused["cuda, many calls"], refused["cpu"]) == ("", "", "")

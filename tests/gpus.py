"""Simulated GPUs: CUDA's driver and NVML, with answers of real devices.

``gpus.json`` has the answers. ``libcuda.c`` stands for CUDA's driver, so that the real program of
`host.cuda` asks it. A module stands for pynvml; a query without an answer is not supported.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from torchcompile_suite.host import cuda, machine

ANSWERS = json.loads(Path(__file__).with_name("gpus.json").read_text())
H100, H100_UUID = "NVIDIA H100 80GB HBM3", "GPU-ffd85f9a-a660-612e-eb09-a0ad9f5a6c7d"
SLICE_UUID = "MIG-c7384736-a75d-5afc-978f-d2f1294409fd"
RTX_3060_UUID = "GPU-4fe5f8c1-6f5c-7c8a-1f0a-0d3b5e1f2a3b"


class _NotSupported(Exception):
    """NVMLError_NotSupported, or NVMLError_NotFound."""


class Simulated:
    """A host without GPUs, which gets some."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.answers: dict[str, dict[str, Any]] = {}
        self._monkeypatch = monkeypatch
        library = folder / cuda.LIBRARY
        source = Path(__file__).with_name("libcuda.c")
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
        monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
        monkeypatch.setenv("SIMULATED_CUDA", "0")
        monkeypatch.setenv("SIMULATED_GPUS", "")
        for name in (
            *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "UV_TORCH_BACKEND"),
            *(machine.DEVICE_VARIABLE, machine.MACHINE_VARIABLE),
        ):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(cuda, "NODES", (library,))
        monkeypatch.setitem(sys.modules, "pynvml", None)

    def plug_in(self, *hosts: str, nvml: bool = True) -> None:
        """Add the devices of hosts in ``gpus.json``. ``nvml``: whether NVML is there, too."""
        said = [ANSWERS[host] for host in hosts]
        self.answers = {uuid: answers for one in said for uuid, answers in one["devices"].items()}
        divided = {answers.get(_WHOLE) for answers in self.answers.values()}
        seen = [uuid for uuid in self.answers if uuid not in divided]
        named = [
            f"{uuid.partition('-')[2]} {self.answers[uuid]['nvmlDeviceGetName']}" for uuid in seen
        ]
        self._monkeypatch.setenv("SIMULATED_GPUS", ";".join(named))
        self._monkeypatch.setenv("SIMULATED_CUDA", str(max(one["cuda"] for one in said)))
        if nvml:
            module = _pynvml(self.answers, said[0]["driver"])
            self._monkeypatch.setitem(sys.modules, "pynvml", module)
        cuda._seen.cache_clear()

    def break_driver(self, status: int) -> None:
        """Let the driver refuse to start with that status."""
        self._monkeypatch.setenv("SIMULATED_FAULT", str(status))
        cuda._seen.cache_clear()


_WHOLE = "nvmlDeviceGetDeviceHandleFromMigDeviceHandle"


def _pynvml(devices: dict[str, dict[str, Any]], driver: str) -> ModuleType:
    """The module: a handle is the UUID."""
    made = ModuleType("pynvml")
    module: Any = made
    module.NVMLError = _NotSupported
    module.NVML_CLOCK_SM, module.NVML_TEMPERATURE_GPU = 1, 0
    module.nvmlInit = module.nvmlShutdown = lambda: None
    module.nvmlSystemGetDriverVersion = lambda: driver

    def by_uuid(uuid: str) -> str:
        if uuid not in devices:
            raise _NotSupported
        return uuid

    def query(name: str) -> Any:
        def ask(handle: str, *_: object) -> Any:
            if name not in devices[handle]:
                raise _NotSupported
            return _object(devices[handle][name])

        return ask

    module.nvmlDeviceGetHandleByUUID = by_uuid
    for name in {name for answers in devices.values() for name in answers}:
        setattr(module, name, query(name))
    return made


def _object(answer: Any) -> Any:
    if isinstance(answer, dict):
        return SimpleNamespace(**answer)
    if isinstance(answer, list):
        return [_object(one) for one in answer]
    return answer


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Simulated]:
    """A host with the driver's library and no GPU."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc to build the driver's library")
    cuda._seen.cache_clear()
    yield Simulated(monkeypatch, tmp_path)
    cuda._seen.cache_clear()

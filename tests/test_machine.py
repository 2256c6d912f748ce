"""A machine keeps its name when its kernel or host name changes, and shares it with no other."""

from __future__ import annotations

import os
import re

import pytest

from torchcompile_suite.errors import SuiteError
from torchcompile_suite.host import cuda, machine, nvml


@pytest.fixture(autouse=True)
def _no_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(machine.MACHINE_VARIABLE, raising=False)
    monkeypatch.delenv(machine.DEVICE_VARIABLE, raising=False)


def test_the_name_is_hardware_only() -> None:
    import platform

    found = machine.detect()
    assert re.fullmatch(r"[a-z0-9\-]+-\d+c-\d+g-[a-z0-9\-]+", found.machine)
    everything = " ".join(found).lower()
    assert platform.release().lower() not in everything
    assert platform.node().lower() not in everything


def test_the_device_is_part_of_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(machine.DEVICE_VARIABLE, "cpu")
    cpu = machine.detect()
    monkeypatch.setenv(machine.DEVICE_VARIABLE, "cuda")
    cuda = machine.detect()
    assert cpu.machine != cuda.machine
    assert cpu.device != cuda.device


def test_an_unknown_device_is_refused_with_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(machine.DEVICE_VARIABLE, "abacus")
    with pytest.raises(SuiteError, match=r"abacus.*cpu, cuda"):
        machine.detect()


@pytest.mark.parametrize("name", ["../up", "a/b", ".hidden", "x" * 101, "new\nline", "end\n"])
def test_a_name_that_is_no_folder_is_refused(name: str) -> None:
    with pytest.raises(SuiteError, match=r"not usable.*at most 100.*TORCHCOMPILE_SUITE_MACHINE"):
        machine.detect(name)


def test_a_long_derived_name_loses_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    names = set()
    for model in ("9985WX 64-Cores", "9995WX 96-Cores"):
        cpu = f"AMD Ryzen Threadripper PRO {model} (family 26 model 8)"
        gpu = cuda.Gpu("GPU-0", "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition")
        monkeypatch.setattr(machine, "cpu_model", lambda cpu=cpu: cpu)
        monkeypatch.setattr(nvml, "visible", lambda gpu=gpu: [gpu])
        here = machine.detect(kind="cuda")
        assert len(machine.class_of(here._asdict())) > 100
        assert machine.detect(here.machine, "cuda") == here, "it may be given as a name"
        assert here.machine.endswith("g-nvidia-rtx-pro-6000-blackwell-max-q-workstation-edition")
        names.add(here.machine)
    assert [len(name) for name in names] == [100, 100]


def test_the_user_may_name_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.detect("lab-7").machine == "lab-7"
    monkeypatch.setenv(machine.MACHINE_VARIABLE, "lab-8")
    assert machine.detect().machine == "lab-8"


@pytest.mark.parametrize(
    ("kib", "gib"),
    [(24_600_000, 24), (25_165_824, 24), (16_200_000, 16), (16_777_217, 24), (131_000_000, 128)],
)
def test_memory_is_rounded_up_to_a_size_that_is_sold(
    kib: int, gib: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {"SC_PAGE_SIZE": 1024, "SC_PHYS_PAGES": kib}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    assert machine.ram_gib() == gib


def test_another_machine_under_the_same_name_is_refused() -> None:
    here = machine.detect("shared-name")._asdict()
    machine.check_same(here, here)
    machine.check_same({**here, "os": "Linux 5.10.0-older"}, here)
    machine.check_same({"machine": "shared-name"}, here)
    with pytest.raises(SuiteError, match=r"cpu 'Other'.*MACHINE=NAME"):
        machine.check_same({**here, "cpu": "Other"}, here)
    with pytest.raises(SuiteError, match="device 'NVIDIA H100'"):
        machine.check_same({**here, "device": "NVIDIA H100"}, here)

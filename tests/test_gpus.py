"""What the suite makes of GPUs: names of machines, refusals, the doctor's lines, disturbances."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from asv.console import log

from torchcompile_suite.analysis import statistics
from torchcompile_suite.asv import reading, runner
from torchcompile_suite.asv.staging import Staged
from torchcompile_suite.cell import Cell
from torchcompile_suite.cli import recorded
from torchcompile_suite.conditions import Accelerator, DeviceState, Interference
from torchcompile_suite.doctor import Check, Level, software
from torchcompile_suite.doctor import gpus as doctor
from torchcompile_suite.engine import rounds
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.host import cuda, machine, nvml
from torchcompile_suite.launch.messages import Turn
from torchcompile_suite.measurement import Launch, Measurement
from torchcompile_suite.releases import catalogue, drivers
from torchcompile_suite.results import records

from . import examples
from .gpus import H100, H100_UUID, RTX_3060_UUID, SLICE_UUID, Simulated, gpus
from .test_doctor import found
from .test_turns import launch

__all__ = ["gpus"]

SLICE = f"{H100} MIG 1g.10gb"
RTX_3060 = "NVIDIA GeForce RTX 3060"


def test_an_h100_names_the_machine(gpus: Simulated) -> None:
    gpus.plug_in("h100")
    assert machine.device_kind() == "cuda"
    assert machine.detect().device == H100
    assert machine.detect().machine.endswith("-nvidia-h100-80gb-hbm3")
    (gpu,) = nvml.visible()
    assert gpu == cuda.Gpu(H100_UUID, H100, "", 85520809984, 700.0, 1980, True, True, gpu.numa_node)
    assert nvml.device(H100_UUID.removeprefix("GPU-")) == gpu, "as torch gives it"
    assert nvml.device("0" * 8) is None


def test_the_variable_of_cuda_chooses_one_of_two(
    gpus: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus.plug_in("rtx3060", "h100")
    assert machine.detect().device == RTX_3060
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert [gpu.uuid for gpu in nvml.visible()] == [H100_UUID]
    assert machine.detect().device == H100
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    assert [gpu.uuid for gpu in nvml.visible()] == [H100_UUID, RTX_3060_UUID]


@pytest.mark.parametrize("hidden", ["", "-1"])
def test_hidden_gpus_are_not_measured(
    gpus: Simulated, monkeypatch: pytest.MonkeyPatch, hidden: str
) -> None:
    gpus.plug_in("h100")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert machine.device_kind() == "cpu"
    assert machine.detect().device == "cpu"


def test_a_slice_is_a_machine_of_its_own(gpus: Simulated) -> None:
    gpus.plug_in("h100-mig")
    (gpu,) = nvml.visible()
    assert (gpu.uuid, gpu.name, gpu.mig) == (SLICE_UUID, SLICE, "1g.10gb")
    assert gpu.memory_bytes == 10334765056, "of the slice"
    assert gpu.power_limit_w == 700.0, "of the whole GPU"
    assert machine.detect().device == SLICE
    assert nvml.full_name(SLICE, "1g.10gb") == SLICE, "newer drivers have added it"


def test_an_rtx_3060_does_not_know_everything(gpus: Simulated) -> None:
    gpus.plug_in("rtx3060")
    (gpu,) = nvml.visible()
    assert gpu.name == machine.detect().device == RTX_3060
    assert gpu.memory_bytes == 12 << 30
    assert gpu.ecc is None
    assert gpu.persistence is False


def test_a_container_without_nvml_still_names_its_gpu(gpus: Simulated) -> None:
    """nvidia-smi and NVML come with another capability of the container than CUDA."""
    gpus.plug_in("h100", nvml=False)
    assert machine.detect().device == H100
    assert nvml.device(H100_UUID) is None
    (gpu,) = nvml.visible()
    assert (gpu.uuid, gpu.memory_bytes, gpu.ecc) == (H100_UUID, 1 << 33, None)
    (check,) = doctor.checks()
    assert check.level is Level.WARNING
    assert "utility" in check.remedy


def test_a_slice_without_nvml_has_the_name_that_newer_drivers_give_it(
    gpus: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus.plug_in("h100-mig", nvml=False)
    monkeypatch.setenv("SIMULATED_GPUS", f"{SLICE_UUID[4:]} {SLICE}")
    (gpu,) = nvml.visible()
    assert (gpu.uuid, gpu.name, gpu.mig) == (SLICE_UUID, SLICE, "1g.10gb")


def test_no_driver_is_a_machine_with_a_cpu(gpus: Simulated, tmp_path: Path) -> None:
    (tmp_path / cuda.LIBRARY).unlink()
    assert cuda.seen() == cuda.Seen()
    assert machine.device_kind() == "cpu"
    assert nvml.visible() == []
    assert list(doctor.checks()) == []
    assert next(software.cuda(found())).says.startswith("no GPU here")


def test_a_driver_that_fails_is_no_cpu(gpus: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus.plug_in("h100")
    gpus.break_driver(802)
    with pytest.raises(SuiteError, match=r"SYSTEM_NOT_READY.*TORCHCOMPILE_SUITE_DEVICE=cpu"):
        machine.detect()
    assert next(software.cuda(found())).level is Level.ERROR
    monkeypatch.setenv(machine.DEVICE_VARIABLE, "cpu")
    assert machine.detect().device == "cpu"
    monkeypatch.delenv(machine.DEVICE_VARIABLE)
    monkeypatch.setattr(cuda, "NODES", ())
    cuda._seen.cache_clear()
    assert machine.device_kind() == "cpu", "a driver without a GPU"


def test_a_gpu_that_only_torch_sees_is_named(
    gpus: Simulated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / cuda.LIBRARY).unlink()
    amd = found(cuda_built="6.4.1", cuda_available=True, gpu="AMD Instinct MI300X")
    check = next(software.cuda(amd))
    assert check.level is Level.WARNING
    assert "AMD Instinct MI300X" in check.says
    assert "TORCHCOMPILE_SUITE_DEVICE=cuda" in check.remedy
    assert machine.overlooked() == ""
    monkeypatch.setenv("UV_TORCH_BACKEND", "rocm6.4")
    monkeypatch.setattr(machine, "_ROCM", tmp_path)
    assert "TORCHCOMPILE_SUITE_DEVICE=cuda" in machine.overlooked()
    monkeypatch.setenv(machine.DEVICE_VARIABLE, "cuda")
    assert machine.overlooked() == ""
    assert next(software.cuda(amd)).level is Level.OK
    assert machine.detect().device == "cuda"


def test_asv_run_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(machine, "overlooked", lambda: "the CPU is measured")
    monkeypatch.setattr(log, "warning", said.append)
    monkeypatch.setattr(runner, "add_nightlies", lambda conf: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        runner.run(print)(type, None)
    assert said == ["the CPU is measured"]


def measured(device: str, name: str, mig: str = "") -> Measurement:
    """A measurement on that device, as torch calls it."""
    one = examples.measurement()
    environment = msgspec.structs.replace(
        examples.environment(),
        device_name=name,
        accelerator=Accelerator(mig=mig) if device == "cuda" else None,
    )
    return msgspec.structs.replace(
        one,
        cell=Cell("resnet18", 1, "default", device=device),
        launches=[msgspec.structs.replace(each, environment=environment) for each in one.launches],
    )


@pytest.mark.parametrize(
    ("host", "one", "refused"),
    [
        ("h100", measured("cuda", H100), False),
        ("h100", measured("cuda", RTX_3060), True),
        ("h100", measured("cpu", "AMD EPYC"), True),
        ("h100-mig", measured("cuda", SLICE), False),
        ("h100-mig", measured("cuda", H100, "1g.10gb"), False),
        ("h100-mig", measured("cuda", H100), True),
    ],
)
def test_no_record_is_of_another_device_than_its_machine(
    gpus: Simulated, tmp_path: Path, host: str, one: Measurement, refused: bool
) -> None:
    gpus.plug_in(host)
    folder = tmp_path / "results" / machine.detect().machine
    journal = records.path(folder, "a" * 40, "env")
    folder.mkdir(parents=True)
    machine.keep(folder, machine.fields(folder.name))
    if refused:
        with pytest.raises(SuiteError, match=r"this was measured on.*UUID"):
            records.append(journal, one)
        assert not journal.exists()
    else:
        records.append(journal, one)


def test_where_no_driver_names_the_gpu_any_name_is_recorded(
    gpus: Simulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(machine.DEVICE_VARIABLE, "cuda")
    folder = tmp_path / machine.detect().machine
    folder.mkdir()
    machine.keep(folder, machine.fields(folder.name))
    records.append(records.path(folder, "a" * 40, "env"), measured("cuda", "AMD Instinct MI300X"))


def test_a_trial_on_the_cpu_is_saved_as_one(
    gpus: Simulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus.plug_in("h100")
    monkeypatch.setattr(recorded, "RESULTS", tmp_path)
    recorded.save([measured("cpu", "AMD EPYC")])
    recorded.save([measured("cuda", H100)])
    cpu, gpu = sorted(folder.name for folder in tmp_path.iterdir() if folder.is_dir())
    assert cpu.endswith("g-cpu")
    assert gpu.endswith("-nvidia-h100-80gb-hbm3")


@pytest.mark.usefixtures("empty_cache")
def test_results_are_shown_where_the_driver_fails(
    gpus: Simulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "results"
    monkeypatch.setattr(recorded, "RESULTS", results)
    recorded.save([measured("cpu", "AMD EPYC")])
    gpus.plug_in("h100")
    gpus.break_driver(802)
    name = machine.shown_first()
    assert name.endswith("g-cpu")
    assert recorded.select(None).machine == name
    monkeypatch.setattr(reading, "_commits", lambda *_: [])
    assert reading._machine(None, Staged(results, [name], [], []), [], name) == name


def faults(host: str, simulated: Simulated) -> dict[str, Check]:
    simulated.plug_in(host)
    return {check.name: check for check in doctor.checks() if check.level is not Level.OK}


def test_doctor_has_nothing_against_the_h100(gpus: Simulated) -> None:
    assert faults("h100", gpus) == {}
    assert [check.says for check in doctor.checks()] == [
        "580.159.04",
        "a whole GPU",
        "on",
        "limit 700 W",
        "nothing lowers them",
        "no other process uses the GPU",
        "correction of errors (ECC) is on",
    ]


def test_doctor_names_a_slice(gpus: Simulated) -> None:
    assert faults("h100-mig", gpus) == {}
    assert "1g.10gb" in next(check.says for check in doctor.checks() if check.name == "MIG")


def test_doctor_names_what_spoils_the_rtx_3060(
    gpus: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = faults("rtx3060", gpus)
    assert {name: check.remedy for name, check in named.items()} == {
        "GPU persistence": "sudo nvidia-smi -pm 1",
        "GPU power": "sudo nvidia-smi -pl 170",
        "GPU clocks": "let it cool, and look at its fans and supply",
        "GPU processes": "end them, or use another GPU",
    }
    assert "hardware thermal slowdown" in named["GPU clocks"].says
    assert "4242" in named["GPU processes"].says
    monkeypatch.setenv(machine.DEVICE_VARIABLE, "cpu")
    assert list(doctor.checks()) == []


def test_doctor_compares_the_driver_with_torch(gpus: Simulated) -> None:
    gpus.plug_in("rtx3060")
    check = next(software.cuda(found(cuda_built="13.0")))
    assert check.says == "torch is for CUDA 13.0, and the driver supports CUDA 12.4 at most"
    assert check.remedy == "update the driver to R580 or newer"
    assert next(software.cuda(found(cuda_available=True))).level is Level.OK, "12.8 by 12.4"


def test_a_driver_that_is_too_old_is_refused_before_the_download(
    gpus: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, old = catalogue.find("2.11.0"), catalogue.find("2.4.1")
    drivers.check(new)
    gpus.plug_in("rtx3060")
    drivers.check(old)
    drivers.check(new, "cpu")
    with pytest.raises(SuiteError, match=r"2\.11\.0 is for CUDA 13\.0.*CUDA 12\.4.*R580") as said:
        drivers.check(new)
    assert "\n" not in str(said.value)
    monkeypatch.setenv("UV_TORCH_BACKEND", "cu128")
    drivers.check(new)
    monkeypatch.setenv("UV_TORCH_BACKEND", "cu130")
    with pytest.raises(SuiteError, match="R580"):
        drivers.check(new)
    gpus.plug_in("h100")
    drivers.check(new)


def test_every_lock_says_its_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV_TORCH_BACKEND", raising=False)
    for release in catalogue.read():
        assert int(drivers.cuda_of(release).partition(".")[0]) in drivers.BRANCHES


def test_the_state_is_read_between_the_turns(
    gpus: Simulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus.plug_in("h100")
    clocks = iter([1980, 1200, 1755, 1755, 1980])
    turns: list[object] = []
    asked: list[int] = []
    answers = gpus.answers[H100_UUID]
    answers["nvmlDeviceGetCurrentClocksEventReasons"] = 0x1 | 0x4 | 0x20
    answers["nvmlDeviceGetComputeRunningProcesses"] = [{"pid": os.getpid()}, {"pid": 1}]

    def clock(handle: str, _: int) -> int:
        asked.append(sum(isinstance(one, Turn) for one in turns))
        return next(clocks)

    monkeypatch.setattr(sys.modules["pynvml"], "nvmlDeviceGetClockInfo", clock)
    cell = Cell("resnet18", 1, "default", device="cuda")
    made, _, _ = launch(tmp_path, cell, says=turns.append)
    assert asked == [2, 4, 6, 8, 10], "after each pair"
    assert made.interference is not None
    assert made.interference.device == DeviceState(
        (1200, 1755, 1980), 34, 73.037, ["software power cap", "software thermal slowdown"], 1
    )


@pytest.mark.parametrize(
    ("listed", "own", "others"),
    [
        ([7], {7}, 0),
        ([7, 8, 9], {7}, 2),
        ([1007], {7}, 0),  # the container does not know its numbers
        ([1007, 1008], {7}, 1),
        ([], {7}, None),  # it sees none, not even ours
        (None, {7}, None),
    ],
)
def test_others_are_counted_where_numbers_are_those_of_the_host(
    listed: list[int] | None, own: set[int], others: int | None
) -> None:
    assert nvml._others(listed, own) == others


def on_gpu(state: DeviceState | None, others_share: float = 0.0) -> Launch:
    (one, *_) = measured("cuda", H100).launches
    return msgspec.structs.replace(one, interference=Interference(0.0, others_share, state))


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (None, ""),
        (DeviceState(others=0), ""),
        (DeviceState(slowed_by=[nvml.POWER_CAP, "clocks set by the user"]), ""),
        (DeviceState(others=1), "disturbed: another process used the accelerator"),
        (DeviceState(others=2), "disturbed: 2 other processes used the accelerator"),
        (
            DeviceState(slowed_by=[nvml.POWER_CAP, nvml.HARDWARE_HEAT]),
            "disturbed: the accelerator lowered its clocks (hardware thermal slowdown)",
        ),
        (
            DeviceState(slowed_by=[nvml.POWER_BRAKE]),
            "disturbed: the accelerator lowered its clocks (hardware power brake)",
        ),
    ],
)
def test_heat_and_foreign_processes_disturb_a_gpu(state: DeviceState | None, reason: str) -> None:
    assert rounds.judged(on_gpu(state), [], 3, None).disturbed == reason


def test_load_on_other_processors_does_not(tmp_path: Path) -> None:
    assert statistics.disturbed(on_gpu(None, others_share=0.5)) == ""
    slow = msgspec.structs.replace(on_gpu(None), calibration_s=2e-3)
    assert "neighbour" in statistics.disturbed(slow, 1e-3), "its own processor counts"


def test_the_program_needs_nothing_but_python(gpus: Simulated) -> None:
    gpus.plug_in("h100")
    done = subprocess.run(
        [sys.executable, "-I", "-S", cuda.__file__], capture_output=True, text=True, check=True
    )
    assert H100 in done.stdout

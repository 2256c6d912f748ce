"""Which machine this is, said so that it stays the same for years.

ASV splits a series by every field of a machine. Its own defaults hold the kernel's release, the
host's name and the exact bytes of memory, so an upgrade or a new host of the same kind would start
a new series. Here the name is the hardware: processor, cores, memory (in the steps it is sold in)
and accelerator. Standard library only.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..errors import SuiteError
from .files import write_atomically

DEVICE_VARIABLE = "TORCHCOMPILE_SUITE_DEVICE"
MACHINE_VARIABLE = "TORCHCOMPILE_SUITE_MACHINE"
DEVICES = ("cpu", "cuda")


class MachineError(SuiteError):
    """The machine or device asked for does not fit; the message says what to do."""


class Machine(NamedTuple):
    """The identity of a machine and the device that its measurements use.

    The fields are strings as ASV keeps them; ``device`` is ``cpu`` or the accelerator's name.
    """

    machine: str
    os: str
    arch: str
    cpu: str
    num_cpu: str
    ram: str
    device: str


@cache
def cpu_model() -> str:
    """The processor's name with family, model and stepping, or what the platform says.

    Virtual machines often hide the name ("AMD EPYC"); the numbers still tell generations apart.
    """
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    fields = dict(re.findall(r"^([\w ]+?)\s*:\s*(.*)$", text.split("\n\n")[0], re.MULTILINE))
    name = re.sub(r"\s+", " ", fields.get("model name", platform.machine())).strip()
    name = re.sub(r"\((R|TM)\)|CPU|@.*", "", name, flags=re.IGNORECASE)
    name = re.sub(r"\s+", " ", name).strip()
    if {"cpu family", "model"} <= fields.keys():
        name += f" (family {fields['cpu family']} model {fields['model']})"
    return name


def ram_gib() -> int:
    """Memory as it is sold: the next step of 1, 1.5, 2, 3, 4, 6, 8, ... GiB.

    What the kernel reports is a little less than that and changes with every upgrade.
    """
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    step = 1
    while True:
        for size in (step, step * 3 // 2):
            if total <= size:
                return size
        step *= 2


@cache
def gpu_names() -> tuple[str, ...]:
    """Names of the NVIDIA GPUs the driver shows, without importing torch; empty when none."""
    try:
        answer = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(line.strip() for line in answer.stdout.splitlines() if line.strip())


def device_kind() -> str:
    """``cuda`` where there is a GPU, else ``cpu``; ``TORCHCOMPILE_SUITE_DEVICE`` overrides.

    Raises MachineError when the variable names an unknown device.
    """
    wanted = os.environ.get(DEVICE_VARIABLE, "")
    if wanted and wanted not in DEVICES:
        raise MachineError(f"{DEVICE_VARIABLE}={wanted!r} is not one of: {', '.join(DEVICES)}")
    return wanted or ("cuda" if gpu_names() else "cpu")


def detect(name: str | None = None) -> Machine:
    """This machine; ``name`` or ``TORCHCOMPILE_SUITE_MACHINE`` replaces the derived name.

    Raises MachineError when the name cannot be a folder of results/.
    """
    kind = device_kind()
    gpus = gpu_names()
    device = gpus[0] if kind != "cpu" and gpus else kind
    # Affinity and cgroups are a run's affair (its record says threads): the machine is the host.
    cores = os.cpu_count() or 1
    derived = "-".join((_slug(cpu_model()), f"{cores}c", f"{ram_gib()}g", _slug(device)))
    name = name or os.environ.get(MACHINE_VARIABLE) or derived
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._\-]{0,99}", name):
        raise MachineError(
            f"machine name {name!r} is not usable as a folder; use letters, digits, '.', '_', '-'"
        )
    return Machine(
        machine=name,
        os=platform.system(),
        arch=platform.machine(),
        cpu=cpu_model(),
        num_cpu=str(cores),
        ram=f"{ram_gib()} GiB",
        device=device,
    )


def record(folder: Path) -> None:
    """Say in machine.json what this machine is, or hold it against what is said there.

    Raises MachineError where that is another one, and OSError.
    """
    here = detect(folder.name)._asdict()
    file = folder / "machine.json"
    if not file.exists():
        content = json.dumps({**here, "version": 1}, indent=4, sort_keys=True)
        write_atomically(file, content.encode())
        return
    try:
        check_same(json.loads(file.read_text()), here)
    except ValueError as error:
        raise MachineError(f"{file} cannot be read ({error}); restore it") from None


def check_same(recorded: Mapping[str, object], here: Mapping[str, object]) -> None:
    """Refuse to add results of this machine to those of another under the same name.

    ``recorded`` is what results/<name>/machine.json holds, ``here`` the same fields of this
    machine. Raises MachineError naming the field that differs. The operating system may change
    under a machine; its hardware may not.
    """
    for field in ("arch", "cpu", "num_cpu", "ram", "device"):
        was, now = recorded.get(field), here.get(field)
        if was is not None and was != now:
            raise MachineError(
                f"results for machine {here.get('machine')!r} were measured with {field} {was!r}, "
                f"this machine has {now!r}; choose another name: asv run --machine NAME"
            )


def _slug(text: str) -> str:
    text = re.sub(r"\(family (\d+) model (\d+)\)", r"f\1m\2", text)
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")

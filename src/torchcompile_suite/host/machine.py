"""The identity of this machine, in a form that stays the same for years.

ASV splits a series by each field of a machine. Its own defaults include the kernel's release, the
host's name and the exact bytes of memory, so an upgrade or a new host of the same kind would start
a new series. Here the name is the hardware: processor, cores, memory (rounded up to a size that is
sold) and accelerator.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import platform
import re
import socket
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..errors import SuiteError
from . import cuda, kernel, nvml
from .files import write_atomically

DEVICE_VARIABLE = "TORCHCOMPILE_SUITE_DEVICE"
MACHINE_VARIABLE = "TORCHCOMPILE_SUITE_MACHINE"
DEVICES = ("cpu", "cuda")
# In a machine's folder of results: what the machine is.
FILE = "machine.json"
# Labels of Ray and of Kubernetes are no longer than this.
LABEL_CHARACTERS = 63
# The name of a machine's folder of results is no longer than this.
NAME_CHARACTERS = 100
NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._\-]{{0,{NAME_CHARACTERS - 1}}}")
# The kernel's side of the driver for AMD's GPUs, and what chooses the build of torch for them.
CPUINFO = Path("/proc/cpuinfo")
_ROCM = Path("/dev/kfd")
_BUILD_VARIABLE = "UV_TORCH_BACKEND"


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
    """The processor's name with family and model, or the platform's name for it.

    Virtual machines often hide the full name ("AMD EPYC"); family and model still distinguish the
    generations.
    """
    text = kernel.text(CPUINFO)
    if not text:
        return platform.processor() or platform.machine()
    fields = dict(re.findall(r"^([\w ]+?)\s*:\s*(.*)$", text.split("\n\n")[0], re.MULTILINE))
    name = fields.get("model name", platform.machine())
    name = re.sub(r"\((R|TM)\)|CPU|@.*", "", name, flags=re.IGNORECASE)
    name = re.sub(r"\s+", " ", name).strip()
    if {"cpu family", "model"} <= fields.keys():
        name += f" (family {fields['cpu family']} model {fields['model']})"
    elif "CPU part" in fields:  # ARM has no names
        parts = ("CPU implementer", "CPU part", "CPU variant")
        name += f" ({' '.join(fields.get(part, '').removeprefix('0x') for part in parts)})"
    return name


def ram_gib() -> int:
    """The memory, rounded up to the next size of 1, 1.5, 2, 3, 4, 6, 8, ... GiB.

    The kernel reports a little less than the installed memory, and upgrades change its number.
    """
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    sizes = (size for step in itertools.count() for size in (1 << step, (3 << step) // 2))
    return next(size for size in sizes if total <= size)


def device_kind() -> str:
    """``cuda`` if CUDA sees a GPU, else ``cpu``; ``TORCHCOMPILE_SUITE_DEVICE`` overrides this.

    Raises SuiteError if the variable names an unknown device, and if there is a GPU that the driver
    cannot use: the CPU's numbers would not be what was asked for.
    """
    wanted = os.environ.get(DEVICE_VARIABLE, "")
    if wanted and wanted not in DEVICES:
        raise SuiteError(f"{DEVICE_VARIABLE}={wanted!r} is not one of: {', '.join(DEVICES)}")
    if wanted:
        return wanted
    seen = cuda.seen()
    if seen.fault:
        raise SuiteError(
            f"the driver cannot use the GPU that is here ({seen.fault}); mend it, or measure the "
            f"CPU: {DEVICE_VARIABLE}=cpu"
        )
    return "cuda" if seen.devices else "cpu"


def need(kind: str) -> None:
    """Raise SuiteError if an accelerator is to be measured and none can be used here."""
    if kind == "cpu" or (seen := cuda.seen()).devices or _ROCM.exists():
        return
    raise SuiteError(
        f"{kind} is to be measured, but {seen.fault or 'CUDA sees no GPU'}; mend the driver or "
        f"CUDA_VISIBLE_DEVICES, or measure the CPU: {DEVICE_VARIABLE}=cpu, or --device cpu of try"
    )


def overlooked() -> str:
    """A line about a GPU that is here and is not measured, because nobody asked for it.

    Empty if there is none. torch calls AMD's GPUs ``cuda``, and CUDA's driver does not see them.
    The builds of torch for them are installed only by that variable.
    """
    build = os.environ.get(_BUILD_VARIABLE, "")
    if os.environ.get(DEVICE_VARIABLE) or not (build.startswith("rocm") and _ROCM.exists()):
        return ""
    return (
        f"{_BUILD_VARIABLE} is {build}, but the CPU is measured; to measure the GPU: "
        f"{DEVICE_VARIABLE}=cuda"
    )


def detect(name: str | None = None, kind: str | None = None) -> Machine:
    """This machine; ``name`` or ``TORCHCOMPILE_SUITE_MACHINE`` replaces the derived name.

    ``kind``: of the device that is measured; None: that of `device_kind`. Raises SuiteError if the
    name cannot be the name of a folder in results/, and what `device_kind` raises.
    """
    kind = kind or device_kind()
    gpus = nvml.visible() if kind != "cpu" else []
    # All cores of the host. Affinity and cgroups may differ from run to run; `Environment.threads`
    # records the threads of a run.
    here = Machine(
        machine="",
        os=platform.system(),
        arch=platform.machine(),
        cpu=cpu_model(),
        num_cpu=str(os.cpu_count() or 1),
        ram=f"{ram_gib()} GiB",
        # The first one is torch's current device. Where CUDA sees none (ROCm), the name is unknown.
        device=gpus[0].name if gpus else kind,
    )
    derived = as_label(class_of(here._asdict()), NAME_CHARACTERS)
    name = name or os.environ.get(MACHINE_VARIABLE) or derived
    if not NAME.fullmatch(name):
        raise SuiteError(
            f"machine name {name!r} is not usable as a folder; use at most {NAME_CHARACTERS} "
            "letters, digits, '.', '_', '-', and begin with a letter or a digit, in "
            f"{MACHINE_VARIABLE}"
        )
    return here._replace(machine=name)


def shown_first() -> str:
    """The name of this machine for what only shows results, also where a driver is at fault.

    Then it is the name with the CPU; what measures asks `detect`, which says so. Raises SuiteError
    if the name cannot be the name of a folder.
    """
    try:
        return detect().machine
    except SuiteError:
        return detect(kind="cpu").machine


def identity() -> str:
    """What tells this machine from others of its class: its machine-id, or else its host name."""
    return kernel.text(Path("/etc/machine-id")) or socket.gethostname()


def class_of(fields: Mapping[str, object]) -> str:
    """The name of the hardware with these fields of a machine.json.

    Machines of one class have the same hardware. A machine that is the only one of its class in a
    results folder usually has this name itself.
    """
    memory = str(fields.get("ram", "")).removesuffix(" GiB")
    cpu, device = (_slug(str(fields.get(name, ""))) for name in ("cpu", "device"))
    return f"{cpu}-{fields.get('num_cpu', '')}c-{memory}g-{device}"


def as_label(name: str, most: int = LABEL_CHARACTERS) -> str:
    """The name as a label of Ray or Kubernetes: a long one loses its beginning to its digest."""
    if len(name) <= most:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{digest}-{name[9 - most :]}"


def name_in_fleet(name: str | None = None, host: str | None = None) -> str:
    """The name of this machine beside others of its class: its class and its host's name.

    ``name`` or ``TORCHCOMPILE_SUITE_MACHINE`` replaces it. ``host``: another name of the host.
    Raises SuiteError if the name cannot be a label.
    """
    name = name or os.environ.get(MACHINE_VARIABLE)
    if not name:
        host = _slug((host or socket.gethostname()).partition(".")[0])[-24:].strip("-") or "host"
        hardware = class_of(detect()._asdict())
        name = f"{hardware[: LABEL_CHARACTERS - 1 - len(host)]}.{host}"
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._\-]{0,61}[A-Za-z0-9])?", name):
        raise SuiteError(
            f"machine name {name!r} cannot be a label of Ray; use at most {LABEL_CHARACTERS} "
            "letters, digits, '.', '_', '-', and begin and end with a letter or a digit, in "
            f"{MACHINE_VARIABLE} or in --name of fleet node"
        )
    return name


def fields(name: str, kind: str | None = None) -> dict[str, str | int]:
    """The content of this machine's machine.json under that name. ``kind``: see `detect`."""
    return {**detect(name, kind)._asdict(), "version": 1}


def keep(folder: Path, content: Mapping[str, object]) -> dict[str, object]:
    """Write ``folder``/machine.json, or compare the content with that of the file.

    Returns what the file holds then. Raises SuiteError if it holds another machine or cannot be
    read, and OSError.
    """
    file = folder / FILE
    for one, kind in ((folder, Path.is_dir), (file, Path.is_file)):
        if one.is_symlink() or (one.exists() and not kind(one)):
            raise SuiteError(f"{one} is a link or a device; remove it")
    if not file.exists():
        text = json.dumps(dict(content), indent=4, sort_keys=True)
        write_atomically(file, text.encode())
        return dict(content)
    try:
        recorded = msgspec.json.decode(file.read_bytes(), type=dict[str, object])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise SuiteError(f"{file} cannot be read ({error}); restore it") from None
    check_same(recorded, content)
    return recorded


def check_same(recorded: Mapping[str, object], here: Mapping[str, object]) -> None:
    """Raise SuiteError if the hardware of two machines with the same name differs.

    ``recorded``: the content of results/<name>/machine.json. ``here``: the same fields of the
    machine whose results are to be added. The message names the field that differs. The operating
    system may differ.
    """
    for field in ("arch", "cpu", "num_cpu", "ram", "device"):
        was, now = recorded.get(field), here.get(field)
        if was is not None and was != now:
            raise SuiteError(
                f"the results of machine {here.get('machine')!r} are of {field} {was!r}, and these "
                f"of {now!r}; choose another name for these: {MACHINE_VARIABLE}=NAME"
            )


def _slug(text: str) -> str:
    text = re.sub(r"\(family (\d+) model (\d+)\)", r"f\1m\2", text)
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")

"""Checks of the Python whose torch is to be used: its packages, and what a compile needs."""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from ..host import cuda as host_cuda
from ..host import nvml
from ..host.machine import DEVICE_VARIABLE
from ..launch.caches import INDUCTOR, TRITON, VARIABLES
from ..releases import drivers
from .check import Check, Level, error, ok, warning

PROBE = Path(__file__).with_name("probe.py")
# Like the code that Inductor writes: a C++ extension with Python's headers and OpenMP.
PROGRAM = """
#include <Python.h>
#include <omp.h>
#include <vector>
extern "C" int threads() { return omp_get_max_threads() + (int)std::vector<int>(1).size(); }
"""
DEBIAN = "on Debian or Ubuntu: apt-get install"
# Variables that change torch.compile: level of the fault if one is set, and its effect.
SWITCHES = {
    "TORCH_COMPILE_DISABLE": (Level.ERROR, "torch.compile does nothing"),
    "TORCHDYNAMO_DISABLE": (Level.ERROR, "torch.compile does nothing"),
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": (Level.WARNING, "every start is a cold start"),
    "TORCH_COMPILE_DEBUG": (Level.WARNING, "every compile writes its debug trace"),
    "TORCH_LOGS": (Level.WARNING, "the compiler writes logs, which takes time"),
    "TORCHINDUCTOR_FREEZING": (Level.WARNING, "weights become constants of the compiled code"),
}


def checks(python: Path) -> Iterator[Check]:
    """All checks of that Python."""
    probed, fault = probe(python)
    if fault:
        yield error("python", f"{python}: {fault}", "name a Python that runs")
        return
    yield torch(probed)
    yield compiler(probed)
    yield setuptools(probed)
    yield torchvision(probed)
    yield from cuda(probed)
    yield from switches()
    yield from caches()


def probe(python: Path) -> tuple[dict[str, Any], str]:
    """The description that `probe` prints in that Python; or nothing and the fault."""
    try:
        done = subprocess.run(
            [str(python), str(PROBE)],
            # `caches` checks folders that cannot be written. Here such a fault must not appear.
            env={name: value for name, value in os.environ.items() if name not in VARIABLES},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return json.loads(done.stdout), ""
    except (OSError, subprocess.SubprocessError) as fault:
        return {}, str(fault)
    except ValueError:
        lines = done.stderr.strip().splitlines()
        return {}, lines[-1] if lines else f"it ended with status {done.returncode}"


def torch(probed: dict[str, Any]) -> Check:
    """Whether torch is installed and imports."""
    version = probed["versions"]["torch"]
    if not version:
        return error(
            "torch",
            "torch is not installed in this Python",
            "pip install torch, or name a release: --release v2.15",
        )
    if probed["torch_error"]:
        return error("torch", probed["torch_error"], f"install torch {version} again")
    return ok("torch", f"{version}, Python {probed['python']}, {probed['threads']} threads")


def compiler(probed: dict[str, Any]) -> Check:
    """Whether a C++ extension with Python's headers and OpenMP compiles and links."""
    name = "C++ compiler"
    words = shlex.split(os.environ.get("CXX") or "g++")
    if shutil.which(words[0]) is None:
        return error(
            name,
            f"there is no {words[0]}: nothing compiles on a CPU",
            f"{DEBIAN} g++, or set CXX",
        )
    if not Path(probed["include"], "Python.h").exists():
        return error(
            "Python headers",
            f"there is no {probed['include']}/Python.h",
            f"{DEBIAN} python3-dev, or use a Python that uv installs",
        )
    with tempfile.TemporaryDirectory(prefix="doctor-") as folder:
        source = Path(folder, "try.cpp")
        source.write_text(PROGRAM)
        command = [*words, "-shared", "-fPIC", "-fopenmp", f"-I{probed['include']}", str(source)]
        try:
            done = subprocess.run(
                [*command, "-o", str(Path(folder, "try.so"))],
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as fault:
            return error(name, str(fault), f"{DEBIAN} g++, or set CXX")
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line] or ["it fails"]
        return error(
            name,
            f"{words[0]} cannot build code like Inductor's: {errors[0].strip()[:200]}",
            f"{DEBIAN} g++ libc6-dev libgomp1, or set CXX",
        )
    printed = subprocess.run([*words, "--version"], capture_output=True, text=True, check=False)
    return ok(name, (printed.stdout.splitlines() or words)[0])


def setuptools(probed: dict[str, Any]) -> Check:
    """Inductor's C++ builder imports setuptools in older releases; Python 3.12 lacks it."""
    version = probed["versions"]["setuptools"]
    if version:
        return ok("setuptools", version)
    return warning(
        "setuptools",
        "setuptools is not installed; Inductor of older releases needs it",
        "pip install setuptools",
    )


def torchvision(probed: dict[str, Any]) -> Check:
    """Whether torchvision fits this torch; timm imports torchvision."""
    version, torch_version = probed["versions"]["torchvision"], probed["versions"]["torch"]
    name = "torchvision"
    if not version:
        return ok(name, "not installed; only timm's models need it")
    remedy = f"install the torchvision for torch {torch_version}, from the same index"
    for text in probed["wants_torch"]:
        try:
            required, installed = Requirement(text), Version(torch_version)
        except (InvalidRequirement, InvalidVersion):
            continue
        if not required.specifier.contains(installed.public, prereleases=True):
            return error(name, f"{version} needs {required}, but torch is {torch_version}", remedy)
    builds = {text.partition("+")[2] for text in (version, torch_version)} - {""}
    if len(builds) > 1:
        fault = f"torch {torch_version} and torchvision {version} are different builds"
        return error(name, fault, remedy)
    if probed["torchvision_error"]:
        return error(name, f"{version} does not import: {probed['torchvision_error']}", remedy)
    return ok(name, version)


def cuda(probed: dict[str, Any]) -> Iterator[Check]:
    """Whether torch, the driver and Triton fit the GPU, if there is one."""
    seen = host_cuda.seen()
    if seen.fault:
        yield error(
            "CUDA", f"the driver cannot use the GPU: {seen.fault}", "install the driver again"
        )
        return
    names = [gpu.name for gpu in nvml.visible()] or list(filter(None, [probed["gpu"]]))
    if not names:
        yield ok("CUDA", "no GPU here; everything is measured on the CPU")
        return
    if not probed["cuda_built"]:
        yield error(
            "CUDA",
            f"there is a {names[0]}, but this torch is built without CUDA",
            "install a CUDA build of torch",
        )
        return
    if fault := drivers.too_old(probed["cuda_built"]):
        built = probed["cuda_built"]
        yield error("CUDA", f"torch is for CUDA {built}, and {fault}", drivers.remedy(built))
        return
    if not probed["cuda_available"]:
        fault = probed["cuda_error"] or "torch.cuda.is_available() is false"
        yield error(
            "CUDA",
            f"torch for CUDA {probed['cuda_built']} cannot use the {names[0]}: {fault}",
            "install a torch for an older CUDA, or one that has code for this GPU",
        )
        return
    if not seen.devices and not os.environ.get(DEVICE_VARIABLE):
        yield warning(
            "CUDA",
            f"torch can use a {names[0]}, but CUDA's driver does not name it: the CPU is measured",
            f"to measure the GPU: {DEVICE_VARIABLE}=cuda",
        )
        return
    yield ok("CUDA", f"{names[0]}, torch for CUDA {probed['cuda_built']}")
    version = probed["versions"]["triton"]
    if not version or probed["triton_error"]:
        fault = probed["triton_error"] or "it is not installed: nothing compiles on the GPU"
        yield error("Triton", fault, "install torch with its dependencies")
    else:
        yield ok("Triton", version)


def switches() -> Iterator[Check]:
    """Environment variables that are set and change torch.compile."""
    for name, (level, effect) in SWITCHES.items():
        if os.environ.get(name, "") not in ("", "0"):
            yield Check(name, level, f"the variable is set: {effect}", f"unset {name}")


def caches() -> Iterator[Check]:
    """Whether the compilers can write to their caches."""
    user = re.sub(r'[\\/:*?"<>|]', "_", getpass.getuser())
    temporary = Path(tempfile.gettempdir())
    inductor = Path(os.environ.get(INDUCTOR) or temporary / f"torchinductor_{user}")
    triton = Path(os.environ.get(TRITON) or Path.home() / ".triton")
    places = (
        ("Inductor's cache", inductor, INDUCTOR),
        ("Triton's cache", triton, TRITON),
        ("temporary files", temporary, "TMPDIR"),
    )
    for name, folder, variable in places:
        if reason := _unwritable(folder):
            yield error(
                name,
                f"{folder}: {reason}",
                f"make it writable, or set {variable} to another folder",
            )
        else:
            yield ok(name, str(folder))


def _unwritable(folder: Path) -> str:
    """Why no file can be made in the folder, or in its nearest existing parent; empty if it can."""
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            return ""
    except OSError as fault:
        return fault.strerror or str(fault)

"""Checks of the Python whose torch is to be used: its packages, and what a compile needs."""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from ..host import cuda as host_cuda
from ..host import nvml
from ..host.machine import DEVICE_VARIABLE
from ..host.programs import run
from ..launch.caches import INDUCTOR, TRITON, VARIABLES
from ..releases import drivers
from . import Check, fault, ok, temporary

PROBE = Path(__file__).with_name("probe.py")
# Like the code that Inductor writes: a C++ extension with Python's headers and OpenMP.
PROGRAM = """
#include <Python.h>
#include <omp.h>
#include <vector>
extern "C" int threads() { return omp_get_max_threads() + (int)std::vector<int>(1).size(); }
"""
# Releases whose Inductor takes all of CXX as the name of one program.
ONE_PROGRAM = re.compile(r"2\.([0-9]|1[0-3])\b")
# What a wheel is built for. Its version may say more, such as the commit of its source.
BACKEND = re.compile(r"\+(cpu|xpu|cu\d+|rocm\d+(\.\d+)*)")
# Variables that change torch.compile or eager: level of the fault if one is set, and its effect.
SWITCHES = {
    "TORCH_COMPILE_DISABLE": ("error", "torch.compile does nothing"),
    "TORCHDYNAMO_DISABLE": ("error", "torch.compile does nothing"),
    "CUDA_LAUNCH_BLOCKING": ("warning", "on a GPU each kernel is waited for"),
    "HIP_LAUNCH_BLOCKING": ("warning", "on a GPU each kernel is waited for"),
    "AMD_SERIALIZE_KERNEL": ("warning", "on a GPU each kernel is waited for"),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": ("warning", "on a GPU each allocation asks the driver"),
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": ("warning", "every start is a cold start"),
    "TORCH_COMPILE_DEBUG": ("warning", "every compile writes its debug trace"),
    "TORCH_LOGS": ("warning", "the compiler writes logs, which takes time"),
    "TORCHINDUCTOR_FREEZING": ("warning", "weights become constants of the compiled code"),
}


def checks(python: Path) -> Iterator[Check]:
    """All checks of that Python."""
    probed, reason = probe(python)
    if reason:
        yield fault("python", python=python, reason=reason)
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
        # `caches` checks folders that cannot be written. Here such a fault must not appear.
        kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        done = run([python, PROBE], env=kept, timeout=300)
        return json.loads(done.stdout), ""
    except (OSError, subprocess.SubprocessError) as error:
        return {}, str(error)
    except ValueError:
        lines = done.stderr.strip().splitlines()
        return {}, lines[-1] if lines else f"it ended with status {done.returncode}"


def torch(probed: dict[str, Any]) -> Check:
    """Whether torch is installed and imports."""
    version = probed["versions"]["torch"]
    if not version:
        return fault("torch_missing")
    if probed["torch_error"]:
        return fault("torch_import", reason=probed["torch_error"], version=version)
    return ok("torch", f"{version}, Python {probed['python']}, threads: {probed['threads']}")


def compiler(probed: dict[str, Any]) -> Check:
    """Whether a C++ extension with Python's headers and OpenMP compiles and links."""
    given = os.environ.get("CXX", "g++")
    try:
        words = shlex.split(given)
    except ValueError as error:
        return fault("compiler_start", reason=f"CXX: {error}")
    if not words:
        return fault("compiler_empty")
    if words != [given] and ONE_PROGRAM.match(probed["versions"]["torch"]):
        if shutil.which(given) is None:
            return fault("compiler_words", given=given)
        words = [given]
    include = probed["include"]
    if shutil.which(words[0]) is None:
        return fault("compiler_missing", compiler=words[0])
    if not Path(include, "Python.h").exists():
        return fault("headers", folder=include)
    if temporary() is None:
        return fault("temporary", name="C++ compiler")
    try:
        with tempfile.TemporaryDirectory(prefix="doctor-") as folder:
            source, built = Path(folder, "try.cpp"), Path(folder, "try.so")
            source.write_text(PROGRAM)
            command = [*words, "-shared", "-fPIC", "-fopenmp", f"-I{include}", source]
            done = run([*command, "-o", built], timeout=120)
            loaded = done
            if not done.returncode:
                load = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
                loaded = run([sys.executable, "-c", load, built], timeout=120)
    except (OSError, subprocess.SubprocessError) as error:
        return fault("compiler_start", reason=error)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line] or ["it fails"]
        return fault("compiler_fails", compiler=words[0], reason=errors[0].strip()[:200])
    if loaded.returncode:
        lines = loaded.stderr.strip().splitlines() or ["it fails"]
        return fault("compiler_loads", reason=lines[-1][:200])
    printed = run([*words, "--version"])
    return ok("C++ compiler", (printed.stdout.splitlines() or words)[0])


def setuptools(probed: dict[str, Any]) -> Check:
    """Inductor's C++ builder imports setuptools in older releases; Python 3.12 lacks it."""
    version = probed["versions"]["setuptools"]
    return ok("setuptools", version) if version else fault("setuptools")


def torchvision(probed: dict[str, Any]) -> Check:
    """Whether torchvision fits this torch; timm imports torchvision."""
    version = probed["versions"]["torchvision"]
    if not version:
        return ok("torchvision", "not installed; only timm's models need it")
    if reason := _unfit(version, probed):
        return fault("torchvision", reason=reason, torch=probed["versions"]["torch"])
    return ok("torchvision", version)


def _unfit(version: str, probed: dict[str, Any]) -> str:
    """Why that version of torchvision does not fit this torch; empty if it does."""
    torch_version = probed["versions"]["torch"]
    for text in probed["wants_torch"]:
        try:
            required, installed = Requirement(text), Version(torch_version)
        except (InvalidRequirement, InvalidVersion):
            continue
        if not required.specifier.contains(installed.public, prereleases=True):
            return f"{version} needs {required}, but torch is {torch_version}"
    builds = {found[1] for text in (version, torch_version) if (found := BACKEND.search(text))}
    if len(builds) > 1:
        return f"torch {torch_version} and torchvision {version} are different builds"
    error = probed["torchvision_error"]
    return f"{version} does not import: {error}" if error else ""


def cuda(probed: dict[str, Any]) -> Iterator[Check]:
    """Whether torch, the driver and Triton fit the GPU, if there is one that is to be measured."""
    if os.environ.get(DEVICE_VARIABLE) == "cpu":
        yield ok("CUDA", f"{DEVICE_VARIABLE}=cpu: everything is measured on the CPU")
        return
    if not probed["versions"]["torch"] or probed["torch_error"]:
        return  # that is said already, and nothing is known of its CUDA
    check = _cuda(probed)
    yield check or ok("CUDA", "no GPU here; everything is measured on the CPU")
    if check is None or check.remedy:
        return
    version = probed["versions"]["triton"]
    if not version or probed["triton_error"]:
        missing = "it is not installed: nothing compiles on the GPU"
        yield fault("triton", reason=probed["triton_error"] if version else missing)
    else:
        yield ok("Triton", version)


def _cuda(probed: dict[str, Any]) -> Check | None:
    """Whether torch and the driver fit the GPU; None if there is no GPU."""
    seen, built = host_cuda.seen(), probed["cuda_built"]
    if seen.fault:
        return fault("gpu_unusable", reason=seen.fault)
    gpu = next((one.name for one in nvml.visible()), probed["gpu"])
    if not gpu:
        return None
    if not built:
        return fault("cuda_not_built", gpu=gpu)
    if reason := drivers.too_old(built):
        return fault("driver_too_old", built=built, reason=reason, remedy=drivers.remedy(built))
    if not probed["cuda_available"]:
        reason = probed["cuda_error"] or "torch.cuda.is_available() is false"
        return fault("cuda_unavailable", built=built, gpu=gpu, reason=reason)
    if not seen.devices and not os.environ.get(DEVICE_VARIABLE):
        return fault("cuda_unnamed", gpu=gpu, variable=DEVICE_VARIABLE)
    return ok("CUDA", f"{gpu}, torch for CUDA {built}")


def switches() -> Iterator[Check]:
    """Environment variables that are set and change what is measured."""
    for name, (level, effect) in SWITCHES.items():
        if os.environ.get(name, "") not in ("", "0"):
            yield fault("switch", variable=name, level=level, effect=effect)


def caches() -> Iterator[Check]:
    """Whether the compilers can write to their caches."""
    try:
        user = re.sub(r'[\\/:*?"<>|]', "_", getpass.getuser())
    except (KeyError, OSError):
        user = f"uid_{os.getuid()}"  # as torch does since 2.13
        if INDUCTOR not in os.environ:
            yield fault("user", variable=INDUCTOR)
    own = temporary()
    if own is None:
        yield fault("temporary", name="temporary files")
    inductor = os.environ.get(INDUCTOR) or (own and own / f"torchinductor_{user}")
    places = (
        ("Inductor's cache", inductor, INDUCTOR),
        # Without the variable Inductor puts it into its own.
        ("Triton's cache", os.environ.get(TRITON), TRITON),
        ("temporary files", own, "TMPDIR"),
    )
    for name, folder, variable in places:
        if not folder:
            continue
        if reason := _unwritable(Path(folder)):
            yield fault("cache", cache=name, folder=folder, reason=reason, variable=variable)
        else:
            yield ok(name, str(folder))


def _unwritable(folder: Path) -> str:
    """Why no file can be made in the folder, or in its nearest existing parent; empty if it can."""
    # Not Path.exists: it raises where a folder above may not be entered.
    place = next(place for place in (folder, *folder.parents) if os.access(place, os.F_OK))
    try:
        with tempfile.TemporaryFile(dir=place):
            return ""
    except OSError as error:
        return error.strerror or str(error)

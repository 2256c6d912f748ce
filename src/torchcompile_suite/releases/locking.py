"""Write the lock of a release: every package, pinned, of the environment it is measured in.

Releases are compared with each other, so their environments may differ in PyTorch and in what
PyTorch itself asks for, and in nothing else: a faster NumPy must not look like a faster PyTorch. A
new lock therefore starts from the newest one there is. What PyTorch has no say in is constrained to
the same versions; what it depends on keeps its version where the new release allows; only PyTorch,
torchvision, Triton and the CUDA packages are taken anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from torchcompile_suite.host.files import write_atomically

from . import catalogue
from .catalogue import LOCKS, NIGHTLY, Release, ReleaseError

# Pinned for all releases alike. timm decides what the models are.
INPUTS = (
    "timm==1.0.31",
    "numpy",
    "scipy",
    "msgspec",
    "psutil",
    "setuptools",  # Inductor of PyTorch 2.4 to 2.9 needs it
    "asv_runner==0.3.2",
    "uv",  # install.py brings an environment to its lock with it
    "pip",  # ASV uninstalls with it
)

# Where an upstream package asks for less than it needs. Of torchvision 0.19.0 the Windows wheels
# alone ask for numpy<2, and uv reads one wheel's metadata for all of them.
OVERRIDES = {"2.4.0": ("numpy>=1.26",)}

# Names and versions only: a `+cpu` build, a URL or a path is not to be had everywhere.
PIN = re.compile(r"(?P<name>[a-z0-9]+(-[a-z0-9]+)*)==(?P<version>[0-9][0-9a-z.]*)( ; [^#@]+)?")
# A nightly is to be had in one index only, and there under a local version.
_NIGHTLY_PIN = re.compile(PIN.pattern.replace("[0-9a-z.]*", r"[0-9a-z.]*(\+[a-z0-9.]+)?"))

_TAKEN_ANEW = re.compile(r"(torch|torchvision|triton|nvidia-.*|cuda-.*)==")
_ASKED_FOR_BY_TORCH = re.compile(
    r"(sympy|mpmath|networkx|jinja2|markupsafe|filelock|fsspec|setuptools|typing-extensions)=="
)
# These settings of a developer's own would end up in everybody's lock.
_PERSONAL = (
    "UV_CONSTRAINT",
    "UV_CUSTOM_COMPILE_COMMAND",
    "UV_EXCLUDE",
    "UV_FIND_LINKS",
    "UV_FORK_STRATEGY",
    "UV_OVERRIDE",
    "UV_PRERELEASE",
    "UV_REQUIRE_HASHES",
    "UV_RESOLUTION",
    "UV_TORCH_BACKEND",
)


def lock(version: str, folder: Path = LOCKS) -> bool:
    """Write the lock of a catalogued release; whether it is new, not merely confirmed.

    Raises ``ReleaseError`` for an unknown release, where uv fails, and where the lock exists and
    would change.
    """
    release = catalogue.find(version)
    return write(release, resolve(release, folder), folder, published=True)


def write(release: Release, text: str, folder: Path = LOCKS, *, published: bool) -> bool:
    """Write ``text`` as a release's lock; whether that changed anything on disk.

    A published release's lock is part of its ledger commit: ``ReleaseError`` where it would change.
    """
    target = folder / f"{release.version}.txt"
    if target.exists():
        if target.read_text("utf-8") == text:
            return False
        if published:
            raise ReleaseError(
                f"{target.name} would change, and with it a commit that results refer to; "
                "it was left as it is"
            )
    replace(target, text)
    return True


def resolve(release: Release, folder: Path = LOCKS) -> str:
    """The text of a release's lock, as the configured package index has it now.

    A nightly's index comes beside the configured one, for the nightly and what goes with it.
    Raises ``ReleaseError`` where uv finds no solution or cannot reach the index.
    """
    own = folder / f"{release.version}.txt"
    known = own if own.exists() else _newest(folder)
    pins = known.read_text("utf-8").splitlines() if known else []
    if known != own:
        pins = [pin for pin in pins if not _TAKEN_ANEW.match(pin)]
    fixed = [p for p in pins if not _TAKEN_ANEW.match(p) and not _ASKED_FOR_BY_TORCH.match(p)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        result = folder / "lock.txt"
        result.write_text(_lines(pins), "utf-8")  # uv prefers what it finds in its output file
        # With == an index that also has a +cpu build of the version would have that one chosen.
        # A nightly has nothing but local versions, which === does not admit; and to name a
        # pre-release is to allow it.
        inputs = [f"torch==={release.version}", *INPUTS]
        index = []
        if release.nightly:
            inputs = [f"torch=={release.version}", "torchvision>=0.0.dev0", *INPUTS]
            index = index_options(release.index_url)
        (folder / "inputs.txt").write_text(_lines(inputs), "utf-8")
        (folder / "constraints.txt").write_text(_lines(fixed), "utf-8")
        (folder / "overrides.txt").write_text(_lines(OVERRIDES.get(release.version, ())), "utf-8")
        run_uv(
            "pip", "compile", "inputs.txt",
            "--constraints", "constraints.txt",
            "--overrides", "overrides.txt",
            "--output-file", "lock.txt",
            "--universal",
            "--python-version", release.usable_pythons[0],
            "--no-build", "--no-header", "--no-annotate",
            *index,
            cwd=folder,
            purpose=f"lock PyTorch {release.version}",
        )  # fmt: skip
        solved = result.read_text("utf-8").splitlines()
    head = f"# The whole environment in which PyTorch {release.version} is measured."
    text = _lines([f"{head} Published: never edit it.", *solved])
    check(release.version, text)
    if not release.nightly:
        _check_torchvision(text, pins=known.read_text("utf-8") if known else "", release=release)
    return text


def index_options(url: str | None) -> list[str]:
    """What has uv look into a nightly's index as well, and take what fits from either."""
    return ["--index", url, "--index-strategy", "unsafe-best-match"] if url else []


def check(version: str, text: str) -> None:
    """Raise ``ReleaseError`` unless ``text`` pins all that a release's environment needs."""
    names = {"torch": f"torch=={version}"}
    pin = _NIGHTLY_PIN if NIGHTLY.fullmatch(version) else PIN
    missing = {re.split("==", name)[0].replace("_", "-") for name in INPUTS} | {"torchvision"}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = pin.fullmatch(line)
        if match is None:
            raise ReleaseError(
                f"the lock of PyTorch {version} has {line!r}, which is no plain pin; "
                "use an index that has the registry's own builds"
            )
        missing.discard(match["name"])
        if match["name"] == "torch" and match["version"].partition("+")[0] == version:
            names.clear()
    if names or missing:
        lacks = ", ".join(sorted({*names.values(), *missing}))
        raise ReleaseError(f"the lock of PyTorch {version} lacks {lacks}; run uv's newest version")


def run_uv(*arguments: str, cwd: Path, purpose: str) -> None:
    """Run this Python's uv, without settings of the caller's that change what it resolves.

    Raises ``ReleaseError`` naming ``purpose`` and uv's own reason where it fails.
    """
    environment = {k: v for k, v in os.environ.items() if k not in _PERSONAL}
    # The lowest Python need not be installed, and must not be downloaded, to resolve for it.
    environment["UV_PYTHON_DOWNLOADS"] = "never"
    done = subprocess.run(
        [sys.executable, "-m", "uv", *arguments, "--quiet", "--python", sys.executable],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode:
        said = " ".join(line.strip() for line in done.stderr.splitlines() if line.strip())
        raise ReleaseError(f"uv could not {purpose}: {said or f'exit status {done.returncode}'}")


def replace(target: Path, text: str) -> None:
    """Write a whole text file or none of it; ``ReleaseError`` where it cannot be written."""
    try:
        write_atomically(target, text.encode())
    except OSError as error:
        raise ReleaseError(f"cannot write {target}: {error.strerror}; it is as it was") from error


def _newest(folder: Path) -> Path | None:
    locks = [path for path in folder.glob("*.txt") if re.fullmatch(r"\d+\.\d+\.\d+", path.stem)]
    return max(locks, key=lambda path: [int(n) for n in path.stem.split(".")], default=None)


def _check_torchvision(text: str, pins: str, release: Release) -> None:
    """uv steps back to an ancient torchvision, which asks for no certain torch, before it fails."""
    new, old = _pinned(text, "torchvision"), _pinned(pins, "torchvision")
    if not old <= new:
        dotted = ".".join(map(str, new))
        raise ReleaseError(
            f"uv paired PyTorch {release.version} with torchvision {dotted}, older than the last "
            "release's; is its own torchvision in the index yet?"
        )


def _pinned(text: str, name: str) -> tuple[int, ...]:
    match = re.search(rf"^{name}==([0-9.]+)", text, re.MULTILINE)
    return tuple(int(n) for n in match[1].split(".")) if match else ()


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)

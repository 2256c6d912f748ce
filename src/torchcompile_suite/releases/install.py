"""Fill an environment with the lock of a release and its extras, and prove that they import.

What lies apart (`apart`) comes later, with the first workload that needs it.

uv works from outside of the environment, and is that of the suite. It links files from its cache if
both are on one file system, and copies them otherwise.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ..errors import SuiteError
from ..host import programs
from . import drivers, extras
from .catalogue import Release
from .ledger import lock_file
from .locking import index_options, uv

# In the folder of an environment from the first change of its packages until they are proven.
MARKER = "torchcompile-suite-install.unfinished"

_TAIL_LINES = 12
_IMPORT_TIMEOUT_S = 600.0
# CPU builds do not load these packages, and they are most of the download.
_CUDA_ONLY = re.compile(r"(nvidia|cuda)-|triton$")
# A busy machine's "bytecode timed out" has nothing to do with it.
_NO_NETWORK = re.compile(
    "error sending request|failed to fetch|dns error|connection|(?<!bytecode )timed out|max retries"
)
# Without bytecode, the first measured cell compiles it: one second of its cold compile.
_COMPILED = "--compile-bytecode"
# Of every release; its extras come on top.
_IMPORTED = ("torch", "torchvision", "timm")
# Run by a Python with the names of packages: prints what `Said` has.
ASK = """
import importlib, json, sys
from importlib import metadata
said = {"minor": "%d.%d" % sys.version_info[:2], "versions": {}, "failed": {}, "commit": ""}
said["folders"] = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
for name in sys.argv[1:]:
    try:
        said["versions"][name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
    try:
        module = importlib.import_module({"nvidia-ml-py": "pynvml"}.get(name, name))
        if hasattr(module, "__version__"):
            said["versions"][name] = str(module.__version__)
    except Exception as error:
        said["failed"][name] = ("%s: %s" % (type(error).__name__, error)).splitlines()[0]
if "torch" in sys.argv and not said["failed"]:
    said["commit"] = sys.modules["torch"].version.git_version or ""
print("\\n" + json.dumps(said))
"""


class LockError(SuiteError):
    """The release's lock does not install or import on this machine.

    The message ends with what uv or Python says.
    """


class Said(msgspec.Struct):
    """What a Python says of itself and of the packages that it was asked for.

    - ``minor``: its version, such as 3.11. ``folders``: those of its packages.
    - ``versions``: of each package that is there. ``failed``: the error of each that does not
      import, in the order of the question.
    - ``commit``: the upstream commit of its torch, if that and all else imports.
    """

    minor: str
    folders: list[str]
    versions: dict[str, str]
    failed: dict[str, str]
    commit: str


def sync(release: Release, python: Path, held: int) -> None:
    """Make the environment of ``python`` hold exactly the lock, and the extras on top of it.

    ``held``: the file descriptor of a lock that uv is to inherit. Raises LockError.
    """
    lines = lock_file(release).decode().splitlines()
    how = ["sync", "-", _COMPILED]
    if backend := os.environ.get(drivers.BACKEND_VARIABLE):
        lines = without_cuda(lines)
        if backend != "cpu":
            # The lock's libraries are of another CUDA. `sync` would install none, and what this
            # build of torch requires is pinned by itself.
            how = ["install", "--exact", "--requirements", "-", _COMPILED]
    how += index_options(release.index_url)
    uv_pip(how, lines, python, held, f"the lock of PyTorch {release.version}")
    # `sync` has removed extras that an older installation left, because no lock has them. Without
    # dependencies, so that the packages of the lock stay as they are.
    if pins := extras.pins(release.version):
        how = ["install", "--no-deps", "--requirements", "-", _COMPILED]
        uv_pip(how, pins, python, held, ", ".join(pins))


def uv_pip(how: Sequence[str], lines: Sequence[str], python: Path, held: int, what: str) -> None:
    """Run ``uv pip`` on those lines, for ``python``. ``what`` is installed: for the message.

    ``held``: as in `sync`. Raises LockError.
    """
    text = "\n".join(lines) + "\n"
    done = uv("pip", *how, "--no-progress", "--python", python, input=text, pass_fds=(held,))
    if not done.returncode:
        return
    said = done.stdout + done.stderr
    why = ""
    if re.search("no space left|os error 28", said, re.IGNORECASE):
        why = ": the disk is full; a release needs up to 8 GB besides uv's cache"
    elif _NO_NETWORK.search(said.lower()):
        why = ": the package index cannot be reached; run again when it can"
    raise LockError(f"uv could not install {what}{why}; uv says: {_tail(said)}")


def without_cuda(lines: Sequence[str]) -> list[str]:
    """The lines of a lock without the packages that only CUDA builds of PyTorch load."""
    return [line for line in lines if not _CUDA_ONLY.match(line.partition("==")[0])]


def prove(release: Release, python: Path) -> str:
    """Import torch, torchvision, timm and the extras. Returns a line with their versions.

    Raises LockError if one does not import, or if torch or an extra is another version.
    """
    # If Inductor's cache folder cannot be made, torch does not import: without the variable this
    # fault cannot occur here.
    variables = {**os.environ}
    variables.pop("TORCHINDUCTOR_CACHE_DIR", None)
    names = [*_IMPORTED, *extras.of(release.version)]
    try:
        done = programs.run(
            [python, "-I", "-c", ASK, *names], env=variables, timeout=_IMPORT_TIMEOUT_S
        )
        said = read(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise LockError(
            f"importing PyTorch {release.version} took over {_IMPORT_TIMEOUT_S:.0f} s; "
            "is the disk or the machine overloaded? Run again"
        ) from error
    except (IndexError, msgspec.DecodeError) as error:
        raise LockError(
            f"PyTorch {release.version} crashes on import (exit status {done.returncode}); "
            f"this build does not fit this machine {_tail(done.stdout + done.stderr)}"
        ) from error
    return judge(release, said)


def read(printed: str) -> Said:
    """What `ASK` has printed. Raises IndexError or DecodeError if that is something else."""
    return msgspec.json.decode(printed.strip().splitlines()[-1], type=Said)


def judge(release: Release, said: Said) -> str:
    """The line of `prove`. Raises LockError if the packages are not those of the release."""
    torch, vision = (said.versions.get(name, "none") for name in ("torch", "torchvision"))
    failed, error = next(iter(said.failed.items()), ("", ""))
    if failed != "torch" and torch.partition("+")[0] != release.version:
        raise LockError(
            f"PyTorch {release.version} was asked for and torch {torch} is installed; run again"
        )
    if failed == "torchvision" or "torchvision::" in error:
        raise LockError(
            f"torch {torch} and torchvision {vision} are different builds ({error}); "
            "let uv take both from one index, for example with UV_TORCH_BACKEND=cpu, "
            "and no torch wheel from UV_FIND_LINKS"
        )
    if failed:
        raise LockError(
            f"{failed} {said.versions.get(failed, '(missing)')} does not import with torch "
            f"{torch}: {error}; run again for a fresh environment"
        )
    for name, version in extras.of(release.version).items():
        if (found := said.versions.get(name, "none")).partition("+")[0] != version:
            raise LockError(
                f"{name} {version} was asked for and {name} {found} is installed; run again"
            )
    names = (*_IMPORTED, *extras.of(release.version))
    return ", ".join(f"{name} {said.versions.get(name)}" for name in names)


def _tail(output: str) -> str:
    """The last lines, as one."""
    lines = [line for line in output.splitlines() if line.strip()]
    return " ".join(" ".join(lines[-_TAIL_LINES:]).split())

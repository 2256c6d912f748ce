"""Make this Python environment hold exactly the lock of one PyTorch release.

ASV runs this as its install command, with the Python of the environment it measures in::

    python {conf_dir}/src/torchcompile_suite/releases/install.py {build_dir}

``build_dir`` is a checkout of the release ledger. Standard library only: nothing else is installed
yet, and Python may be 3.10. Exit status: 0 done and proven by importing, 1 with one clear line on
stderr (and uv's own last lines), 2 wrong use, 130 interrupted.

A killed installation is mended by the next one. uv takes a package for installed as soon as its
metadata is there, so a half-written one would stay for good; a marker file tells of it, and the
next run then starts from an empty environment. (`uv pip sync --reinstall` would not do: it keeps
files whose RECORD is gone, and asks the network for every package again.)

Links or copies are uv's own choice: it links from its cache where both lie on one file system, and
copies where they do not.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

MARKER = "torchcompile-suite-install.unfinished"

_TAIL_LINES = 12
_IMPORT_TIMEOUT_S = 600.0
_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;]+)")
# CPU builds neither need nor load these, and they are most of the download.
_CUDA_ONLY = re.compile(r"(nvidia|cuda)-|triton$")

# Runs in a fresh process: what this one has imported says nothing about what is installed now.
_IMPORT_ALL = """
import importlib, json
from importlib.metadata import version
found = {}
for name in ("torch", "torchvision", "timm"):
    try:
        found[name] = version(name)
        module = importlib.import_module(name)
        found[name] = getattr(module, "__version__", found[name])
    except Exception as error:
        found["failed"] = name
        found["error"] = (f"{type(error).__name__}: {error}".strip().splitlines() or [""])[0]
        break
print("\\n" + json.dumps(found))
"""


class InstallError(Exception):
    """Why the environment could not be made; one line in the first argument.

    The second, where there is one, holds the last lines of the tool that failed.
    """


@dataclass(frozen=True)
class Checkout:
    """What a commit of the release ledger asks for."""

    version: str
    pythons: tuple[str, ...]
    requirements: Path
    pins: dict[str, str]
    """From normalised package name to version, markers left aside."""
    index_url: str | None = None
    """The index that has it, beside the configured one: nightlies are in no other."""


def main(
    arguments: Sequence[str] | None = None,
    check: Callable[[Checkout], str] | None = None,
) -> int:
    """Install what the checkout named on the command line asks for; return the exit status.

    ``check`` proves the result, and returns a line to print; tests pass their own, since the real
    one needs PyTorch.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1:
        print("usage: python install.py BUILD_DIR", file=sys.stderr)
        return 2
    try:
        print(install(Path(arguments[0]), check or import_all))
    except InstallError as error:
        print(f"install.py: {error.args[0]}", *error.args[1:], sep="\n", file=sys.stderr)
        return 1
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        print(f"install.py: {error.strerror or error}{where}; run it again", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("install.py: interrupted; the next run mends the environment", file=sys.stderr)
        return 130
    return 0


def install(build_dir: Path, check: Callable[[Checkout], str]) -> str:
    """Bring the running Python's environment to the lock in ``build_dir``; return check's line.

    Raises ``InstallError``, and leaves the marker behind unless nothing was touched.
    """
    wanted = read_checkout(build_dir)
    _refuse_unfit_python(wanted)
    marker = Path(sys.prefix) / MARKER
    unfinished = marker.exists()
    marker.write_text(f"PyTorch {wanted.version} is being installed\n", "utf-8")
    _bootstrap_uv(wanted.pins["uv"])
    if unfinished:
        empty_environment()
    _sync(wanted)
    line = check(wanted)
    marker.unlink()
    return line


def read_checkout(build_dir: Path) -> Checkout:
    """Read release.json and requirements.txt of a checkout of the ledger."""
    requirements = build_dir / "requirements.txt"
    try:
        release = json.loads((build_dir / "release.json").read_text("utf-8"))
        version, pythons = str(release["version"]), tuple(map(str, release["pythons"]))
        pins = {
            re.sub(r"[-_.]+", "-", pin[1]).lower(): pin[2]
            for pin in map(_PIN.match, requirements.read_text("utf-8").splitlines())
            if pin
        }
        pins["uv"]
        index_url = release.get("index_url")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InstallError(
            f"{build_dir} is no checkout of the release ledger "
            f"(release.json and requirements.txt, which pins uv): {type(error).__name__}: {error}"
        ) from error
    return Checkout(version, pythons, requirements, pins, index_url)


def _refuse_unfit_python(wanted: Checkout) -> None:
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    if running not in wanted.pythons:
        raise InstallError(
            f"PyTorch {wanted.version} has no wheels for Python {running}; "
            f"supported: {', '.join(wanted.pythons)}"
        )
    if sys.prefix == sys.base_prefix:
        # Everything outside the lock gets removed, which nobody wants of a system's Python.
        raise InstallError(
            f"{sys.executable} is not of a virtual environment; "
            'use "environment_type": "virtualenv" in asv.conf.json'
        )


def _bootstrap_uv(version: str) -> None:
    """Have exactly the lock's uv, so that `uv pip sync` never replaces itself while it runs."""
    if _has_uv(version):
        return
    pip = [sys.executable, "-I", "-m", "pip"]
    if _run([*pip, "--version"]).returncode:  # a killed run may have left half of it
        _run([sys.executable, "-I", "-m", "ensurepip", "--upgrade"])
    command = ["install", "--disable-pip-version-check", "--quiet", "--no-deps"]
    done = _run([*pip, *command, "--force-reinstall", f"uv=={version}"])
    if done.returncode or not _has_uv(version):
        raise _failed(f"pip could not install uv {version}", done.stdout)


def _has_uv(version: str) -> bool:
    answer = _run([sys.executable, "-I", "-m", "uv", "--version"])
    return answer.returncode == 0 and answer.stdout.split()[1:2] == [version]


def empty_environment() -> None:
    """Remove every package of the running Python's environment but the uv that fills it again."""
    keep = re.compile(r"uv(-[^-]+\.dist-info)?$|_virtualenv\.(py|pth)$")
    for scheme in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        # .pth files first: one whose module is gone complains at every start of Python.
        for entry in sorted(Path(scheme).iterdir(), key=lambda path: path.suffix != ".pth"):
            if keep.fullmatch(entry.name):
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def _sync(wanted: Checkout) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        requirements = wanted.requirements
        if os.environ.get("UV_TORCH_BACKEND") == "cpu":
            lines = requirements.read_text("utf-8").splitlines()
            requirements = Path(scratch) / "requirements.txt"
            requirements.write_text("\n".join(without_cuda(lines)) + "\n", "utf-8")
        uv = [sys.executable, "-I", "-m", "uv", "pip", "sync", "--python", sys.executable]
        # Else the first cell that is measured pays for it: a second of its cold compile.
        uv += ["--compile-bytecode"]
        if wanted.index_url:
            uv += ["--index", wanted.index_url, "--index-strategy", "unsafe-best-match"]
        done = _run([*uv, str(requirements)])
    if done.returncode:
        raise _failed(f"uv could not install the lock of PyTorch {wanted.version}", done.stdout)


def without_cuda(lines: Sequence[str]) -> list[str]:
    """A lock's lines without the packages that only CUDA builds of PyTorch load."""
    return [line for line in lines if not _CUDA_ONLY.match(line.partition("==")[0])]


def import_all(wanted: Checkout) -> str:
    """Import torch, torchvision and timm in a fresh process; return a line with their versions.

    Raises ``InstallError`` where one does not import, or torch is not the release's.
    """
    try:
        done = _run([sys.executable, "-I", "-c", _IMPORT_ALL], timeout=_IMPORT_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise InstallError(
            f"importing PyTorch {wanted.version} took over {_IMPORT_TIMEOUT_S:.0f} s; "
            "is the disk or the machine overloaded? Run again"
        ) from error
    try:
        found: dict[str, str] = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise InstallError(
            f"PyTorch {wanted.version} crashes on import (exit status {done.returncode}); "
            "this build does not fit this machine",
            _tail(done.stdout),
        ) from error
    return judge_imports(wanted, found)


def judge_imports(wanted: Checkout, found: dict[str, str]) -> str:
    """The line to print for what ``import_all`` found; raises ``InstallError`` where it is bad."""
    torch, vision = found.get("torch", "none"), found.get("torchvision", "none")
    failed, error = found.get("failed"), found.get("error", "")
    if failed != "torch" and torch.partition("+")[0] != wanted.version:
        raise InstallError(
            f"PyTorch {wanted.version} was asked for and torch {torch} is installed; run again"
        )
    if failed == "torchvision" or "torchvision::" in error:
        raise InstallError(
            f"torch {torch} and torchvision {vision} are of different builds ({error}); "
            "have uv take both from one index, for example with UV_TORCH_BACKEND=cpu, "
            "and no torch wheel from UV_FIND_LINKS"
        )
    if failed:
        raise InstallError(
            f"{failed} {found.get(failed, '(missing)')} does not import with torch {torch}: "
            f"{error}; run again for a fresh environment"
        )
    return f"torch {torch}, torchvision {vision}, timm {found.get('timm')}"


def _run(command: Sequence[str], timeout: float | None = None) -> subprocess.CompletedProcess[str]:
    # PIP_USER and PYTHONPATH of the caller would lead away from this environment; -I covers the
    # second. A cache folder that cannot be made would look like a torch that cannot be imported.
    # Both streams together, since tools split their last words over the two.
    environment = {**os.environ, "PIP_USER": "0", "UV_NO_PROGRESS": "1"}
    environment.pop("TORCHINDUCTOR_CACHE_DIR", None)
    return subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=timeout,
        check=False,
    )


def _failed(what: str, output: str) -> InstallError:
    lower = output.lower()
    if "no space left" in lower or "os error 28" in lower:
        why = f"{what}: the disk is full; a release takes up to 6 GB besides uv's cache"
    elif any(
        sign in lower
        for sign in (
            "error sending request",
            "failed to fetch",
            "dns error",
            "connection",
            "timed out",
            "max retries",
        )
    ):
        why = f"{what}: the package index cannot be reached; run again when it can"
    else:
        why = f"{what}; its last lines say why"
    return InstallError(why, _tail(output))


def _tail(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return "\n".join(f"    {line}" for line in lines[-_TAIL_LINES:])


if __name__ == "__main__":
    sys.exit(main())

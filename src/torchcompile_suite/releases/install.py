"""Make this Python environment hold exactly the lock of one PyTorch release, and its extras.

`environments.install` runs this script with the Python of the environment::

    python src/torchcompile_suite/releases/install.py BUILD_DIR

``BUILD_DIR`` is a checkout of the release ledger. If it has a file extras.txt, its packages are
installed on top of the lock, without their dependencies. The script uses the standard library
only: no other package is installed yet, and Python may be 3.10. Exit status:

- 0: installed, and proven by importing.
- 1: failed, with one clear line on stderr and the last lines of uv.
- 2: wrong use.
- 130: interrupted.

The next installation repairs a killed one. uv considers a package installed as soon as its metadata
exists, so a half-written package would stay. A marker file therefore exists during an
installation. If the next run finds the marker, it empties the environment first. (`uv pip sync
--reinstall` is not enough: it keeps files whose RECORD is gone, and it asks the network for every
package again.)

uv links files from its cache if both are on one file system, and copies them otherwise.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

MARKER = "torchcompile-suite-install.unfinished"
EXTRAS_FILE = "extras.txt"
# Of uv: which build of torch, such as cpu, cu128 or rocm6.4.
BACKEND_VARIABLE = "UV_TORCH_BACKEND"

_TAIL_LINES = 12
_IMPORT_TIMEOUT_S = 600.0
_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;]+)")
# CPU builds do not load these packages, and they are most of the download.
_CUDA_ONLY = re.compile(r"(nvidia|cuda)-|triton$")

# Of every release; its extras come on top.
_IMPORTED = ("torch", "torchvision", "timm")
# Packages whose module has another name.
_MODULES = {"nvidia-ml-py": "pynvml"}
# Runs in a new process: this process may have imported other versions before the installation.
_IMPORT_ALL = """
import importlib, json, sys
from importlib.metadata import version
imported = {}
modules = json.loads(sys.argv[1])
for name in sys.argv[2:]:
    try:
        imported[name] = version(name)
        module = importlib.import_module(modules.get(name, name))
        imported[name] = getattr(module, "__version__", imported[name])
    except Exception as error:
        imported["failed"] = name
        imported["error"] = (f"{type(error).__name__}: {error}".strip().splitlines() or [""])[0]
        break
print("\\n" + json.dumps(imported))
"""


class InstallError(Exception):
    """The environment could not be made. The first argument is the reason in one line.

    The second argument, if present, holds the last lines of the tool that failed.
    """


@dataclass(frozen=True)
class Checkout:
    """The contents of a commit of the release ledger.

    - ``pythons``: the supported Python versions.
    - ``requirements``: the lock file. ``pins``: from normalised package name to version, without
      environment markers.
    - ``index_url``: for a nightly, its package index; it is used beside the configured index.
    - ``extras``: from package to version, what is installed beside the lock.
    """

    version: str
    pythons: tuple[str, ...]
    requirements: Path
    pins: dict[str, str]
    index_url: str | None = None
    extras: dict[str, str] = field(default_factory=dict)


def main(
    arguments: Sequence[str] | None = None,
    check: Callable[[Checkout], str] | None = None,
) -> int:
    """Install the checkout that is named on the command line. Returns the exit status.

    ``check`` proves the result and returns a line to print. Tests pass their own function, because
    the real one needs PyTorch.
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
        print("install.py: interrupted; run it again to repair the environment", file=sys.stderr)
        return 130
    return 0


def install(build_dir: Path, check: Callable[[Checkout], str]) -> str:
    """Install the lock in ``build_dir`` into this Python's environment.

    Returns the line of ``check``. Raises ``InstallError``. If anything has changed by then, the
    marker stays.
    """
    wanted = read_checkout(build_dir)
    _check_python(wanted)
    marker = Path(sys.prefix) / MARKER
    with _alone(Path(sys.prefix)):
        unfinished = marker.exists()
        marker.write_text(f"PyTorch {wanted.version} is being installed\n", "utf-8")
        _bootstrap_uv(wanted.pins["uv"])
        if unfinished:
            empty_environment()
        _sync(wanted)
        _add_extras(wanted)
        line = check(wanted)
        marker.unlink()
    return line


@contextmanager
def _alone(environment: Path) -> Iterator[None]:
    """Wait until no other installation changes the environment.

    An installation outlives the run that started it, if that run is killed.
    """
    with (environment / f"{MARKER}.lock").open("w") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def read_checkout(build_dir: Path) -> Checkout:
    """Read release.json and requirements.txt of a checkout of the ledger."""
    requirements = build_dir / "requirements.txt"
    try:
        release = json.loads((build_dir / "release.json").read_text("utf-8"))
        version, pythons = str(release["version"]), tuple(map(str, release["pythons"]))
        pins = _pins(requirements)
        pins["uv"]
        index_url = release.get("index_url")
        extras = build_dir / EXTRAS_FILE
        beside = _pins(extras) if extras.exists() else {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InstallError(
            f"{build_dir} is not a checkout of the release ledger (release.json, and "
            f"requirements.txt with a pin of uv): {type(error).__name__}: {error}"
        ) from error
    return Checkout(version, pythons, requirements, pins, index_url, beside)


def _pins(file: Path) -> dict[str, str]:
    """From normalised package name to version, as a file of requirements pins them."""
    return {
        re.sub(r"[-_.]+", "-", pin[1]).lower(): pin[2]
        for pin in map(_PIN.match, file.read_text("utf-8").splitlines())
        if pin
    }


def _check_python(wanted: Checkout) -> None:
    """Refuse a Python without wheels, and a Python outside a virtual environment."""
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    if running not in wanted.pythons:
        raise InstallError(
            f"PyTorch {wanted.version} has no wheels for Python {running}; "
            f"supported: {', '.join(wanted.pythons)}"
        )
    if sys.prefix == sys.base_prefix:
        # The installation removes every package that is not in the lock.
        raise InstallError(
            f"{sys.executable} is not in a virtual environment; "
            'use "environment_type": "torch-release" in asv.conf.json'
        )


def _bootstrap_uv(version: str) -> None:
    """Install exactly the lock's uv, so that `uv pip sync` never replaces itself while it runs."""
    if _has_uv(version):
        return
    pip = [sys.executable, "-I", "-m", "pip"]
    if _run([*pip, "--version"]).returncode:  # a killed run may have left half of pip
        _run([sys.executable, "-I", "-m", "ensurepip", "--upgrade"])
    command = ["install", "--disable-pip-version-check", "--quiet", "--no-deps"]
    done = _run([*pip, *command, "--force-reinstall", f"uv=={version}"])
    if done.returncode or not _has_uv(version):
        raise _failed(f"pip could not install uv {version}", done.stdout)


def _has_uv(version: str) -> bool:
    answer = _run([sys.executable, "-I", "-m", "uv", "--version"])
    return answer.returncode == 0 and answer.stdout.split()[1:2] == [version]


def empty_environment() -> None:
    """Remove every package of this Python's environment except uv, which installs the lock."""
    keep = re.compile(r"uv(-[^-]+\.dist-info)?$|_virtualenv\.(py|pth)$")
    for scheme in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        # .pth files first: without its module, such a file prints an error whenever Python starts.
        for entry in sorted(Path(scheme).iterdir(), key=lambda path: path.suffix != ".pth"):
            if keep.fullmatch(entry.name):
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def _sync(wanted: Checkout) -> None:
    backend = os.environ.get(BACKEND_VARIABLE)
    with tempfile.TemporaryDirectory() as scratch:
        requirements, how = wanted.requirements, ["sync"]
        if backend:
            lines = requirements.read_text("utf-8").splitlines()
            requirements = Path(scratch) / "requirements.txt"
            requirements.write_text("\n".join(without_cuda(lines)) + "\n", "utf-8")
        if backend and backend != "cpu":
            # The lock's libraries are of another CUDA. `sync` would install none, and what this
            # build of torch requires is pinned by itself.
            how = ["install", "--exact", "--requirements"]
        uv = [sys.executable, "-I", "-m", "uv", "pip", *how, str(requirements)]
        # Without bytecode, the first measured cell compiles it: one second of its cold compile.
        uv += ["--python", sys.executable, "--compile-bytecode"]
        if wanted.index_url:
            uv += ["--index", wanted.index_url, "--index-strategy", "unsafe-best-match"]
        done = _run(uv)
    if done.returncode:
        raise _failed(f"uv could not install the lock of PyTorch {wanted.version}", done.stdout)


def _add_extras(wanted: Checkout) -> None:
    """Install the extras. Without dependencies, so that the packages of the lock stay as they are.

    `uv pip sync` has removed extras that an older installation left, because no lock has them.
    """
    if not wanted.extras:
        return
    pins = [f"{package}=={version}" for package, version in wanted.extras.items()]
    uv = [sys.executable, "-I", "-m", "uv", "pip", "install", "--python", sys.executable]
    done = _run([*uv, "--no-deps", "--compile-bytecode", *pins])
    if done.returncode:
        raise _failed(f"uv could not install {', '.join(pins)}", done.stdout)


def without_cuda(lines: Sequence[str]) -> list[str]:
    """The lines of a lock without the packages that only CUDA builds of PyTorch load."""
    return [line for line in lines if not _CUDA_ONLY.match(line.partition("==")[0])]


def import_all(wanted: Checkout) -> str:
    """Import torch, torchvision, timm and the extras in a new process. Returns a line with their
    versions.

    Raises ``InstallError`` if one does not import, or if torch or an extra is another version.
    """
    program = [sys.executable, "-I", "-c", _IMPORT_ALL, json.dumps(_MODULES)]
    program += [*_IMPORTED, *wanted.extras]
    try:
        done = _run(program, timeout=_IMPORT_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise InstallError(
            f"importing PyTorch {wanted.version} took over {_IMPORT_TIMEOUT_S:.0f} s; "
            "is the disk or the machine overloaded? Run again"
        ) from error
    try:
        imported: dict[str, str] = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise InstallError(
            f"PyTorch {wanted.version} crashes on import (exit status {done.returncode}); "
            "this build does not fit this machine",
            _tail(done.stdout),
        ) from error
    return judge_imports(wanted, imported)


def judge_imports(wanted: Checkout, imported: dict[str, str]) -> str:
    """A line with the versions in ``imported``: package to version, as `import_all` reads them.

    ``failed`` is the package that did not import, ``error`` its error. Raises ``InstallError`` if
    there is one, or if the versions do not fit.
    """
    torch, vision = imported.get("torch", "none"), imported.get("torchvision", "none")
    failed, error = imported.get("failed"), imported.get("error", "")
    if failed != "torch" and torch.partition("+")[0] != wanted.version:
        raise InstallError(
            f"PyTorch {wanted.version} was asked for and torch {torch} is installed; run again"
        )
    if failed == "torchvision" or "torchvision::" in error:
        raise InstallError(
            f"torch {torch} and torchvision {vision} are different builds ({error}); "
            "let uv take both from one index, for example with UV_TORCH_BACKEND=cpu, "
            "and no torch wheel from UV_FIND_LINKS"
        )
    if failed:
        raise InstallError(
            f"{failed} {imported.get(failed, '(missing)')} does not import with torch {torch}: "
            f"{error}; run again for a fresh environment"
        )
    for name, version in wanted.extras.items():
        if imported.get(name, "none").partition("+")[0] != version:
            raise InstallError(
                f"{name} {version} was asked for and {name} {imported.get(name, 'none')} is "
                "installed; run again"
            )
    return ", ".join(f"{name} {imported.get(name)}" for name in (*_IMPORTED, *wanted.extras))


def _run(command: Sequence[str], timeout: float | None = None) -> subprocess.CompletedProcess[str]:
    # PIP_USER and PYTHONPATH of the caller would lead out of this environment; -I ignores the
    # second. If Inductor's cache folder cannot be made, torch does not import: without the variable
    # this fault cannot occur here. Tools write their errors to both streams: read them as one.
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
        why = f"{what}: the disk is full; a release needs up to 6 GB besides uv's cache"
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
        why = f"{what}; the reason is in its last lines"
    return InstallError(why, _tail(output))


def _tail(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return "\n".join(f"    {line}" for line in lines[-_TAIL_LINES:])


if __name__ == "__main__":
    sys.exit(main())

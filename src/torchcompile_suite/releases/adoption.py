"""An environment of the user's stands for a release: ``torchcompile-suite releases adopt``.

A machine without a network, or with a build of its own, measures the torch that it has. Nothing of
the user's environment changes: a new, empty environment of the same Python lies where the release's
own would lie, and finds the user's packages by a path file (the module ``site`` of Python).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
from filelock import FileLock

from ..errors import SuiteError
from ..host import cuda
from ..host.files import write_atomically
from . import catalogue, environments, stamp
from .catalogue import Release

# What the measuring processes and ASV's import; `torch` comes last, because it takes seconds.
NEEDED = ("asv_runner", "msgspec", "numpy", "psutil", "scipy", "setuptools", "timm", "torch")
_ASK = """
import importlib, json, site, sys, sysconfig
said = {"minor": "%d.%d" % sys.version_info[:2], "missing": [], "torch": "", "commit": ""}
said["folders"] = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
for name in sys.argv[1:]:
    try:
        module = importlib.import_module(name)
    except Exception as error:
        said["missing"].append("%s (%s)" % (name, error))
if "torch" in sys.modules and not said["missing"]:
    said["torch"] = str(module.__version__)
    said["commit"] = module.version.git_version or ""
print("\\n" + json.dumps(said))
"""
_PATH_FILE = "adopted.pth"
_LIMIT_S = 300.0


class _Said(msgspec.Struct):
    """What a Python says of itself. ``folders``: those of its packages."""

    minor: str
    missing: list[str]
    torch: str
    commit: str
    folders: list[str]


def adopt(python: Path) -> tuple[Release, str, Path]:
    """Make the environment of ``python`` that of its torch's release.

    Returns the release, the build of its torch such as ``2.11.0+cu130``, and the Python of the new
    environment. Raises SuiteError if that Python lacks something, if its torch is no release, or
    if the release has an environment already.
    """
    said = _ask(python, _needed())
    release = _release(said)
    folder = environments.folder_of(release, said.minor)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if (held := stamp.read(folder)) and not stamp.is_adopted(held):
            raise SuiteError(
                f"PyTorch {release.version} has an environment from its lock; remove that first: "
                f"torchcompile-suite releases remove {release.tag}"
            )
        environments.remove_folder(folder)
        _run(python, "-m", "venv", "--without-pip", str(folder))
        program = environments.python_in(folder)
        packages = _run(
            program, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"
        ).strip()
        lines = [f"import site; site.addsitedir({path!r})" for path in said.folders]
        Path(packages, _PATH_FILE).write_text("\n".join(lines) + "\n", "utf-8")
        found = _ask(program, _needed())
        if found.torch != said.torch:
            reason = ", ".join(found.missing) or f"it finds torch {found.torch}"
            raise SuiteError(f"the packages of {python} do not import in {folder}: {reason}")
        content = f"{stamp.ADOPTED} {said.torch} of {python}\n"
        write_atomically(folder / stamp.FILE, content.encode())
    return release, said.torch, program


def _needed() -> tuple[str, ...]:
    """What that Python has to import. Without pynvml nothing would watch a GPU."""
    return (*(["pynvml"] if cuda.seen().devices else []), *NEEDED)


def _ask(python: Path, needed: tuple[str, ...]) -> _Said:
    text = _run(python, "-c", _ASK, *needed)
    return msgspec.json.decode(text.strip().splitlines()[-1], type=_Said)


def _release(said: _Said) -> Release:
    """The release of that torch. A build of another commit under its name is refused."""
    if said.missing:
        raise SuiteError(
            f"this Python does not import {', '.join(said.missing)}; install that there first"
        )
    release = catalogue.find(said.torch.partition("+")[0])
    known = release.git_version
    if known is not None and said.commit not in ("", known):
        raise SuiteError(
            f"torch {said.torch} was built from {said.commit[:8]}, PyTorch {release.version} from "
            f"{known[:8]}: the results would be filed under another release"
        )
    return release


def _run(python: Path, *arguments: str) -> str:
    """What the program prints. Raises SuiteError if it cannot be started, or fails."""
    try:
        done = subprocess.run(
            [str(python), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SuiteError(f"{python} does not run as a Python: {error}") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise SuiteError(f"{python}: {last}")
    return done.stdout

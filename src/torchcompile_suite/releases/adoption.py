"""An environment of the user's stands for a release: ``torchcompile-suite releases adopt``.

A machine without a network, or with a build of its own, measures the torch that it has. Nothing of
the user's environment changes: a new, empty environment of the same Python lies where the release's
own would lie, and finds the user's packages by a path file (the module ``site`` of Python).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec

from ..errors import SuiteError
from ..host import cuda, programs
from ..host.files import alone, write_atomically
from . import catalogue, environments, install, stamp
from .catalogue import Release

# What the measuring processes and ASV's import; `torch` comes last, because it takes seconds.
NEEDED = ("asv_runner", "msgspec", "numpy", "psutil", "setuptools", "timm", "torch")
_LIMIT_S = 300.0


def adopt(python: Path) -> tuple[Release, str, Path]:
    """Make the environment of ``python`` that of its torch's release.

    Returns the release, the build of its torch such as ``2.11.0+cu130``, and the Python of the new
    environment. Raises SuiteError if that Python lacks something, if its torch is no release, or
    if the release has an environment already.
    """
    said = _ask(python)
    build = said.versions.get("torch", "none")
    release = _release(said, build)
    folder = environments.folder_of(release, said.minor)
    with environments.locked(folder), alone(environments.installing(folder)):
        if (held := stamp.read(folder)) and not stamp.is_adopted(held):
            raise SuiteError(
                f"PyTorch {release.version} has an environment from its lock; remove that first: "
                f"torchcompile-suite releases remove {release.tag}"
            )
        environments.remove_folder(folder)
        _run(python, "-m", "venv", "--without-pip", str(folder))
        # Until all is proven. Else a lock that is installed here later would find the user's, too.
        (folder / install.MARKER).touch()
        program = environments.python_in(folder)
        lines = [f"import site; site.addsitedir({path!r})" for path in said.folders]
        path_file = environments.packages_in(folder) / "adopted.pth"
        path_file.write_text("\n".join(lines) + "\n", "utf-8")
        found = _ask(program)
        torch = found.versions.get("torch", "none")
        if found.failed or torch != build:
            reason = _missing(found) or f"it finds torch {torch}"
            raise SuiteError(f"the packages of {python} do not import in {folder}: {reason}")
        content = f"{stamp.ADOPTED} {build} of {python}\n"
        write_atomically(folder / stamp.FILE, content.encode())
        (folder / install.MARKER).unlink()
    return release, build, program


def _ask(python: Path) -> install.Said:
    """What that Python says of itself and of all that it has to import."""
    # Without pynvml nothing would watch a GPU.
    needed = (*(["pynvml"] if cuda.seen().devices else []), *NEEDED)
    said = _run(python, "-c", install.ASK, *needed)
    try:
        return install.read(said)
    except (IndexError, msgspec.DecodeError):
        raise SuiteError(f"{python} does not answer as a Python") from None


def _missing(said: install.Said) -> str:
    """What does not import, and why."""
    return ", ".join(f"{name} ({why.partition(': ')[2]})" for name, why in said.failed.items())


def _release(said: install.Said, build: str) -> Release:
    """The release of that torch. A build of another commit under its name is refused."""
    if missing := _missing(said):
        raise SuiteError(f"this Python does not import {missing}; install that there first")
    release = catalogue.find(build.partition("+")[0])
    known = release.git_version
    if known is not None and said.commit not in ("", known):
        raise SuiteError(
            f"torch {build} was built from {said.commit[:8]}, PyTorch {release.version} from "
            f"{known[:8]}: the results would be filed under another release"
        )
    return release


def _run(python: Path, *arguments: str) -> str:
    """What the program prints. Raises SuiteError if it cannot be started, or fails."""
    try:
        done = programs.run([python, *arguments], timeout=_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SuiteError(f"{python} does not run as a Python: {error}") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise SuiteError(f"{python}: {last}")
    return done.stdout

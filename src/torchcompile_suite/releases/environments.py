"""Virtual environments that hold one release and nothing of the suite.

Every release has an environment of its own, so several releases lie side by side. uv links the
files of an environment from its cache: an environment takes little space beside the cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import platformdirs
from filelock import FileLock

from ..errors import SuiteError
from ..host.files import write_atomically
from . import drivers, extras, stamp
from .catalogue import Release
from .install import EXTRAS_FILE
from .ledger import lock_file, release_file

INSTALL = Path(__file__).with_name("install.py")
# The folder of all environments. By default it lies beside uv's cache, so that uv can link files
# from the cache instead of copying them.
FOLDER_VARIABLE = "TORCHCOMPILE_SUITE_ENVIRONMENTS"


class LockError(SuiteError):
    """The release's lock does not install or import on this machine.

    The message is that of uv or of Python.
    """


def making(release: Release) -> str:
    """A line to print before `install`, which prints nothing and may take minutes."""
    return f"making the environment of PyTorch {release.version}; the first time takes minutes"


class Installed(NamedTuple):
    """An environment on disk.

    ``own_bytes``: what only this environment has. ``linked_bytes``: what uv's cache or another
    environment has too.
    """

    name: str
    folder: Path
    own_bytes: int
    linked_bytes: int


def root() -> Path:
    """The folder of all environments."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else platformdirs.user_cache_path("torchcompile-suite") / "releases"


def folder_of(release: Release, python: str | None = None) -> Path:
    """The folder of the release's environment. ``python``: such as 3.11; None chooses one."""
    return root() / f"{release.version}-py{python or _minor(release)}"


def ready(release: Release, python: str | None = None, device: str | None = None) -> Path:
    """The Python of the release's own environment, which is made now if it is missing.

    ``python``: the minor version, such as 3.11; None: that which runs now, if the release supports
    it. ``device``: the kind that is to be measured; None: that of `machine.device_kind`. Several
    processes may call this at once. Raises what `drivers.check` and `install` raise.
    """
    folder = folder_of(release, python)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if not is_ready(release, python):
            drivers.check(release, device)
            (folder / stamp.FILE).unlink(missing_ok=True)
            install(release, folder, python)
            write_atomically(folder / stamp.FILE, digest(release).encode())
    return python_in(folder)


def is_ready(release: Release, python: str | None = None) -> bool:
    """Whether `ready` would return at once. An adopted environment is as the user made it."""
    content = stamp.read(folder_of(release, python))
    return stamp.is_adopted(content) or content == digest(release)


def holds_lock(release: Release, python: str | None = None) -> bool:
    """Whether the packages of the lock are installed: `ready` downloads extras at most."""
    content = stamp.read(folder_of(release, python))
    return stamp.is_adopted(content) or content.partition("\n")[0] == _lock_digest(release)


def installed() -> Iterator[Installed]:
    """The environments on disk, complete or not, by name."""
    for folder in sorted(root().glob("*-py*/")):
        own = linked = 0
        for file in folder.rglob("*"):
            if not file.is_symlink() and file.is_file():
                state = file.stat()
                if state.st_nlink > 1:
                    linked += state.st_size
                else:
                    own += state.st_size
        yield Installed(folder.name, folder, own, linked)


def remove(release: Release) -> list[Path]:
    """Remove the release's environments, of any Python. Returns their folders.

    Raises SuiteError if a file cannot be removed; what is left is never taken for an environment.
    """
    folders = sorted(root().glob(f"{release.version}-py*/"))
    for folder in folders:
        with FileLock(folder.with_name(f"{folder.name}.lock")):
            remove_folder(folder)
    return folders


def remove_folder(folder: Path) -> None:
    """Remove an environment, if it is there. Its lock has to be held. Raises SuiteError."""
    try:
        # Without its stamp, half an environment is never taken for a whole one. Without its
        # Python, it is never mended: uv trusts what says that it is installed.
        (folder / stamp.FILE).unlink(missing_ok=True)
        python_in(folder).unlink(missing_ok=True)
        if folder.exists():
            shutil.rmtree(folder)
    except OSError as error:
        raise SuiteError(f"cannot remove {error.filename}: {error.strerror}") from None


def free_bytes() -> int:
    """Free space on the disk of the environments."""
    place = root()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def digest(release: Release) -> str:
    """The content of the stamp: a lock or extras that change make another environment."""
    return "\n".join([_lock_digest(release), *extras.pins(release.version)])


def _lock_digest(release: Release) -> str:
    return hashlib.sha256(release_file(release) + lock_file(release)).hexdigest()


def install(release: Release, folder: Path, python: str | None = None) -> tuple[Path, str]:
    """Make the environment in ``folder`` hold exactly the release's lock and its extras.

    An existing environment changes to the release. ``python``: see `ready`. Returns the
    environment's Python, and a line with the versions that were imported. Raises LockError if the
    lock does not install or import, and SuiteError if not even an empty environment can be made.
    """
    program = python_in(folder)
    if not program.exists():
        _create(release, folder, python)
    with tempfile.TemporaryDirectory(prefix="release-") as checkout:
        Path(checkout, "release.json").write_bytes(release_file(release))
        Path(checkout, "requirements.txt").write_bytes(lock_file(release))
        if pins := extras.pins(release.version):
            Path(checkout, EXTRAS_FILE).write_text("\n".join(pins) + "\n", "utf-8")
        done = _run([str(program), str(INSTALL), checkout])
    if done.returncode:
        raise LockError(" ".join(done.stderr.split()))
    return program, done.stdout.strip()


def python_in(folder: Path) -> Path:
    """The Python of the environment in ``folder``."""
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def adopted(release: Release) -> str:
    """The Python, such as 3.12, of the user's environment that stands for the release; else
    empty.
    """
    for folder in sorted(root().glob(f"{release.version}-py*/")):
        if stamp.is_adopted(stamp.read(folder)):
            return folder.name.rpartition("-py")[2]
    return ""


def _minor(release: Release) -> str:
    """The Python of an adopted environment; else that which runs now if the release supports it,
    else the oldest one that it supports.
    """
    if python := adopted(release):
        return python
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    return running if release.supports(running) else release.usable_pythons[0]


def _create(release: Release, folder: Path, python: str | None) -> None:
    """Make an empty environment."""
    # Of a killed run. uv refuses a folder that it has not finished.
    shutil.rmtree(folder, ignore_errors=True)
    minor = python or _minor(release)
    runs = minor == f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = sys.executable if runs else minor
    uv = [sys.executable, "-m", "uv", "venv", "--quiet", "--seed", "--python", wanted, str(folder)]
    done = _run(uv)
    if done.returncode:
        reason = " ".join(done.stderr.split())
        raise SuiteError(
            f"uv could not make an environment with Python {wanted} (PyTorch {release.version} "
            f"needs one of {', '.join(release.usable_pythons)}): {reason}"
        )


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )

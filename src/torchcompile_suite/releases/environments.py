"""Virtual environments that hold one release and nothing of the suite.

Every release has an environment of its own, so several releases lie side by side. uv links the
files of an environment from its cache: an environment takes little space beside the cache.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from ..errors import SuiteError, cannot_write
from ..host import programs
from ..host.files import alone, held, write_atomically
from ..host.places import cache_folder
from . import drivers, extras, stamp
from .catalogue import Release
from .install import MARKER, LockError, prove, sync
from .ledger import lock_file, release_file
from .locking import uv

# The folder of all environments. By default it lies beside uv's cache, so that uv can link files
# from the cache instead of copying them.
FOLDER_VARIABLE = "TORCHCOMPILE_SUITE_ENVIRONMENTS"


class Installed(NamedTuple):
    """An environment on disk.

    ``own_bytes``: what only this environment has. ``linked_bytes``: what uv's cache or another
    environment has too.
    """

    name: str
    folder: Path
    own_bytes: int
    linked_bytes: int


class Proof(NamedTuple):
    """The result of installing one release's lock.

    ``line`` is the text to show, ``seconds`` the duration, ``git_version`` the upstream commit of
    the torch that was installed.
    """

    release: Release
    ok: bool
    line: str
    seconds: float
    git_version: str | None = None


def root() -> Path:
    """The folder of all environments."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else cache_folder() / "releases"


def folder_of(release: Release, python: str | None = None) -> Path:
    """The folder of the release's environment. ``python``: such as 3.11; None chooses one."""
    return root() / f"{release.version}-py{python or _minor(release)}"


def ready(
    release: Release,
    python: str | None = None,
    device: str | None = None,
    say: Callable[[str], object] = lambda _: None,
) -> Path:
    """The Python of the release's own environment, which is made now if it is missing.

    ``python``: the minor version, such as 3.11; None: that which runs now, if the release supports
    it. ``device``: the kind that is to be measured; None: that of `machine.device_kind`. ``say``
    gets a line before minutes of work. Several processes may call this at once. Raises what
    `drivers.check` and `install` raise.
    """
    folder = folder_of(release, python)
    if not is_ready(release, python):
        say(f"making the environment of PyTorch {release.version}; the first time takes minutes")
    with locked(folder):
        if not is_ready(release, python):
            drivers.check(release, device)
            if holds_lock(release, python) and python_in(folder).exists():
                # Only the extras are missing: what is there stays, whatever becomes of them.
                write_atomically(folder / stamp.FILE, _lock_digest(release).encode())
            else:
                (folder / stamp.FILE).unlink(missing_ok=True)
            install(release, folder, python)
            write_atomically(folder / stamp.FILE, digest(release).encode())
    if stamp.is_adopted(content := stamp.read(folder)):
        _check_adopted(python_in(folder), content)
    return python_in(folder)


def _check_adopted(python: Path, content: str) -> None:
    """Raise SuiteError if the user's environment has another torch than it had."""
    ask = (
        "import importlib.util, pathlib, runpy;"
        "torch = pathlib.Path(importlib.util.find_spec('torch').origin);"
        "print(runpy.run_path(torch.with_name('version.py'))['__version__'])"
    )
    _, build, _, theirs = content.split(maxsplit=3)
    try:
        found = programs.run([python, "-I", "-c", ask], timeout=60).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        found = ""
    if found != build:
        raise SuiteError(
            f"the environment that was adopted had torch {build}, and has {found or 'none'} now; "
            f"adopt it again: torchcompile-suite releases adopt {theirs.strip()}"
        )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """While entered, no other process changes the environment. Raises SuiteError for an OSError."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = folder.with_name(f"{folder.name}.lock")
        with held(lock, f"another process has been changing {folder} for an hour; end it", 3600):
            yield
    except OSError as error:
        remedy = f"free some space, or name another folder with {FOLDER_VARIABLE}"
        raise cannot_write(error, folder, remedy) from None


def is_ready(release: Release, python: str | None = None) -> bool:
    """Whether `ready` would return at once. An adopted environment is as the user made it."""
    folder = folder_of(release, python)
    content = stamp.read(folder)
    if stamp.is_adopted(content):
        return True
    # A Python that the system has removed leaves its environment behind.
    return content == digest(release) and python_in(folder).exists()


def holds_lock(release: Release, python: str | None = None) -> bool:
    """Whether the packages of the lock are installed: `ready` downloads extras at most."""
    folder = folder_of(release, python)
    return stamp.is_adopted(stamp.read(folder)) or _lock_in(folder) == _lock_digest(release)


def installed() -> Iterator[Installed]:
    """The environments on disk, complete or not, by name."""
    for folder in _folders("*"):
        states = []
        for file in folder.rglob("*"):
            with suppress(FileNotFoundError):  # another process may install there
                states.append(file.lstat())
        files = [one for one in states if stat.S_ISREG(one.st_mode)]
        linked = sum(one.st_size for one in files if one.st_nlink > 1)
        yield Installed(folder.name, folder, sum(one.st_size for one in files) - linked, linked)


def remove(release: Release, python: str = "*") -> None:
    """Remove the release's environments of that Python, or of any.

    Raises SuiteError if a file cannot be removed; what is left is never taken for an environment.
    """
    for folder in _folders(release.version, python):
        # uv of a killed run may still install there.
        with locked(folder), alone(installing(folder)):
            remove_folder(folder)


def installing(folder: Path) -> Path:
    """The file that uv holds while it installs there: it may outlive a run that is killed."""
    return folder.with_name(f"{folder.name}.installing")


def _folders(version: str, python: str = "*") -> list[Path]:
    """The folders of the environments of that version and Python, or of patterns, by name."""
    return sorted(one for one in root().glob(f"{version}-py{python}") if one.is_dir())


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


def _lock_in(folder: Path) -> str:
    """The `_lock_digest` of the environment in ``folder``; empty if it has none."""
    return stamp.read(folder).partition("\n")[0]


def _lock_digest(release: Release) -> str:
    return hashlib.sha256(release_file(release) + lock_file(release)).hexdigest()


def install(release: Release, folder: Path, python: str | None = None) -> tuple[Path, str]:
    """Make the environment in ``folder`` hold exactly the release's lock and its extras.

    An existing environment changes to the release; one that an installation has left unfinished is
    emptied first. One that has the lock keeps it, also if its extras fail. ``python``: see `ready`.
    Returns the environment's Python, and a line with the versions that were imported. Raises
    LockError if the lock does not install or import, and SuiteError if not even an empty
    environment can be made.
    """
    program, marker = python_in(folder), folder / MARKER
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # uv inherits this lock. It outlives a run that is killed, and then the next run waits.
        with alone(installing(folder)) as lock:
            if not minor_in(folder):
                _create(release, folder, python)
            if not release.supports(minor := minor_in(folder)):
                raise LockError(
                    f"PyTorch {release.version} has no wheels for Python {minor}; "
                    f"supported: {', '.join(release.usable_pythons)}"
                )
            if marker.exists():
                # uv considers a package installed as soon as its metadata exists: half a package
                # would stay. Its option --reinstall keeps files whose RECORD is gone.
                _empty(folder)
            elif _lock_in(folder) == _lock_digest(release):
                try:
                    sync(release, program, lock.fileno())
                    return program, prove(release, program)
                except LockError as error:
                    if not any(pin in str(error) for pin in extras.pins(release.version)):
                        marker.touch()  # the packages themselves are at fault: all of them anew
                    raise
            marker.write_text(f"PyTorch {release.version} is being installed\n", "utf-8")
            try:
                sync(release, program, lock.fileno())
                versions = prove(release, program)
            except BaseException:
                with suppress(OSError):
                    _empty(folder)  # the disk may be full
                raise
            marker.unlink()
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise LockError(f"{error.strerror or error}{where}; run it again") from error
    return program, versions


def verify(release: Release) -> Proof:
    """Install and import a release in a temporary environment.

    It takes 5 to 8 GB of disk if uv's cache is on another file system than the folder of
    environments; otherwise uv links the files. Raises ``SuiteError`` if not even an empty
    environment can be made.
    """
    started = time.monotonic()
    # uv links files here under the same conditions as for the environments that stay.
    place = root()
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix="verify-", dir=place, ignore_cleanup_errors=True
        ) as scratch:
            ok, line, git_version = _verify(release, Path(scratch).absolute() / "env")
    except OSError as error:
        raise SuiteError(f"cannot verify in {place}: {error}") from error
    return Proof(release, ok, line, time.monotonic() - started, git_version)


def _verify(release: Release, folder: Path) -> tuple[bool, str, str | None]:
    """Whether the lock installs and imports, the line to show, and the upstream commit."""
    try:
        _, versions = install(release, folder)
    except LockError as error:
        return False, str(error), None
    git_version = read_git_version(folder)
    if release.git_version not in (None, git_version):
        reason = (
            f"torch.version.git_version is {git_version}, but releases.toml says "
            f"{release.git_version}; one of the two belongs to another build"
        )
        return False, reason, git_version
    return True, f"{versions}, git_version {git_version}", git_version


def read_git_version(folder: Path) -> str | None:
    """The upstream commit of the torch in an environment. Torch is not imported."""
    file = packages_in(folder) / "torch" / "version.py"
    text = file.read_text("utf-8") if file.exists() else ""
    found = re.search(r"^git_version = '([0-9a-f]{40})'", text, re.MULTILINE)
    return found[1] if found else None


def python_in(folder: Path) -> Path:
    """The Python of the environment in ``folder``."""
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def packages_in(folder: Path) -> Path:
    """The folder with the packages of an environment; it may be missing."""
    return next(folder.glob("lib/python3*/site-packages"), folder / "Lib" / "site-packages")


def adopted(release: Release) -> str:
    """The Python, such as 3.12, of the user's environment that stands for the release, which is
    the one that was adopted last; else empty.
    """
    found = [one for one in _folders(release.version) if stamp.is_adopted(stamp.read(one))]
    newest = max(found, key=lambda one: (one / stamp.FILE).stat().st_mtime_ns, default=None)
    return newest.name.rpartition("-py")[2] if newest else ""


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
    done = uv("venv", "--quiet", "--python", wanted, folder)
    if done.returncode:
        reason = " ".join(done.stderr.split())
        raise SuiteError(
            f"uv could not make an environment with Python {wanted} (PyTorch {release.version} "
            f"needs one of {', '.join(release.usable_pythons)}): {reason}"
        )


def minor_in(folder: Path) -> str:
    """The Python, such as 3.11, of the environment in ``folder``; empty if there is none.

    Without its settings, its Python would be that of the system, where nothing may change.
    """
    settings = folder / "pyvenv.cfg"
    if not (python_in(folder).exists() and settings.exists()):
        return ""
    found = re.search(r"^version(?:_info)? *= *(\d+\.\d+)", settings.read_text("utf-8"), re.M)
    return found[1] if found else ""


def _empty(folder: Path) -> None:
    """Remove every package of the environment."""
    for entry in sorted(packages_in(folder).glob("*")):
        if entry.stem == "_virtualenv":
            continue  # belongs to the empty environment
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()

"""Libraries in a folder of their own inside the environment of a release: ``apart.toml``.

`provide` adds them, with uv. `stamp.apart` tells a measuring process where they are.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from ..errors import SuiteError
from ..host import programs
from ..host.files import alone
from . import stamp

FILE = Path(__file__).with_name("apart.toml")
# In the folder of a library: its pins. It is there only if the folder is complete and proven.
PINS = "pins.txt"


class Library(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The exact versions of a library and of what it needs, and the modules that prove it."""

    pins: tuple[str, ...]
    proof: tuple[str, ...]


@functools.cache
def read() -> Mapping[str, Library]:
    """The libraries, by the name of the module."""
    return msgspec.toml.decode(FILE.read_bytes(), type=dict[str, Library])


def provide(python: Path, libraries: Iterable[str]) -> None:
    """Add those of the libraries that lie apart to the environment of that Python, if it is one of
    a release's own.

    An adopted environment is as the user made it. Raises SuiteError if a library does not install
    or import; the environment is as it was.
    """
    prefix = python.parent.parent
    for library in libraries:
        if library not in read() or not stamp.from_a_lock(str(prefix)):
            continue
        if _holds(prefix, library):
            continue
        if reason := _fault(python, library):
            raise SuiteError(reason)
        _fault.cache_clear()  # the folder may be removed later


def _holds(prefix: Path, library: str) -> bool:
    """Whether the folder is there, with the pins of today."""
    file = stamp.apart(library, prefix).with_name(PINS)
    return file.exists() and file.read_text("utf-8").split() == list(read()[library].pins)


@functools.cache
def _fault(python: Path, library: str) -> str:
    """Install the library. Returns why that failed; once, not for each cell that needs it."""
    prefix = python.parent.parent
    root = stamp.apart(library, prefix).parent
    try:
        with (
            alone(prefix / f"{root.name}.installing") as held,
            tempfile.TemporaryDirectory(dir=prefix, prefix=f".{root.name}-") as scratch,
        ):
            if not _holds(prefix, library):
                _install(python, library, Path(scratch), held.fileno())
                shutil.rmtree(root, ignore_errors=True)
                stamp.apart(library, scratch).parent.rename(root)
    except SuiteError as error:
        return str(error)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{library} could not be installed in {prefix}: {error}"
    return ""


def _install(python: Path, library: str, scratch: Path, held: int) -> None:
    """Make the folder of the library in ``scratch``, and prove that ``python`` imports it there."""
    # Imported here: the package's core is enough where nothing is missing.
    from . import install

    pins, place = read()[library].pins, stamp.apart(library, scratch)
    how = ["install", "--no-deps", "--target", str(place), "--requirements", "-"]
    install.uv_pip(how, pins, python, held, pins[0])
    look = "import sys; sys.path.insert(0, sys.argv[1]); list(map(__import__, sys.argv[2:]))"
    done = programs.run([python, "-I", "-c", look, place, *read()[library].proof], timeout=600)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise SuiteError(f"{pins[0]} does not import in {python.parent.parent}: {last}")
    place.with_name(PINS).write_text("\n".join(pins) + "\n", "utf-8")

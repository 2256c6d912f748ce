"""Probes of what measured calls feel and the guest's kernel cannot see (`probes.cpp`).

A host runs the virtual processors of a guest where it wants: on one core complex or on two, on
cores of their own or on hyperthreads of one core. It may move them within seconds. Between two
turns of a launch, and in ``torchcompile-suite doctor``, these probes show it.

The C++ compiler that Inductor needs builds them, once a machine. Without a compiler, with one
processor, or on another system than Linux there are none.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from statistics import median
from typing import NamedTuple

from ..conditions import HostState
from .files import cache_folder

SOURCE = Path(__file__).with_suffix(".cpp")
# Two hand-offs of one state differ by some per cent; between the states of a host they differ by a
# factor of 4.
FAR = 1.5
_BUILD_LIMIT_S = 60.0


class Reading(NamedTuple):
    """What the probes say now.

    - ``handoff_ns``: from a thread on one processor to a thread on another and back: the median.
    - ``together``: the time of a computation on both processors at once, over its time on one.
    - ``load_ns``: a load from 4 MiB, a thousand of its lines in turn: from the host's last cache
      or from memory, as the measured calls and others have left it.
    """

    handoff_ns: float
    together: float
    load_ns: float


def read() -> Reading | None:
    """A reading, which takes half a millisecond; None if there are no probes here."""
    processors = _processors()
    if len(processors) < 2 or (library := _library()) is None:
        return None
    found = (ctypes.c_double * 3)()
    library.probes(processors[0], processors[1], found)
    return Reading(*found)


class Probes:
    """Readings before each turn and after the last one, the pairs in one state, and the summary."""

    def __init__(self, wanted: bool = True) -> None:
        """Build the probes, and take a first reading that does not count."""
        self._wanted = wanted and read() is not None
        self._readings: list[Reading] = []

    def __call__(self) -> None:
        """Take a reading, if there are probes here."""
        if self._wanted and (reading := read()) is not None:
            self._readings.append(reading)

    def together(self, pairs: int) -> list[bool]:
        """Of each pair, whether the host stayed in one state from its first turn to its last.

        All are True without readings. They are also True if most pairs would not count: then the
        states change faster than turns do, and a pair has both on either side.
        """
        handoff_ns = [reading.handoff_ns for reading in self._readings]
        of_pairs = [handoff_ns[2 * pair : 2 * pair + 3] for pair in range(pairs)]
        same = [max(three, default=0) <= FAR * min(three, default=0) for three in of_pairs]
        return same if 2 * sum(same) > pairs else [True] * pairs

    def state(self, split: int = 0) -> HostState | None:
        """What was read, with the number of pairs that do not count; None if nothing was."""
        if not self._readings:
            return None
        handoff_ns, together, load_ns = zip(*self._readings, strict=True)
        return HostState(
            [round(each) for each in handoff_ns],
            round(median(together), 3),
            round(median(load_ns), 2),
            split,
        )


def _processors() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


@cache
def _library() -> ctypes.CDLL | None:
    """The built probes: those of an earlier process, or made now."""
    compiler = os.environ.get("CXX") or "g++"
    key = hashlib.sha256(compiler.encode() + SOURCE.read_bytes()).hexdigest()[:16]
    built = cache_folder() / f"probes-{key}.so"
    try:
        if not built.exists():
            built.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=built.parent) as folder:
                made = Path(folder, built.name)
                command = [*shlex.split(compiler), "-O2", "-shared", "-fPIC", "-pthread"]
                subprocess.run(
                    [*command, str(SOURCE), "-o", str(made)],
                    capture_output=True,
                    timeout=_BUILD_LIMIT_S,
                    check=True,
                )
                made.replace(built)
        return ctypes.CDLL(str(built))
    except (OSError, subprocess.SubprocessError):
        return None

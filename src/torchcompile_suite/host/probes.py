"""Probes of what measured calls feel and the guest's kernel cannot see (`probes.cpp`).

A host runs the virtual processors of a guest where it wants: on one core complex or on two, on
cores of their own or on hyperthreads of one core. It may move them several times a second. Between
two turns of a launch, and in ``torchcompile-suite doctor``, these probes show it.

The C++ compiler that Inductor needs builds them, once a machine. Without a compiler, with one
processor, or on another system than Linux there are none.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import platform
import shlex
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from ..conditions import HostState, Place
from ..errors import SuiteError
from . import processors
from .places import cache_folder
from .programs import run

SOURCE = Path(__file__).with_suffix(".cpp")
# Two hand-offs of one place differ by some per cent. Between core complexes they take four times as
# long as in one, and in one complex 1.5 times as long as between hyperthreads of one core.
FAR = 2.0
# The time of a computation on both processors over that on one: above this they share a core.
SHARED = 1.4
# The time of the computation that fills a core, over its time without a neighbour: above this, a
# neighbour uses a core of ours. A neighbour on one of the two cores costs 5 to 17 %, on both 10 to
# 35 %.
CROWDED = 1.05
# The times of two chains differ by less than this while the clock stays the same.
STEADY = 1.02
# The page, `try` and `doctor` name a neighbour that is there at more than this share of readings.
OFTEN_CROWDED = 0.2
# So many pairs at the best place give the figure of a launch.
LEAST_NEAR = 5
_BUILD_LIMIT_S = 60.0


class Reading(NamedTuple):
    """What the probes say now.

    - ``handoff_ns``: from a thread on one processor to a thread on another and back: the median.
    - ``together``: the time of a computation on both processors at once, over its time on one.
    - ``load_ns``: a load from 4 MiB, a thousand of its lines in turn: from the host's last cache
      or from memory, as the measured calls and others have left it.
    - ``core_ns``: of that computation, which fills a core, on both processors at once: the mean.
    - ``chain_ns``: of one that does not fill a core, so that a neighbour on the other hyperthread
      does not slow it. It shows the clock of the core.
    """

    handoff_ns: float
    together: float
    load_ns: float
    core_ns: float
    chain_ns: float


def read() -> Reading | None:
    """A reading, which takes half a millisecond; None if there are no probes here."""
    two = _two()
    if two is None or (library := _library()) is None:
        return None
    found = (ctypes.c_double * 5)()
    library.probes(*two, found)
    return Reading(*found)


class Probes:
    """Readings before each turn and after the last one, and the pairs that count by them."""

    def __init__(self, wanted: bool = True) -> None:
        """Build the probes, and take a first reading that is not kept in ``readings``."""
        self._wanted = wanted and read() is not None
        self.readings: list[Reading] = []

    def __call__(self) -> None:
        """Take a reading, if there are probes here."""
        if self._wanted and (reading := read()) is not None:
            self.readings.append(reading)

    def counting(self, pairs: int) -> list[bool]:
        """Of each pair, whether it counts: all were timed with the processors at one place.

        That is near each other, if at least `LEAST_NEAR` pairs were. Otherwise it is the place of
        most pairs. All pairs count without readings, and where the host moves the processors within
        most pairs.
        """
        where = self._places(pairs)
        best = _best(where)
        return [best is None or place == best for place in where]

    def enough(self, pairs: int, wanted: int) -> bool:
        """Whether so many pairs were near. If none was: whether so many count."""
        return (self._places(pairs).count("near") or sum(self.counting(pairs))) >= wanted

    def _places(self, pairs: int) -> list[Place | None]:
        """Where each pair was timed, from its first turn to its last; None at several places."""
        at = places(self.readings)
        of_pairs = [at[2 * pair : 2 * pair + 3] for pair in range(pairs)]
        return [three[0] if len(set(three)) == 1 else None for three in of_pairs]

    def state(self, pairs_s: Sequence[tuple[float, float]]) -> HostState | None:
        """What was read during the pairs, and what those gave that do not count.

        ``pairs_s``: seconds a call of both sides, of all pairs. None if nothing was read.
        """
        if not self.readings:
            return None
        where = self._places(len(pairs_s))
        best = _best(where)
        counting = [best is None or place == best for place in where]
        elsewhere = [
            math.log(mode_s / eager_s)
            for (eager_s, mode_s), place, counts in zip(pairs_s, where, counting, strict=True)
            if place and not counts
        ]
        return HostState(
            [round(reading.handoff_ns) for reading in self.readings],
            round(median(reading.together for reading in self.readings), 3),
            round(median(reading.load_ns for reading in self.readings), 2),
            split=counting.count(False) - len(elsewhere),
            elsewhere=len(elsewhere),
            elsewhere_ratio=round(math.exp(median(elsewhere)), 5) if elsewhere else None,
            counted_ns=round(median(self._during(counting))),
            place=best or "mixed",
            crowded=None if (share := crowded(self.readings)) is None else round(share, 3),
        )

    def _during(self, counting: Sequence[bool]) -> list[float]:
        """The hand-offs of the pairs that count."""
        return [
            reading.handoff_ns
            for pair, counts in enumerate(counting)
            if counts
            for reading in self.readings[2 * pair : 2 * pair + 3]
        ]


def places(readings: Sequence[Reading]) -> list[Place]:
    """Where the processors were at each reading; near in the quickest one on two cores."""
    apart_ns = [one.handoff_ns for one in readings if one.together <= SHARED]
    limit_ns = FAR * min(apart_ns, default=math.inf)
    return [
        "shared" if one.together > SHARED else "near" if one.handoff_ns <= limit_ns else "far"
        for one in readings
    ]


def over_quiet(readings: Sequence[Reading]) -> list[float | None]:
    """At each reading, how many times as long the computation that fills a core took as without a
    neighbour, at one clock. None where the two processors shared a core.

    The least one is taken to be without. A neighbour that is there all the time is not seen.
    """
    apart = [one for one in readings if one.together <= SHARED]
    chain_ns = min((one.chain_ns for one in apart), default=0.0)
    # A chain that was interrupted makes its quotient too small.
    whole = [one for one in apart if one.chain_ns <= STEADY * chain_ns]
    least = min((one.core_ns / one.chain_ns for one in whole), default=0.0)
    return [
        one.core_ns / one.chain_ns / least if one.together <= SHARED else None for one in readings
    ]


def crowded(readings: Sequence[Reading]) -> float | None:
    """The share of the readings on two cores at which a neighbour computed on one of them, on its
    other hyperthread; None without such a reading.
    """
    known = [each for each in over_quiet(readings) if each is not None]
    return fmean(each > CROWDED for each in known) if known else None


def _best(where: Sequence[Place | None]) -> Place | None:
    """The place of the pairs that count (`Probes.counting`); None if all count."""
    seen = Counter(place for place in where if place)
    if seen["near"] >= LEAST_NEAR:
        return "near"
    if 2 * seen.total() <= len(where):
        return None
    # Of places with equally many pairs, near.
    return max(seen, key=lambda place: (seen[place], place == "near"))


# Looked up once: a reading has half a millisecond.
_two = cache(processors.two)


@cache
def _library() -> ctypes.CDLL | None:
    """The built probes: those of an earlier process, or made now."""
    compiler = os.environ.get("CXX") or "g++"
    # Machines of several kinds may share a home folder.
    of = f"{compiler}\0{platform.machine()}\0{platform.libc_ver()}"
    key = hashlib.sha256(of.encode() + SOURCE.read_bytes()).hexdigest()[:16]
    try:
        built = cache_folder() / f"probes-{key}.so"
        if not (built.exists() and built.stat().st_size):
            built.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=built.parent) as folder:
                made = Path(folder, built.name)
                command = [*shlex.split(compiler), "-O2", "-shared", "-fPIC", "-pthread"]
                run([*command, SOURCE, "-o", made], timeout=_BUILD_LIMIT_S, check=True)
                made.replace(built)
        return ctypes.CDLL(str(built))
    except (OSError, ValueError, subprocess.SubprocessError, SuiteError):
        return None

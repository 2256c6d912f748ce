"""The driver's files: results/, the journals of series, and a diary of what became of each series.

The measurements of a complete series go to the records of their machine, as those of `asv run` do,
and are sealed at the end of the run: a file for each release of each series would be fifty thousand
files of four kilobytes for the whole matrix.

The results say what is complete, and a journal has each launch of a series that is not. The diary
says which machine has begun what, since when a machine is lost, and why a series failed, also after
the driver was killed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Set
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Literal

import msgspec

from ..errors import SuiteError
from ..host import machine
from ..host.files import append_line, read_lines, write_atomically
from ..measurement import Measurement
from ..results import records, sealing
from ..results.parsing import Problem
from ..results.records import Record
from .plan import Plan

What = Literal["given", "lost", "back", "anew", "stored", "failed"]
DIARY = "diary.jsonl"
PLAN = "plan.json"


@dataclass
class Store:
    """The results of a fleet in the folder ``results``.

    - ``known``: the records that are there.
    - ``commits``: the ledger's commit of each release.
    - ``environment``: ASV's name of the environment.
    """

    results: Path
    known: InitVar[Iterable[Record]]
    commits: Mapping[str, str]
    environment: str

    def __post_init__(self, known: Iterable[Record]) -> None:
        """Remember what is stored."""
        self._known = {
            (record.machine, record.commit, *_identity(record.measurement)) for record in known
        }

    def keep(
        self,
        machine_name: str,
        fields: Mapping[str, str | int],
        measured: Mapping[str, Measurement],
    ) -> None:
        """Store the measurement of each release. What is stored already is not stored again.

        Raises SuiteError where the results have another machine of that name, and OSError.
        """
        folder = self.results / machine_name
        if fields.get("machine") != machine_name:
            raise SuiteError(f"{machine_name} calls itself {fields.get('machine')!r}")
        machine.keep(folder, fields)
        for release, measurement in measured.items():
            commit = self.commits[release]
            key = (machine_name, commit, *_identity(measurement))
            if key not in self._known:
                records.append(records.path(folder, commit, self.environment), measurement)
                self._known.add(key)

    def seal(self) -> list[Problem]:
        """Seal all journals; returns what could not be sealed. Raises OSError."""
        return sealing.seal_all(self.results).problems


def _identity(measurement: Measurement) -> tuple[object, ...]:
    """What no two measurements of a commit on a machine share."""
    series = {launch.series for launch in measurement.launches}
    return measurement.cell, measurement.started_at, *sorted(series)


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event. ``at``: seconds since 1970. ``series`` is empty for an event of a whole machine.

    - ``given``: the machine has begun the series. ``anew``: it will begin on another machine.
    - ``lost``, ``back``: the machine left the cluster, or is there again.
    - ``stored``: its results are in results/. ``failed``: it was given up; ``reason`` says why.
    """

    at: float
    what: What
    series: str = ""
    machine: str = ""
    reason: str = ""


class Diary:
    """The diary of a clone, in ``folder``, with the journal of each series beside it.

    - ``home``: the machine that has begun each series that is not stored.
    - ``lost``: the machines that are lost, and since when.
    - ``failed``: the series that were given up, and why.
    """

    def __init__(self, folder: Path) -> None:
        """Read what is there. Raises OSError."""
        self.folder = folder
        self._file = folder / DIARY
        self.home: dict[str, str] = {}
        self.lost: dict[str, float] = {}
        self.failed: dict[str, str] = {}
        for line in read_lines(self._file, Line):
            self._apply(line)

    def note(self, what: What, series: str, machine: str, reason: str = "") -> None:
        """Let an event count that has just happened. Raises OSError."""
        self.add(Line(time.time(), what, series, machine, reason))

    def add(self, line: Line) -> None:
        """Write the event, then let it count. Raises OSError."""
        append_line(self._file, msgspec.json.encode(line))
        self._apply(line)

    def _apply(self, line: Line) -> None:
        if line.what == "given":
            self.home[line.series] = line.machine
            self.failed.pop(line.series, None)
        elif line.what == "lost":
            self.lost.setdefault(line.machine, line.at)
        elif line.what == "back":
            self.lost.pop(line.machine, None)
        elif line.what == "failed":
            self.failed[line.series] = line.reason
        else:
            self.home.pop(line.series, None)

    def journal(self, series: str) -> Path:
        """The folder of the series' journal (`engine.journal`)."""
        return self.folder / series

    def write_plan(self, plan: Plan) -> None:
        """Keep the plan for `fleet status`. Raises OSError."""
        write_atomically(self.folder / PLAN, msgspec.json.encode(plan))

    def read_plan(self) -> Plan | None:
        """The plan of the newest run; None if there is none. Raises OSError."""
        try:
            return msgspec.json.decode((self.folder / PLAN).read_bytes(), type=Plan)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def state(
        self, series: str, alive: Set[str] | None = None, free: Set[str] = frozenset()
    ) -> tuple[str, str]:
        """The state of a series that is not complete, and what else is known of it, in words.

        ``alive``, ``free``: the machines in the cluster, and those where nothing is measured;
        without them the diary's last word counts.
        """
        home = self.home.get(series)
        if series in self.failed:
            return "failed", f": {self.failed[series]}"
        if home is None:
            return "waiting", ""
        if home in self.lost or (alive is not None and home not in alive):
            since = time.localtime(self.lost.get(home, time.time()))
            return "lost", f" with {home}, since {time.strftime('%d %b %H:%M', since)}"
        if alive is None:
            return "running", f" on {home}, by the diary; --address asks the cluster"
        return ("waiting", f" for {home}") if home in free else ("running", f" on {home}")

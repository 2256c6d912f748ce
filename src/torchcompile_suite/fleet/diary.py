"""The driver's diary: what became of each series, a line for each event.

The results say what is complete. The diary says which machine has begun what, since when a machine
is lost, and why a series failed, also after the driver was killed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from ..host.files import append_line, read_lines, write_atomically
from .left import Task

What = Literal["given", "lost", "back", "anew", "stored", "failed"]
DIARY = "diary.jsonl"
PLAN = "plan.json"


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


class Plan(msgspec.Struct, frozen=True):
    """What the newest run is to measure. ``hardware``: the class, as a label."""

    hardware: str
    environment: str
    tasks: list[Task]


class Diary:
    """The diary of a clone, in ``folder``.

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
        else:
            self.home.pop(line.series, None)
            if line.what == "failed":
                self.failed[line.series] = line.reason

    def write_plan(self, plan: Plan) -> None:
        """Keep the plan for `fleet status`. Raises OSError."""
        write_atomically(self.folder / PLAN, msgspec.json.encode(plan))

    def read_plan(self) -> Plan | None:
        """The plan of the newest run; None if there is none. Raises OSError."""
        try:
            return msgspec.json.decode((self.folder / PLAN).read_bytes(), type=Plan)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

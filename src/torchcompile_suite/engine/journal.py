"""The launches of a cell so far, kept in a file as soon as each one ends.

This is the one form in which a measurement that is not complete is stored: a history, a bisection,
`try` and a fleet go on from it after Ctrl-C or a kill. Each line of the file is one `Line` in JSON.
"""

from __future__ import annotations

import shutil
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from ..analysis import statistics
from ..cell import Cell
from ..host.files import append_line, read_lines
from ..measurement import METHOD, Launch
from .series import Series

FILE = "journal.jsonl"
CACHES = "caches"


class Line(msgspec.Struct, omit_defaults=True):
    """A line: the beginning of a series, a launch, a refusal, or the end of a round.

    - ``release``: the name of what was measured; empty for the torch of the user.
    - ``cell``: only in a file with several cells.
    - ``taken_s``: seconds that the launch took, with its start.
    - ``refused``: why nothing of that name can be measured.
    - ``commit``: as ``release``. Files of earlier bisections have it.
    """

    begun: Series | None = None
    name: str = ""
    started_at: str = ""
    cell: Cell | None = None
    release: str = ""
    launch: Launch | None = None
    taken_s: float = 0.0
    refused: str = ""
    ended: int = 0
    commit: str = ""


# Keeps a line. Raises OSError.
Keep = Callable[[Line], None]


class Journal:
    """What is known of one cell, by name: a release, a commit, or empty for the user's torch.

    - ``caches``: the folder of the compiled code, one folder for each name.
    - ``begun``, ``name``: the series and its name; None and empty if its launches are no rounds.
    - ``refused``: by name the reason why it cannot be measured.
    - ``quiet_s``: the shortest time of the calibration loop so far; None if there is none.
    """

    def __init__(
        self, cell: Cell, caches: Path, lines: Sequence[Line] = (), keep: Keep | None = None
    ) -> None:
        """``lines``: those of earlier runs. ``keep``: None if it is kept in memory only."""
        self.cell = cell
        self.caches = caches
        self.begun: Series | None = None
        self.name = ""
        self.started_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self.launches: dict[str, list[Launch]] = defaultdict(list)
        self.taken_s: dict[str, float] = defaultdict(float)
        self.refused: dict[str, str] = {}
        self.round = 0
        self.quiet_s: float | None = None
        self._keep = keep or (lambda _line: None)
        self._read(lines)

    def _read(self, lines: Sequence[Line]) -> None:
        whole = {line.ended for line in lines}
        for line in lines:
            name, launch = line.release or line.commit, line.launch
            if line.begun is not None:
                self.begun, self.name, self.started_at = line.begun, line.name, line.started_at
            elif line.refused:
                self.refused[name] = line.refused
            elif launch is not None:
                self.round = max(self.round, launch.round)
                if launch.outcome.ok and launch.method != METHOD:
                    continue  # an older version of the suite made it
                if launch.round not in whole:
                    # An interruption may have lasted for hours: the launches of its round are no
                    # pairs.
                    launch = msgspec.structs.replace(launch, round=0)
                self._know(name, launch, line.taken_s)

    def begin(self, series: Series) -> None:
        """Let the launches be rounds of the series. Raises OSError."""
        self.begun, self.name = series, uuid.uuid4().hex
        self._keep(Line(begun=series, name=self.name, started_at=self.started_at))

    def drop_halves(self, series: Series) -> None:
        """Remove what a killed cold launch has left: half of the compiled code of a release."""
        for release in series.releases:
            if not self.launches[release]:
                shutil.rmtree(self.caches / release, ignore_errors=True)

    def forgive(self) -> None:
        """Forget the launches that failed, and refusals: what was at fault may be mended."""
        self.refused.clear()
        for name, made in self.launches.items():
            self.launches[name] = [launch for launch in made if launch.outcome.ok]

    def add(self, name: str, launch: Launch, taken_s: float) -> None:
        """Keep a launch. Raises OSError."""
        self._keep(Line(release=name, launch=launch, taken_s=taken_s))
        self._know(name, launch, taken_s)

    def refuse(self, name: str, reason: str) -> None:
        """Keep why nothing of that name can be measured. Raises OSError."""
        self._keep(Line(release=name, refused=reason))
        self.refused[name] = reason

    def end_round(self) -> None:
        """Keep that the round is complete. Raises OSError."""
        if self.name:
            self._keep(Line(ended=self.round))

    def _know(self, name: str, launch: Launch, taken_s: float) -> None:
        self.launches[name].append(launch)
        self.taken_s[name] += taken_s
        self.quiet_s = statistics.quietest([launch], self.quiet_s)

    def failed(self, name: str) -> bool:
        """Whether it takes no further part: it was refused, or a launch of it failed."""
        return name in self.refused or any(not one.outcome.ok for one in self.launches[name])

    def count(self, name: str) -> int:
        """The number of its launches that were not disturbed."""
        return len(statistics.undisturbed(self.launches[name]))

    def disturbed(self, name: str) -> int:
        """The number of its other launches."""
        return len(self.launches[name]) - self.count(name)


def in_file(file: Path, cell: Cell, caches: Path, *, several: bool = False) -> Journal:
    """The journal of the cell that is kept in the file. Raises OSError.

    ``several``: the file has lines of other cells, too.
    """

    def keep(line: Line) -> None:
        if several:
            line.cell = cell
        append_line(file, msgspec.json.encode(line))

    lines = [line for line in read_lines(file, Line) if not several or line.cell == cell]
    return Journal(cell, caches, lines, keep)


def of_series(series: Series, folder: Path) -> Journal:
    """The journal of that series in its folder, which has all of its state. Raises OSError.

    A journal of another plan is removed first.
    """
    file, caches = folder / FILE, folder / CACHES
    journal = in_file(file, series.cell, caches)
    if journal.begun != series:
        shutil.rmtree(folder, ignore_errors=True)
        journal = in_file(file, series.cell, caches)
        journal.begin(series)
    journal.drop_halves(series)
    return journal


def lines_of(series: Series, folder: Path) -> list[Line]:
    """What the journal of that series has in its folder: see `of_series`."""
    of_series(series, folder)
    return read_lines(folder / FILE, Line)


def discard(folder: Path) -> None:
    """Remove the folder of a series whose measurements are stored.

    The journal goes first: without it the rest is nothing, whenever a kill comes.
    """
    (folder / FILE).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)

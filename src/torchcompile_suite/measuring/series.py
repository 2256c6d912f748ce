"""A series: one cell over several releases, measured in turns.

Releases that are measured one after the other differ by the drift of the machine between them. In a
series each round makes one launch of each release, within minutes, and reverses the order of the
releases: a drift that is linear cancels in two rounds. The first round's launches are cold.

A release takes part until its ratio is precise and each neighbour in the series is told apart from
it, or surely equal to it (`change.told`), at most for `TELLING_ROUNDS`. The series ends when no
release needs a round, or with its budget.

The folder of a series has all of its state: a journal of launches, and the compiled code. A killed
series goes on there. Nothing else is written or read, so a series may be measured anywhere.
"""

from __future__ import annotations

import hashlib
import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path

import msgspec

from ..analysis import change, statistics
from ..cell import METHOD, Cell, Launch, Measurement, Plan, Stopped
from ..host.files import append_line, read_lines
from .launches import judged, outcome_of
from .settings import (
    BUDGET_S,
    LAUNCH_LIMIT_S,
    MOST_LAUNCHES,
    MOST_REPEATS,
    PRECISION,
    Settings,
)

JOURNAL = "journal.jsonl"
CACHES = "caches"
# After so many rounds only a ratio that is not precise asks for more. On a quiet machine they find
# a compile 11 % dearer in every try, and twelve would take twice as long (evidence/README.md).
TELLING_ROUNDS = 6


class Series(msgspec.Struct, frozen=True):
    """What to measure, and for how long.

    - ``releases``: versions in the order of the history. Neighbours are compared.
    - ``rounds``: the number of rounds. None: ``precision`` (relative half-width of the ratio's
      interval), `change.SMALLEST_TOLD` and ``budget_s`` (seconds for each release) decide.
    - ``launch_limit_s``, ``repeats``, ``plan``: as in `settings.Settings`.
    """

    cell: Cell
    releases: tuple[str, ...]
    rounds: int | None = None
    precision: float = PRECISION
    budget_s: float = BUDGET_S
    launch_limit_s: float = LAUNCH_LIMIT_S
    repeats: int = MOST_REPEATS
    plan: Plan = Plan()
    method: int = METHOD

    @classmethod
    def of(cls, cell: Cell, releases: Sequence[str], settings: Settings) -> Series:
        """The series of a cell as the settings want it."""
        return cls(
            cell,
            tuple(releases),
            rounds=settings.launches,
            precision=settings.precision,
            budget_s=settings.budget_s,
            launch_limit_s=settings.launch_limit_s,
            repeats=settings.repeats,
            plan=settings.plan,
        )


def identity(series: Series, environment_name: str) -> str:
    """The name of the series' folder: the same cell and releases in the same environment."""
    key = msgspec.json.encode([environment_name, series.cell, series.releases])
    return hashlib.sha256(key).hexdigest()[:16]


def recorded(folder: Path) -> int:
    """The number of launches that the folder's journal has. Raises OSError."""
    return sum(line.launch is not None for line in read_lines(folder / JOURNAL, Line))


class Line(msgspec.Struct, omit_defaults=True):
    """A line of the journal: the beginning of the series, a launch, or the end of a round.

    ``taken_s``: seconds that the launch took, with its start.
    """

    begun: Series | None = None
    name: str = ""
    started_at: str = ""
    release: str = ""
    launch: Launch | None = None
    taken_s: float = 0.0
    ended: int = 0


# Makes a launch of a release: the version, the folder of the compilers' caches.
Make = Callable[[str, Path], Launch]
# Gets each launch as soon as it ends, with its release.
Watch = Callable[[str, Launch], None]


class _State:
    """The series so far, as the journal tells it."""

    def __init__(self, series: Series, folder: Path) -> None:
        self.series = series
        self._file = folder / JOURNAL
        self._caches = folder / CACHES
        self.launches: dict[str, list[Launch]] = {release: [] for release in series.releases}
        self.taken_s = dict.fromkeys(series.releases, 0.0)
        self.round = 0
        self.quiet_s: float | None = None
        lines = read_lines(self._file, Line)
        if lines and lines[0].begun == series:
            self.name, self.started_at = lines[0].name, lines[0].started_at
        else:
            shutil.rmtree(folder, ignore_errors=True)
            self.name = uuid.uuid4().hex
            self.started_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
            self._keep(Line(begun=series, name=self.name, started_at=self.started_at))
            lines = []
        whole = {line.ended for line in lines}
        for line in lines:
            if line.launch is None:
                continue
            launch = line.launch
            if launch.round not in whole:
                # An interruption may have lasted for hours: the launches of its round are no pairs.
                launch = msgspec.structs.replace(launch, round=0)
            self._add(line.release, launch, line.taken_s)
            self.round = max(self.round, line.launch.round)
        for release in series.releases:
            if not self.launches[release]:
                # A killed cold launch leaves half of its compiled code.
                shutil.rmtree(self.cache(release), ignore_errors=True)

    def cache(self, release: str) -> Path:
        """The folder of the release's compiled code."""
        return self._caches / release

    def keep(self, release: str, launch: Launch, taken_s: float) -> None:
        """Add a launch to the journal and to the state. Raises OSError."""
        self._keep(Line(release=release, launch=launch, taken_s=taken_s))
        self._add(release, launch, taken_s)

    def end_round(self) -> None:
        """Write that the round is complete. Raises OSError."""
        self._keep(Line(ended=self.round))

    def _add(self, release: str, launch: Launch, taken_s: float) -> None:
        self.launches[release].append(launch)
        self.taken_s[release] += taken_s
        self.quiet_s = statistics.quietest([launch], self.quiet_s)

    def _keep(self, line: Line) -> None:
        append_line(self._file, msgspec.json.encode(line))

    def failed(self, release: str) -> bool:
        """Whether a launch of the release failed: then the release takes no further part."""
        return any(not launch.outcome.ok for launch in self.launches[release])

    def count(self, release: str) -> int:
        """The number of the release's launches that count."""
        return len(statistics.counted(self.launches[release]))


def measure(
    series: Series, make: Make, folder: Path, watch: Watch = lambda _release, _launch: None
) -> dict[str, Measurement]:
    """Measure the series, or what an earlier call in this folder has left of it.

    Returns the measurement of each release. The caller stores them, then calls `discard`. Raises
    OSError if the journal cannot be written.
    """
    state = _State(series, folder)
    while wanting := _wanting(state):
        state.round += 1
        forward = state.round % 2 == 1
        for release in wanting if forward else reversed(wanting):
            _turn(state, release, make, watch)
        state.end_round()
    return {release: _measurement(state, release) for release in series.releases}


def discard(folder: Path) -> None:
    """Remove the folder of a series whose measurements are stored.

    The journal goes first: without it the rest is nothing, whenever a kill comes.
    """
    (folder / JOURNAL).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _turn(state: _State, release: str, make: Make, watch: Watch) -> None:
    """A launch of the release that counts, or a failure."""
    for _ in range(1 + state.series.repeats):
        begun = time.monotonic()
        made = make(release, state.cache(release))
        before = state.launches[release]
        quiet_s = statistics.quietest([made], state.quiet_s)
        made = judged(made, before, state.series.repeats, quiet_s)
        made = msgspec.structs.replace(made, series=state.name, round=state.round)
        state.keep(release, made, round(time.monotonic() - begun, 3))
        watch(release, made)
        if not made.disturbed:
            return


def _wanting(state: _State) -> list[str]:
    """The releases that need another round, in order; empty at the end of the series."""
    series = state.series
    present = [release for release in series.releases if not state.failed(release)]
    if series.rounds is not None:
        return [release for release in present if state.count(release) < series.rounds]
    least = [release for release in present if state.count(release) < statistics.FIRST_LOOK]
    if least:
        return present
    over = sum(state.taken_s.values()) >= series.budget_s * len(series.releases)
    if over:
        return []
    open_ = {release for release in present if not _precise(state, release)}
    if state.round < TELLING_ROUNDS:
        for before, after in pairwise(present):
            if not change.told(series.cell, state.launches[before], state.launches[after]):
                open_ |= {before, after}
    return [one for one in present if one in open_ and state.count(one) < MOST_LAUNCHES]


def _precise(state: _State, release: str) -> bool:
    return statistics.precise(state.launches[release], state.series.precision)


def _measurement(state: _State, release: str) -> Measurement:
    launches = state.launches[release]
    outcome = outcome_of(launches)
    stopped: Stopped = ""
    if outcome.ok:
        reached: Stopped = "precise" if _precise(state, release) else "budget"
        stopped = reached if state.series.rounds is None else "fixed"
    return Measurement(
        cell=state.series.cell,
        outcome=outcome,
        launches=launches,
        started_at=state.started_at,
        duration_s=round(state.taken_s[release], 3),
        stopped=stopped,
    )


def complete(measurements: Sequence[Measurement | None]) -> bool:
    """Whether these newest measurements of the releases need no new series.

    All are settled and of the newest method, and those with numbers come from one series.
    """
    known = [one for one in measurements if one is not None and one.outcome.settled]
    if len(known) < len(measurements):
        return False
    launches = [launch for one in known if one.outcome.ok for launch in one.launches]
    series = [{launch.series for launch in one.launches} for one in known if one.outcome.ok]
    common = set[str]().union(*series)
    return all(launch.method == METHOD for launch in launches) and (
        len(common) <= 1 and "" not in common
    )


def again(series: Series, newest: Mapping[str, Measurement | None]) -> Series | None:
    """The series with one launch of each release that failed, if all others are complete.

    ``newest``: the newest measurement of each release. A failure may last for ever, so the others
    are not measured anew until it is gone. None where the whole series has to be measured.
    """
    failed = [
        release for release, one in newest.items() if one is not None and not one.outcome.settled
    ]
    others = [one for release, one in newest.items() if release not in failed]
    if not failed or not complete(others):
        return None
    return msgspec.structs.replace(series, releases=tuple(failed), rounds=1)


def summary(measurements: Mapping[str, Measurement]) -> str:
    """The releases of a series in a line: time ratio, or outcome."""
    return ", ".join(
        f"{release} {statistics.measured_ratio(one.launches, one.sequential).value:.3f}"
        if one.outcome.ok
        else f"{release} {one.outcome.status.value}"
        for release, one in measurements.items()
    )

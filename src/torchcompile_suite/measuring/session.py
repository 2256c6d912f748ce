"""One ``asv run``'s measurements: starts launches, remembers what they found.

ASV calls each metric of each cell in a process of its own. The first to ask for a cell measures
it; the others find it in the session's folder, which ASV makes before the first and deletes after
the last, so nothing found there can be stale.

The settings come from the plugin through environment variables (``TORCHCOMPILE_SUITE_...``),
because ASV offers no other way from its process to a benchmark's.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from ..analysis import statistics
from ..cell import METHOD, OK, Cell, Launch, Measurement, Outcome, Status, Stopped
from ..errors import SuiteError
from ..host.files import write_atomically
from ..host.orphans import die_with_parent
from ..launch import progress
from ..modes import EAGER
from ..results import overlay_marker, records
from .launches import launcher, make_launch
from .settings import MOST_LAUNCHES, Settings

# A cold Inductor cache with its C++ sources, objects and precompiled headers.
NEEDED_FOR_CACHE_BYTES = 1 << 30
# Some hundred records.
NEEDED_FOR_RECORD_BYTES = 4 << 20


class SessionError(SuiteError):
    """The session cannot measure here; the message says what to change."""


def _unwatched(_cell: Cell, _launch: Launch) -> None:
    pass


class Session:
    """Measures cells, each at most once, remembering them in a folder."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        watch: Callable[[Cell, Launch], None] = _unwatched,
    ) -> None:
        """Remember in ``folder``; measure as ``settings`` say; tell ``watch`` of each launch as
        soon as it is done.
        """
        self.folder = folder
        self.settings = settings
        self._watch = watch
        self._quiet_s: float | None = None

    def measure(self, cell: Cell, earlier: Sequence[Launch] = ()) -> Measurement:
        """The cell's measurement on the session's device: remembered, reused from the record, or
        made now.

        ``earlier`` launches of an interrupted measurement count in it; what they compiled is gone,
        so the next one starts cold again. Raises SessionError when nothing can be measured here at
        all (a full disk, say). What goes wrong with the cell itself is the measurement's outcome.
        """
        cell = msgspec.structs.replace(cell, device=self.settings.device)
        remembered = self.folder / f"cell-{_digest(cell)}.json"
        try:
            return msgspec.json.decode(remembered.read_bytes(), type=Measurement)
        except (OSError, msgspec.DecodeError):
            pass
        measurement = self._recorded(cell)
        reused = measurement is not None
        try:
            if measurement is None:
                progress.started(str(cell))
                measurement = self._measure(cell, earlier)
                if self.settings.record is not None:
                    records.append(self.settings.record, measurement)
            write_atomically(remembered, msgspec.json.encode(measurement))
        except OSError as error:
            failure = SessionError(
                f"cannot write {error.filename or 'a file'}: {error.strerror}; mend it and go on "
                "with: asv run --skip-existing"
            )
            progress.failed(str(cell), failure)
            raise failure from error
        except SessionError as failure:
            progress.failed(str(cell), failure)
            raise
        progress.finished(str(cell), measurement, reused)
        return measurement

    def _recorded(self, cell: Cell) -> Measurement | None:
        if not self.settings.reuse or self.settings.record is None:
            return None
        found = records.newest(self.settings.record, cell)
        if found is None or not found.outcome.settled:
            return None
        if not found.outcome.ok:
            return found
        # A record of before the compiler was watched has no answer to half of the questions, and
        # one of another method none that can be compared with what is measured now.
        told = found.compiled is not None or cell.mode == EAGER
        current = all(launch.method == METHOD for launch in found.launches)
        return found if told and current and not self._slowed(found) else None

    def _slowed(self, found: Measurement) -> bool:
        """Whether a neighbour slowed it; never where disturbed launches are not made again."""
        slower = statistics.slowdown(found.launches, self._quietest())
        return self.settings.repeats > 0 and slower > statistics.MOST_SLOWDOWN

    def _quietest(self, *launches: Launch) -> float | None:
        """What the yardstick takes on this machine when it is quiet, as far as is known: of these
        launches, those before, and those in the machine's records.
        """
        if self._quiet_s is None and self.settings.record is not None:
            # Of this Python, because the yardstick is its zlib's work.
            self._quiet_s = statistics.quietest(
                launch
                for launch in records.launches(self.settings.record.parent)
                if launch.environment and launch.environment.python == platform.python_version()
            )
        self._quiet_s = statistics.quietest(launches, self._quiet_s)
        return self._quiet_s

    def _measure(self, cell: Cell, earlier: Sequence[Launch]) -> Measurement:
        started = datetime.now(timezone.utc).isoformat(timespec="seconds")
        overlay = overlay_marker.read()
        if overlay is not None and overlay.refused:
            return Measurement(cell, Outcome(Status.CRASH, overlay.refused), [], started, 0.0)
        # Asked before, because a measurement that cannot be kept is minutes lost.
        _need_disk(self.folder, NEEDED_FOR_CACHE_BYTES, "compiled code (TMPDIR)")
        if self.settings.record is not None:
            self.settings.record.parent.mkdir(parents=True, exist_ok=True)
            _need_disk(self.settings.record.parent, NEEDED_FOR_RECORD_BYTES, "results")
        # ASV may be killed while we measure: what we started must not run into its next run.
        die_with_parent()
        clock = time.monotonic()
        with tempfile.TemporaryDirectory(
            dir=self.folder, prefix="launch-", ignore_cleanup_errors=True
        ) as workspace:
            launches, stopped = self._launches(cell, earlier, Path(workspace))
        return Measurement(
            cell=cell,
            outcome=_outcome(launches),
            launches=launches,
            started_at=started,
            duration_s=round(time.monotonic() - clock, 3),
            stopped=stopped,
        )

    def _launches(
        self, cell: Cell, earlier: Sequence[Launch], workspace: Path
    ) -> tuple[list[Launch], Stopped]:
        launches = list(earlier)
        starter = launcher(cell)
        cache = workspace / "cache"
        deadline = time.monotonic() + self.settings.budget_s
        while not (stopped := self._stopped(launches, deadline)):
            made = make_launch(
                starter,
                cell,
                cache,
                workspace,
                plan=self.settings.plan,
                limit_s=self.settings.launch_limit_s,
            )
            made = set_aside(made, launches, self.settings.repeats, self._quietest(made))
            launches.append(made)
            self._watch(cell, made)
            progress.launched(str(cell), progress.launch_summary(made))
            if not made.outcome.ok:
                return launches, ""
        return launches, stopped

    def _stopped(self, launches: list[Launch], deadline: float) -> Stopped:
        """Why there need not be another launch, or the empty string."""
        count = len(statistics.counted(launches))
        if self.settings.launches is not None:
            return "fixed" if count >= self.settings.launches else ""
        if statistics.precise(launches, self.settings.precision):
            return "precise"
        over = count >= MOST_LAUNCHES or time.monotonic() > deadline
        return "budget" if over and count >= statistics.FIRST_LOOK else ""


def set_aside(
    launch: Launch, before: Sequence[Launch], repeats: int, quiet_s: float | None
) -> Launch:
    """The launch, set aside if it was disturbed and fewer than ``repeats`` ``before`` it were.

    ``quiet_s`` is the yardstick of a quiet hour (`statistics.disturbed`).
    """
    made_again = len(before) - len(statistics.counted(before))
    if made_again >= repeats or not launch.outcome.ok:
        return launch
    return msgspec.structs.replace(launch, disturbed=statistics.disturbed(launch, quiet_s))


def open_session(settings: Callable[[], Settings] = Settings.from_environment) -> Session:
    """The session of the current folder, which ASV makes for each run."""
    return Session(Path.cwd(), settings())


def _need_disk(folder: Path, needed_bytes: int, purpose: str) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise SessionError(
            f"the disk for {purpose} has only {free >> 20} MiB left; free at least "
            f"{needed_bytes >> 20} MiB and go on with: asv run --skip-existing"
        )


def _outcome(launches: list[Launch]) -> Outcome:
    """The whole is ok only if every launch was: a cell that fails one time in three is not."""
    for number, launch in enumerate(launches, 1):
        if not launch.outcome.ok:
            where = f"launch {number}: " if number > 1 else ""
            return Outcome(launch.outcome.status, where + launch.outcome.reason)
    return OK if launches else Outcome(Status.CRASH, "no launch was made")


def _digest(cell: Cell) -> str:
    return hashlib.sha256(msgspec.json.encode(cell)).hexdigest()[:32]

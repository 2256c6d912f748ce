"""The measurements of one ``asv run``: starts launches, and remembers the results.

ASV calls each metric of each cell in a process of its own. The first process measures the cell; the
others read the result from the session's folder. ASV makes this folder before the first process and
deletes it after the last one, so no result in it can be stale.
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
from ..cell import GENERATION, METHOD, Cell, Launch, Measurement, Outcome, Status, Stopped
from ..errors import SuiteError
from ..host.files import write_atomically
from ..host.orphans import die_with_parent
from ..launch import progress
from ..modes import EAGER
from ..results import descriptions, records
from . import generation
from .launches import judged, launcher, make_launch, outcome_of
from .processes import Launcher
from .progress import launch_line, measurement_line
from .settings import (
    MOST_LAUNCHES,
    NEEDED_FOR_CACHE_BYTES,
    NEEDED_FOR_RECORD_BYTES,
    Settings,
)

_CONTINUE = "continue with: asv run --skip-existing"


def _ignore(_cell: Cell, _launch: Launch) -> None:
    pass


class Session:
    """Measures cells, each at most once, and remembers the measurements in a folder."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        watch: Callable[[Cell, Launch], None] = _ignore,
        launcher: Callable[[Cell], Launcher] = launcher,
        caches: Path | None = None,
    ) -> None:
        """Remember measurements in ``folder``. ``watch`` gets each launch as soon as it ends.
        ``launcher`` returns the way to start a cell's launches. ``caches`` is a folder that keeps
        the compiled code: a cell that differs from an earlier one in its allocator only is then
        measured without a cold launch. None: each cell begins with a cold launch.
        """
        self.folder = folder
        self.settings = settings
        self._watch = watch
        self._launcher = launcher
        self._caches = caches
        self._quiet_s: float | None = None

    def measure(self, cell: Cell, earlier: Sequence[Launch] = ()) -> Measurement:
        """The cell's measurement on the session's device.

        It is remembered, reused from the record file, or made now. ``earlier`` launches of an
        interrupted measurement count. Their compiled code is gone, so the next launch is cold
        again. A fault of the cell itself is the measurement's outcome. Raises SuiteError if nothing
        can be measured here at all, for example because the disk is full.
        """
        cell = msgspec.structs.replace(cell, device=self.settings.device)
        file = self.folder / f"cell-{_digest(cell)}.json"
        try:
            return msgspec.json.decode(file.read_bytes(), type=Measurement)
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
            write_atomically(file, msgspec.json.encode(measurement))
        except OSError as error:
            failure = SuiteError(
                f"cannot write {error.filename or 'a file'}: {error.strerror}; correct this, then "
                f"{_CONTINUE}"
            )
            progress.failed(str(cell), failure)
            raise failure from error
        except SuiteError as failure:
            progress.failed(str(cell), failure)
            raise
        text = measurement_line(measurement)
        if reused:
            progress.finished(str(cell), f"{text} (measured before)")
        else:
            progress.finished(str(cell), text, measurement.duration_s)
        return measurement

    def _recorded(self, cell: Cell) -> Measurement | None:
        """The newest measurement in the record file, if it can be reused."""
        if self.settings.record is None or not (self.settings.reuse or self.settings.look_up):
            return None
        recorded = records.newest(self.settings.record, cell)
        if recorded is None or self.settings.look_up:
            return recorded
        if not recorded.outcome.settled:
            return None
        if not recorded.outcome.ok:
            return recorded
        if cell.target:
            generated = recorded.generated
            return recorded if generated and generated.generation == GENERATION else None
        # Records of the first versions lack what the compiler did. Records of another method cannot
        # be compared with new ones.
        complete = recorded.compiled is not None or cell.mode == EAGER or cell.start
        current = all(launch.method == METHOD for launch in recorded.launches)
        return recorded if complete and current and not self._slowed(recorded) else None

    def _slowed(self, measurement: Measurement) -> bool:
        """Whether a neighbour slowed it. Always False if disturbed launches are not repeated."""
        slower = statistics.slowdown(measurement.launches, self._quietest())
        return self.settings.repeats > 0 and slower > statistics.MOST_SLOWDOWN

    def _quietest(self, *launches: Launch) -> float | None:
        """Time of the calibration loop on the quiet machine, in seconds; None if not known.

        The shortest time of these launches, of those before, and of the machine's records.
        """
        if self._quiet_s is None and self.settings.record is not None:
            # Records of the same Python only: the loop is work of its zlib.
            self._quiet_s = statistics.quietest(
                launch
                for launch in records.launches(self.settings.record.parent)
                if launch.environment and launch.environment.python == platform.python_version()
            )
        self._quiet_s = statistics.quietest(launches, self._quiet_s)
        return self._quiet_s

    def _measure(self, cell: Cell, earlier: Sequence[Launch]) -> Measurement:
        started = datetime.now(timezone.utc).isoformat(timespec="seconds")
        overlay = descriptions.overlay()
        if overlay is not None and overlay.refused:
            return Measurement(cell, Outcome(Status.CRASH, overlay.refused), [], started, 0.0)
        self._need_disk()
        # If ASV is killed, this process must end too: its launches would disturb ASV's next run.
        die_with_parent()
        clock = time.monotonic()
        with tempfile.TemporaryDirectory(
            dir=self.folder, prefix="launch-", ignore_cleanup_errors=True
        ) as workspace:
            launches, stopped = self._launches(cell, earlier, Path(workspace))
        return Measurement(
            cell=cell,
            outcome=outcome_of(launches),
            launches=launches,
            started_at=started,
            duration_s=round(time.monotonic() - clock, 3),
            stopped=stopped,
        )

    def _launches(
        self, cell: Cell, earlier: Sequence[Launch], workspace: Path
    ) -> tuple[list[Launch], Stopped]:
        """All launches of the cell, and why there are no more; an empty reason after a failure."""
        if cell.target:
            launch = generation.launch(cell, self.settings.launch_limit_s)
            self._watch(cell, launch)
            return [launch], "fixed" if launch.outcome.ok else ""
        launches = list(earlier)
        starter = self._launcher(cell)
        cache = workspace / "cache"
        if self._caches is not None:
            cache = self._caches / _digest(msgspec.structs.replace(cell, allocator="system"))
        deadline = time.monotonic() + self.settings.budget_s
        while not (stopped := self._stopped(launches, deadline)):
            launch = make_launch(
                starter,
                cell,
                cache,
                workspace,
                plan=self.settings.plan,
                limit_s=self.settings.launch_limit_s,
            )
            quiet_s = self._quietest(launch)
            launch = judged(launch, launches, self.settings.repeats, quiet_s)
            launches.append(launch)
            self._watch(cell, launch)
            progress.launched(str(cell), launch_line(launch))
            if not launch.outcome.ok:
                return launches, ""
        return launches, stopped

    def _stopped(self, launches: list[Launch], deadline: float) -> Stopped:
        """Why no further launch is needed; empty if one is. ``deadline``: monotonic seconds."""
        count = len(statistics.counted(launches))
        if self.settings.launches is not None:
            return "fixed" if count >= self.settings.launches else ""
        if statistics.precise(launches, self.settings.precision):
            return "precise"
        over = count >= MOST_LAUNCHES or time.monotonic() > deadline
        return "budget" if over and count >= statistics.FIRST_LOOK else ""

    def _need_disk(self) -> None:
        """Raise SuiteError if the disk is nearly full: a measurement takes minutes."""
        need_free(self.folder, NEEDED_FOR_CACHE_BYTES, "compiled code (TMPDIR)")
        if self.settings.record is not None:
            self.settings.record.parent.mkdir(parents=True, exist_ok=True)
            need_free(self.settings.record.parent, NEEDED_FOR_RECORD_BYTES, "results")


def open_session(settings: Callable[[], Settings] = Settings.from_environment) -> Session:
    """The session of the current folder, which ASV makes for each run."""
    return Session(Path.cwd(), settings())


def need_free(folder: Path, needed_bytes: int, purpose: str, remedy: str = _CONTINUE) -> None:
    """Raise SuiteError if the folder's disk has less free space than that.

    ``remedy``: what to do when there is enough space.
    """
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise SuiteError(
            f"the disk for {purpose} has only {free >> 20} MiB left; free at least "
            f"{needed_bytes >> 20} MiB, then {remedy}"
        )


def _digest(cell: Cell) -> str:
    return hashlib.sha256(msgspec.json.encode(cell)).hexdigest()[:32]

"""The measurements of one ``asv run``: starts launches, and remembers the results.

ASV calls each metric of each cell in a process of its own. The first process measures the cell; the
others read the result from the session's folder. ASV makes this folder before the first process and
deletes it after the last one, so no result in it can be stale.
"""

from __future__ import annotations

import functools
import hashlib
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from ..analysis import statistics
from ..cell import GENERATION, METHOD, Cell, Launch, Measurement
from ..errors import SuiteError
from ..host.files import need_free, write_atomically
from ..host.orphans import die_with_parent
from ..launch import progress
from ..modes import EAGER
from ..results import overlay_marker, records
from . import launches, rounds
from .journal import Journal
from .processes import HERE
from .progress import launch_line, measurement_line
from .rounds import Refused
from .series import Series
from .settings import NEEDED_FOR_CACHE_BYTES, NEEDED_FOR_RECORD_BYTES, Settings

_CONTINUE = "continue with: asv run --skip-existing"
_HERE = functools.partial(launches.of_series, HERE)


class Session:
    """Measures cells, each at most once, and remembers the measurements in a folder."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        make: Callable[[Series, Path], Launch] = _HERE,
    ) -> None:
        """Remember measurements in ``folder``. ``make`` makes a launch of a series, with the folder
        of its compiled code.
        """
        self.folder = folder
        self.settings = settings
        self._make = make
        self._quiet_s: float | None = None

    def measure(self, cell: Cell) -> Measurement:
        """The cell's measurement on the session's device.

        It is remembered, reused from the record file, or made now. A fault of the cell itself is
        the measurement's outcome. Raises SuiteError if nothing can be measured here at all, for
        example because the disk is full.
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
                measurement = self._measure(cell)
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

    def _quietest(self) -> float | None:
        """Time of the calibration loop on the quiet machine, in seconds; None if not known.

        The shortest time of the launches so far, and of the machine's records.
        """
        if self._quiet_s is None and self.settings.record is not None:
            # Records of the same Python only: the loop is work of its zlib.
            self._quiet_s = statistics.quietest(
                launch
                for launch in records.launches(self.settings.record.parent)
                if launch.environment and launch.environment.python == platform.python_version()
            )
        return self._quiet_s

    def _measure(self, cell: Cell) -> Measurement:
        overlay = overlay_marker.read()
        self._need_disk()
        # If ASV is killed, this process must end too: its launches would disturb ASV's next run.
        die_with_parent()
        wanted = Series.of(cell, [""], self.settings)
        if cell.target:
            wanted = msgspec.structs.replace(wanted, rounds=1)

        def make(_: str, cache: Path) -> Launch:
            if overlay is not None and overlay.refused:
                raise Refused(overlay.refused)
            return self._make(wanted, cache)

        def watch(_: str, launch: Launch) -> None:
            progress.launched(str(cell), launch_line(launch))

        with tempfile.TemporaryDirectory(
            dir=self.folder, prefix="launch-", ignore_cleanup_errors=True
        ) as folder:
            journal = Journal(None, cell, Path(folder) / "cache")
            measured = rounds.measure(wanted, make, journal, watch, self._quietest())
        self._quiet_s = statistics.quietest((), self._quiet_s, journal.quiet_s)
        return measured[""]

    def _need_disk(self) -> None:
        """Raise SuiteError if the disk is nearly full: a measurement takes minutes."""
        need_free(self.folder, NEEDED_FOR_CACHE_BYTES, "compiled code (TMPDIR)", _CONTINUE)
        if self.settings.record is not None:
            self.settings.record.parent.mkdir(parents=True, exist_ok=True)
            need_free(self.settings.record.parent, NEEDED_FOR_RECORD_BYTES, "results", _CONTINUE)


def open_session(settings: Callable[[], Settings] = Settings.from_environment) -> Session:
    """The session of the current folder, which ASV makes for each run."""
    return Session(Path.cwd(), settings())


def _digest(cell: Cell) -> str:
    return hashlib.sha256(msgspec.json.encode(cell)).hexdigest()[:32]

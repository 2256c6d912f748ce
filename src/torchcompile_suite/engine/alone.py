"""Cells of one environment, one after the other: measured now, or reused from the records."""

from __future__ import annotations

import dataclasses
import functools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from ..analysis import statistics
from ..cell import Cell
from ..errors import SuiteError, cannot_write
from ..host import processors
from ..host.files import need_free
from ..measurement import METHOD, Launch, Measurement
from ..modes import EAGER
from ..results import records
from . import launches, processes, rounds
from .journal import Journal
from .launches import Refused
from .processes import Environment
from .series import Series
from .settings import NEEDED_FOR_CACHE_BYTES, NEEDED_FOR_RECORD_BYTES, Settings

_CONTINUE = "continue with: asv run --skip-existing"

Make = Callable[[Environment, Series, Path], Launch]


@dataclasses.dataclass
class Alone:
    """Measures cells with the torch of one environment, and records the measurements.

    ``record``: the file of the measurements. None: nothing is recorded or reused.
    """

    environment: Environment
    settings: Settings
    record: Path | None = None
    make: Make = launches.of_series
    _known_quiet_s: float | None = None
    # Whether no launch of the last cell was as fast as on the quiet machine.
    _always_slow: bool = False

    def recorded(self, cell: Cell) -> Measurement | None:
        """The newest measurement in the records, if it can be reused: it is settled and current."""
        recorded = records.newest(self.record, cell) if self.record else None
        if recorded is None or not recorded.outcome.settled:
            return None
        if not recorded.outcome.ok:
            return recorded
        if cell.target:
            return recorded if records.counted_alike(recorded) else None
        # Records of the first versions lack what the compiler did. Records of another method cannot
        # be compared with new ones.
        complete = recorded.compiled is not None or cell.mode == EAGER or cell.start or cell.divided
        current = all(launch.method == METHOD for launch in recorded.launches)
        return recorded if complete and current and not self._slowed(recorded) else None

    def _slowed(self, measurement: Measurement) -> bool:
        """Whether a neighbour slowed it. Always False if disturbed launches are not repeated."""
        slower = statistics.slowdown(measurement.launches, self._quiet_s)
        return self.settings.repeats > 0 and slower > statistics.MOST_SLOWDOWN

    @functools.cached_property
    def _recorded_quiet_s(self) -> float | None:
        if self.record is None:
            return None
        # Records of the same Python and the same threads only: the loop is work of Python's zlib on
        # each thread.
        try:
            version = processes.version(self.environment.python)
        except SuiteError:
            return None  # the launch says so
        asked, most = os.environ.get("OMP_NUM_THREADS"), len(processors.allowed())
        alike: dict[int, list[Launch]] = {}
        for launch in records.launches(self.record.parent):
            known = launch.environment
            if known is None or known.python != version or known.threads > most:
                continue
            if known.variables.get("OMP_NUM_THREADS") == asked:
                alike.setdefault(known.threads, []).append(launch)
        return statistics.quietest(alike[max(alike)]) if alike else None

    @property
    def _quiet_s(self) -> float | None:
        """Time of the calibration loop on the quiet machine, in seconds; None if not known.

        The shortest time of the launches so far, and of the machine's records.
        """
        return statistics.quietest((), self._known_quiet_s, self._recorded_quiet_s)

    def measure(self, cell: Cell, refused: str = "") -> Measurement:
        """Measure the cell and record it.

        ``refused``: why nothing can be measured in this environment; empty if it can. A fault of
        the cell itself is the measurement's outcome. Raises SuiteError if nothing can be measured
        here at all, for example because the disk is full.
        """
        series = Series.of(cell, [""], self.settings)

        def make(_: str, cache: Path) -> Launch:
            if refused:
                raise Refused(refused)
            return self.make(self.environment, series, cache)

        try:
            with tempfile.TemporaryDirectory(prefix="cell-", ignore_cleanup_errors=True) as folder:
                if not refused:
                    self._need_disk(Path(folder))
                journal = Journal(series.cell, Path(folder) / "cache")
                # A host can be slow for hours. Then to repeat launches takes time and changes none.
                quiet_s = None if refused or self._always_slow else self._quiet_s
                (measured,) = rounds.measure(series, make, journal, quiet_s=quiet_s).values()
            self._known_quiet_s = statistics.quietest((), self._known_quiet_s, journal.quiet_s)
            counted = statistics.undisturbed(measured.launches)
            self._always_slow = bool(counted) and all(
                statistics.slowdown([launch], self._quiet_s) > statistics.MOST_SLOWDOWN
                for launch in counted
            )
            if self.record is not None:
                records.append(self.record, measured)
        except OSError as error:
            raise cannot_write(error, "a file", f"correct this, then {_CONTINUE}") from error
        return measured

    def _need_disk(self, folder: Path) -> None:
        """Raise SuiteError if the disk is nearly full: a measurement takes minutes."""
        need_free(folder, NEEDED_FOR_CACHE_BYTES, "compiled code (TMPDIR)", _CONTINUE)
        if self.record is not None:
            self.record.parent.mkdir(parents=True, exist_ok=True)
            need_free(self.record.parent, NEEDED_FOR_RECORD_BYTES, "results", _CONTINUE)

"""``asv run --interleave-rounds``: the releases of a run measured in turns, cell by cell.

ASV repeats only benchmarks in rounds that ASV times itself. So the suite measures the series first,
as soon as ASV knows the commits and the cells. Then ASV runs as always: each benchmark looks its
value up, and the result files are those of a run of each release.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from asv.console import log
from filelock import FileLock, Timeout

from .. import matrix
from ..cell import Cell, Launch, Measurement
from ..errors import SuiteError
from ..measuring import series, side_by_side
from ..measuring.progress import launch_line
from ..measuring.series import Series
from ..measuring.settings import (
    LOOK_UP_VARIABLE,
    RESULTS_VARIABLE,
    Settings,
)
from ..measuring.side_by_side import AGAIN
from ..releases import ledger
from ..releases.catalogue import Release
from ..results import records
from .environment import ReleaseEnvironment
from .errors import user_errors
from .repository import of_releases

# Whether the run in progress measures in turns, and if so, whether it skips what is complete.
_in_turns: ContextVar[bool | None] = ContextVar("in_turns", default=None)


@contextmanager
def in_turns(skip_existing: bool) -> Iterator[None]:
    """While entered, `discovered` measures."""
    token = _in_turns.set(skip_existing)
    before = os.environ.get(LOOK_UP_VARIABLE)
    try:
        yield
    finally:
        _in_turns.reset(token)
        os.environ.pop(LOOK_UP_VARIABLE, None)
        if before is not None:
            os.environ[LOOK_UP_VARIABLE] = before


def discovered(
    conf: Any,
    repo: Any,
    environments: Sequence[ReleaseEnvironment],
    commits: Sequence[str],
    benchmarks: Any,
) -> None:
    """ASV has found the benchmarks of a run. Measures them, if the run is one in turns.

    Raises ASV's UserError.
    """
    skip_existing = _in_turns.get()
    if skip_existing is None:
        return
    with user_errors():
        if not of_releases(conf):
            raise SuiteError("--interleave-rounds measures releases; for commits: bisect")
        known = ledger.compute()[0]
        releases = {commit: known[commit] for commit in known if commit in commits}
        try:
            for environment in environments:
                _measure(conf, repo, environment, releases, benchmarks, skip_existing)
        except KeyboardInterrupt:
            raise SuiteError(f"interrupted; to continue, {AGAIN}") from None
    os.environ[LOOK_UP_VARIABLE] = "1"


def _measure(
    conf: Any,
    repo: Any,
    environment: ReleaseEnvironment,
    releases: Mapping[str, Release],
    benchmarks: Any,
    skip_existing: bool,
) -> None:
    """Measure all selected cells of the releases in one of ASV's environments."""
    machine_folder = Path(os.environ[RESULTS_VARIABLE])
    place = Path(conf.env_dir).absolute().parent / "series" / machine_folder.name
    pythons: dict[str, Path] = {}
    files: dict[str, Path] = {}
    for commit, release in releases.items():
        if not release.supports(environment.python):
            log.warning(
                f"PyTorch {release.version} has no wheels for Python {environment.python}: it is "
                "not measured beside the others"
            )
            continue
        environment.install_project(conf, repo, commit)
        pythons[release.version] = Path(environment.find_executable("python"))
        files[release.version] = records.path(machine_folder, commit, environment.name)
    settings = Settings.from_environment()
    cells = list(_cells(benchmarks, settings.device))
    with _alone(place):
        beside = _Beside(environment.name, place, pythons, files)
        for number, cell in enumerate(cells, 1):
            plan = Series.of(cell, list(pythons), settings)
            beside.complete(plan, f"series {number} of {len(cells)}: {cell}", skip_existing)


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Keep others from measuring series in this folder. Raises SuiteError if one does so now."""
    place.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(place / "lock", timeout=0):
            yield
    except Timeout:
        raise SuiteError(
            "another run measures releases in turns here; two at once would disturb each other: "
            "run the same command again when the other one has ended"
        ) from None


class _Beside(NamedTuple):
    """Releases beside each other, in one of ASV's environments.

    - ``environment``: its name. ``place``: the folder of the series.
    - ``pythons``: the Python of each release. ``files``: the journal of each.
    """

    environment: str
    place: Path
    pythons: Mapping[str, Path]
    files: Mapping[str, Path]

    def complete(self, plan: Series, head: str, skip_existing: bool) -> None:
        """Measure the series and store it; what is complete only without ``skip_existing``."""
        newest = {release: records.newest(file, plan.cell) for release, file in self.files.items()}
        if skip_existing and series.complete(list(newest.values())):
            log.info(f"{_now()} {head}: measured before")
            return
        if skip_existing and (again := series.again(plan, newest)):
            log.info(f"{_now()} {head}: {', '.join(again.releases)} failed before, again")
            measured = self._measured(again, head)
            mended = any(one.outcome.ok for one in measured.values())
            if not mended:
                self._store(measured, newest)
            series.discard(self._folder(again))
            if not mended:
                return
        log.info(f"{_now()} {head}: {', '.join(plan.releases)} in turns")
        measured = self._measured(plan, head)
        if measured == newest:
            # A run was killed after it had stored this series: the new one begins now.
            series.discard(self._folder(plan))
            measured = self._measured(plan, head)
        self._store(measured, newest)
        series.discard(self._folder(plan))

    def _folder(self, plan: Series) -> Path:
        return self.place / series.identity(plan, self.environment)

    def _measured(self, plan: Series, head: str) -> dict[str, Measurement]:
        """Measure the series, and print a line for each launch."""

        def watch(release: str, launch: Launch) -> None:
            log.info(f"{_now()} round {launch.round}, {release}: {launch_line(launch)}")

        try:
            measured = side_by_side.measure(self.pythons, plan, self._folder(plan), watch)
        except OSError as error:
            raise _cannot_write(error) from error
        log.info(f"{_now()} {head}: {series.summary(measured)} of eager's time")
        return measured

    def _store(
        self, measured: Mapping[str, Measurement], newest: Mapping[str, Measurement | None]
    ) -> None:
        """Append each measurement to its release's records, unless a killed run has done so."""
        for release, measurement in measured.items():
            if measurement != newest[release]:
                try:
                    records.append(self.files[release], measurement)
                except OSError as error:
                    raise _cannot_write(error) from error


def _cannot_write(error: OSError) -> SuiteError:
    return SuiteError(
        f"cannot write {error.filename or 'a file'}: {error.strerror}; correct this, then {AGAIN}"
    )


def _cells(benchmarks: Any, device: str) -> Iterator[Cell]:
    """The selected cells that are timed, each once: those of the published history first, in its
    order, because a machine may not stay for all of them; then the others, in ASV's order.

    What is generated for a target has no drift: ASV's own run generates it.
    """
    selection = benchmarks.benchmark_selection
    cells = (
        matrix.cell_at(name, index)
        for name in sorted(benchmarks)
        for index in selection[name] or ()
    )
    timed = dict.fromkeys(cell for cell in cells if cell is not None and not cell.target)
    places = {cell: place for place, cell in enumerate(matrix.SERIES)}
    for cell in sorted(timed, key=lambda cell: places.get(cell, len(places))):
        yield msgspec.structs.replace(cell, device=device)


def _now() -> str:
    return time.strftime("%H:%M:%S")

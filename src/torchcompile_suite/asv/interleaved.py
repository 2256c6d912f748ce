"""``asv run --interleave-rounds``: the releases of a run measured in turns, cell by cell.

ASV repeats only benchmarks in rounds that ASV times itself. So all series are measured before ASV
comes to the first release (`runner`). Then every value is recorded, and the result files are those
of a run of each release.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from asv.console import log

from .. import matrix
from ..cell import Cell
from ..engine import journal, rounds, series
from ..engine.processes import Environment, of_release
from ..engine.progress import launch_line
from ..engine.rounds import AGAIN
from ..engine.series import Series, conditions_here
from ..engine.settings import Settings
from ..errors import SuiteError, cannot_write
from ..host.files import held
from ..measurement import Launch, Measurement
from ..releases import environments, ledger
from ..results import records
from .environment import ReleaseEnvironment
from .repository import of_releases


def measure(
    conf: Any,
    env: ReleaseEnvironment,
    commits: Sequence[str],
    machine_folder: Path,
    cells: Sequence[Cell],
    skip_existing: bool,
) -> None:
    """Measure the cells on the releases of the commits, in one of ASV's environments.

    Raises SuiteError.
    """
    if not of_releases(conf):
        raise SuiteError("--interleave-rounds measures releases; for commits: bisect")
    place = Path(conf.env_dir).absolute().parent / "series" / machine_folder.name
    again = AGAIN
    if not skip_existing:
        again = (
            "run the same command again: the unfinished cell goes on, and asv run --skip-existing "
            "measures no complete one anew"
        )
    measured: dict[str, Environment] = {}
    files: dict[str, Path] = {}
    settings = Settings.from_environment()
    try:
        for commit, release in ledger.compute()[0].items():
            if commit not in commits:
                continue
            if not release.supports(env.python):
                log.warning(
                    f"PyTorch {release.version} has no wheels for Python {env.python}: it is not "
                    "measured beside the others"
                )
                continue
            python = environments.ready(release, env.python, say=log.info)
            measured[release.version] = of_release(python, env.env_vars)
            files[release.version] = records.path(machine_folder, commit, env.name)
        busy = (
            "another run measures releases in turns here; two at once would disturb each other: "
            "run the same command again when the other one has ended"
        )
        with held(place / "lock", busy):
            conditions = conditions_here(env.env_vars)
            beside = _Beside(env.name, place, measured, files, again)
            for number, cell in enumerate(in_order(cells), 1):
                plan = Series.of(cell, list(measured), settings)
                plan = msgspec.structs.replace(plan, conditions=conditions)
                beside.complete(plan, f"series {number} of {len(cells)}: {cell}", skip_existing)
    except KeyboardInterrupt:
        raise SuiteError(f"interrupted; to continue, {again}") from None
    except OSError as error:
        raise cannot_write(error, "a file", f"correct this, then {again}") from error


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    """The cells of the published history first, in its order, because a machine may not stay for
    all of them; then the others.
    """
    places = {cell: place for place, cell in enumerate(matrix.SERIES)}
    return sorted(cells, key=lambda cell: places.get(matrix.on_any_device(cell), len(places)))


class _Beside(NamedTuple):
    """Releases beside each other, in one of ASV's environments.

    - ``environment``: its name. ``place``: the folder of the series.
    - ``measured``: the environment of each release. ``files``: the journal of each.
    - ``again``: what the user does after an interruption.
    """

    environment: str
    place: Path
    measured: Mapping[str, Environment]
    files: Mapping[str, Path]
    again: str

    def complete(self, plan: Series, head: str, skip_existing: bool) -> None:
        """Measure the series and store it; what is complete only without ``skip_existing``."""
        newest = {release: records.newest(file, plan.cell) for release, file in self.files.items()}
        if skip_existing and series.complete(list(newest.values())):
            log.info(f"{_now()} {head}: measured before")
            return
        if skip_existing and (anew := series.again(plan, newest)):
            log.info(f"{_now()} {head}: {', '.join(anew.releases)} failed before, again")
            measured = self._measured(anew, head)
            mended = any(one.outcome.ok for one in measured.values())
            if not mended:
                self._store(measured, newest)
            journal.discard(self._folder(anew))
            if not mended:
                return
        log.info(f"{_now()} {head}: {', '.join(plan.releases)} in turns")
        measured = self._measured(plan, head)
        if measured == newest:
            # A run was killed after it had stored this series: the new one begins now.
            journal.discard(self._folder(plan))
            measured = self._measured(plan, head)
        self._store(measured, newest)
        journal.discard(self._folder(plan))

    def _folder(self, plan: Series) -> Path:
        return self.place / series.identity(plan, self.environment)

    def _measured(self, plan: Series, head: str) -> dict[str, Measurement]:
        """Measure the series, and print a line for each launch."""

        def watch(release: str, launch: Launch) -> None:
            log.info(f"{_now()} round {launch.round}, {release}: {launch_line(launch)}")

        known = journal.of_series(plan, self._folder(plan))
        measured = rounds.in_turns(plan, self.measured, known, watch, again=self.again)
        log.info(f"{_now()} {head}: {series.summary(measured)}")
        return measured

    def _store(
        self, measured: Mapping[str, Measurement], newest: Mapping[str, Measurement | None]
    ) -> None:
        """Append each measurement to its release's records, unless a killed run has done so."""
        for release, measurement in measured.items():
            if measurement != newest[release]:
                records.append(self.files[release], measurement)


def _now() -> str:
    return time.strftime("%H:%M:%S")

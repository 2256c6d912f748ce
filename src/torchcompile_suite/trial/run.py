"""Measures a trial with the torch of a Python, and keeps each launch at once."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from .. import workloads
from ..analysis import statistics
from ..cell import DEFAULT_HEAP, Cell
from ..engine import processes, rounds
from ..engine.journal import Journal, in_file
from ..engine.processes import Environment
from ..engine.progress import launch_line, measurement_line
from ..engine.series import Series, conditions_here
from ..engine.settings import Settings
from ..errors import SuiteError, cannot_write
from ..host.places import cache_folder
from ..launch import progress
from ..measurement import Launch, Measurement
from ..releases.catalogue import Release
from . import outline, plan, target
from .outline import Outline
from .plan import Trial, TrialError

_AGAIN = "repeat the same command with --resume"
# The workload file that registers the target.
GIVEN = Path(__file__).with_name("given.py")


class TrialResult(NamedTuple):
    """The result of a trial. An interrupted trial has the measurements made so far."""

    outline: Outline
    measurements: list[Measurement]
    interrupted: bool


def python_of(release: Release | None, device: str, say: Callable[[str], object]) -> Path:
    """The Python to measure: this one, or that of the release's environment, which is made now.

    ``device``: the kind that is to be measured. ``say``: as in `environments.ready`.

    Raises TrialError if this Python has no torch, and SuiteError if the release does not install.
    """
    if release is not None:
        # Imported here: only this needs more than the core of the package.
        from ..releases import environments

        return environments.ready(release, device=device, say=say)
    if importlib.util.find_spec("torch") is None:
        raise TrialError(
            "there is no torch beside the suite; install one, or name a release: --release v2.15"
        )
    return Path(sys.executable)


def run(
    trial: Trial,
    python: Path,
    hear: Callable[[progress.Event], None],
    *,
    resume: bool = False,
    variables: Mapping[str, str] | None = None,
    kept: Path | None = None,
) -> TrialResult:
    """Measure the trial in that Python.

    - ``hear``: gets every progress event.
    - ``resume``: the launches of an earlier run of the same question count.
    - ``variables``: further environment variables of the measuring processes.
    - ``kept``: the file for the results. Default: a file for this question in the user's cache.

    Ctrl-C ends the trial early. Raises TrialError if nothing can be measured, KeyboardInterrupt if
    nothing was measured before Ctrl-C, and SuiteError if that Python does not start.
    """
    processes.version(python)
    variables = variables or {}
    environment = Environment(python, {**target_variables(trial), **variables})
    known: list[tuple[Series, Journal]] = []
    interrupted = False
    with (
        progress.listening(hear),
        tempfile.TemporaryDirectory(prefix="try-", ignore_cleanup_errors=True) as caches,
    ):
        try:
            described = outline_of(trial, environment)
            if kept is None:
                name = trial.digest(str(python.resolve()), conditions_here(variables), described)
                kept = cache_folder() / "try" / f"{name}.jsonl"
            if not resume:
                kept.unlink(missing_ok=True)
            elif not kept.exists():
                raise TrialError(
                    "there are no earlier launches of this question with this code and this torch; "
                    "omit --resume"
                )
            known = _known(trial, described, kept, Path(caches))
            for series, journal in known:
                # A neighbour is seen by the quietest launch of all cells.
                quiet_s = statistics.quietest((), *(each.quiet_s for _, each in known))
                _measure(series, journal, environment, quiet_s)
        except KeyboardInterrupt:
            interrupted = True
        except OSError as error:
            raise cannot_write(error, "a file", f"correct this, then {_AGAIN}") from None
    measured = [one for each in known for one in rounds.results(*each).values()]
    if not measured:
        kept_before = "; the earlier launches are kept, and --resume goes on" if resume else ""
        raise KeyboardInterrupt(f"interrupted before anything was measured{kept_before}")
    return TrialResult(described, measured, interrupted)


def _known(
    trial: Trial, described: Outline, kept: Path, caches: Path
) -> list[tuple[Series, Journal]]:
    """The cells of the trial, with what is known of them. ``caches``: for the compiled code."""
    wanted = plan.cells(trial, described)
    known = []
    for cell in wanted:
        # Of two cells that differ in the allocator only, the second one needs no cold start.
        code = hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(cell, allocator="")))
        journal = in_file(kept, cell, caches / code.hexdigest()[:20], several=True)
        journal.forgive()
        series = _series(trial, cell, len(wanted))
        # Each run has the whole budget, so a second run improves the answer.
        series = msgspec.structs.replace(
            series,
            budget_s=series.budget_s + journal.taken_s[""],
            most_launches=series.most_launches + journal.count(""),
            repeats=series.repeats and series.repeats + journal.disturbed(""),
        )
        known.append((series, journal))
    return known


def _measure(
    series: Series, journal: Journal, environment: Environment, quiet_s: float | None
) -> None:
    """Measure a cell, and tell the progress. Raises OSError, and SuiteError on a full disk."""
    name = str(series.cell)
    progress.note("started", name)

    def watch(_: str, launch: Launch) -> None:
        progress.note("launched", name, launch_line(launch))

    try:
        (measured,) = rounds.in_turns(
            series, {"": environment}, journal, watch, quiet_s, _AGAIN
        ).values()
    except (OSError, SuiteError) as error:
        progress.note("finished", name, f"not measured: {error}")
        raise
    progress.note("finished", name, measurement_line(measured))


def target_variables(trial: Trial) -> dict[str, str]:
    """The variables that make the target a workload in the outline and in all launches.

    The user's own workload files are in the list, also those of packages that only this Python has.
    Raises WorkloadError as `workloads.files`.
    """
    files = workloads.listed_files()
    if trial.target is None:
        return {workloads.VARIABLE: files}
    return {
        **(target.variables() if trial.target.kind == "file" else {}),
        target.VARIABLE: msgspec.json.encode(trial.target).decode(),
        workloads.VARIABLE: os.pathsep.join(filter(None, (str(GIVEN), files))),
    }


def outline_of(trial: Trial, environment: Environment) -> Outline:
    """The outline of the trial's model. Raises TrialError if there is none."""
    order = outline.Order(trial.workload, trial.batch_sizes[0] if trial.batch_sizes else 1)
    limit_s = Settings.from_environment().launch_limit_s
    try:
        described = processes.asked(environment, outline.MODULE, order, limit_s, Outline)
    except SuiteError as error:
        raise TrialError(f"{trial.workload} cannot be built: {error}") from None
    if described.error:
        raise TrialError(described.error)
    progress.note("known", trial.workload, plan.headline(trial, described))
    if trial.device == "cpu" and described.gpu:
        text = f"the CPU is measured; torch can use a {described.gpu}, too: --device cuda"
        progress.note("known", trial.workload, text)
    return described


def _series(trial: Trial, cell: Cell, cells: int) -> Series:
    """How the cell is measured, if it is one of so many."""
    settings = Settings.from_environment()._replace(
        precision=trial.precision,
        budget_s=trial.budget_s if trial.total_s is None else trial.total_s / cells,
        launches=None,
    )
    if cell.allocator == DEFAULT_HEAP:
        settings = settings._replace(
            precision=max(settings.precision, plan.DEFAULT_HEAP_PRECISION),
            budget_s=min(settings.budget_s, plan.DEFAULT_HEAP_BUDGET_S),
        )
    return Series.of(cell, [""], settings)

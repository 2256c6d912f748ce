"""Starts a trial's worker in the Python that is asked about, and reads its results."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

import msgspec
import platformdirs

from .. import workloads
from ..cell import OK, Cell, Launch, Measurement
from ..host.files import read_lines
from ..launch import progress
from ..measuring import interpreter
from ..releases import environments
from ..releases.catalogue import Release
from . import script, target
from .outline import Outline
from .plan import Known, NotMeasured, Trial, TrialError
from .worker import Order

# The workload file that registers the target.
GIVEN = Path(__file__).with_name("given.py")


class TrialResult(NamedTuple):
    """The result of a trial. An interrupted trial has the measurements made so far."""

    outline: Outline
    measurements: list[Measurement]
    interrupted: bool


def python_of(release: Release | None, device: str) -> Path:
    """The Python to measure: this one, or that of the release's environment, which is made now.

    ``device``: the kind that is to be measured.

    Raises TrialError if this Python has no torch, and SuiteError if the release does not install.
    """
    if release is not None:
        return environments.ready(release, device=device)
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

    Ctrl-C ends the trial early. Raises TrialError if nothing can be measured, or if nothing was
    measured before Ctrl-C, and SuiteError if that Python does not start.
    """
    interpreter.need_start(python)
    kept = kept or _kept(trial, python)
    if not resume:
        kept.unlink(missing_ok=True)
    elif not kept.exists():
        raise TrialError("there are no earlier launches of this question; omit --resume")
    kept.parent.mkdir(parents=True, exist_ok=True)
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    order = msgspec.json.encode(Order(trial, str(kept)))
    interrupted = False
    with progress.listening(hear):
        try:
            completed = interpreter.ask(
                python,
                "torchcompile_suite.trial.worker",
                order,
                {**target_variables(trial), **(variables or {})},
            )
        except KeyboardInterrupt:
            interrupted = True
        else:
            if completed.status:
                raise TrialError(_reason(completed))
    return _result(read_lines(kept, Known), started, interrupted)


def _kept(trial: Trial, python: Path) -> Path:
    cache = platformdirs.user_cache_path("torchcompile-suite")
    return cache / "try" / f"{trial.digest(str(python.resolve()))}.jsonl"


def target_variables(trial: Trial) -> dict[str, str]:
    """The variables that make the target a workload in the worker and in all its launches.

    The user's own workload files stay in the list.
    """
    if trial.target is None:
        return {}
    files = (str(GIVEN), os.environ.get(workloads.VARIABLE, ""))
    return {
        **(script.variables() if trial.target.kind == "file" else {}),
        target.VARIABLE: msgspec.json.encode(trial.target).decode(),
        workloads.VARIABLE: os.pathsep.join(filter(None, files)),
    }


def _reason(completed: interpreter.Completed) -> str:
    """Why the worker failed, in one line."""
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.json.decode(completed.out, type=NotMeasured).error
    return f"the measuring process ended with status {completed.status}: {completed.last_line}"


def _result(lines: list[Known], started: str, interrupted: bool) -> TrialResult:
    outlines = [line.outline for line in lines if line.outline is not None]
    launches: dict[Cell, list[Launch]] = {}
    measured: dict[Cell, Measurement] = {}
    for line in lines:
        if line.cell is not None and line.launch is not None and line.launch.outcome.ok:
            launches.setdefault(line.cell, []).append(line.launch)
            # A launch after the measurement belongs to a newer run, which was interrupted.
            measured.pop(line.cell, None)
        if line.measurement is not None:
            measured[line.measurement.cell] = line.measurement
    # Ctrl-C does not depend on the results, so these cells have the interval of a fixed number of
    # launches.
    for cell in launches.keys() - measured.keys():
        measured[cell] = Measurement(cell, OK, launches[cell], started, 0.0, stopped="fixed")
    if not outlines or not measured:
        raise TrialError("interrupted before anything was measured")
    return TrialResult(outlines[-1], list(measured.values()), interrupted)

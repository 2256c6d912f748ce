"""Starts a trial's worker in the Python that is asked about, and keeps what it finds."""

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
from . import target
from .outline import Outline
from .plan import Known, Refused, Trial, TrialError
from .worker import Order

# The workload file that registers the target.
GIVEN = Path(__file__).with_name("given.py")


class Answer(NamedTuple):
    """What is known: of an interrupted trial, what was known when it ended."""

    outline: Outline
    measurements: list[Measurement]
    interrupted: bool


def python_of(release: Release | None) -> Path:
    """The Python to ask: this one, or that of the release's environment, which is made now.

    Raises TrialError where this one has no torch, and ReleaseError.
    """
    if release is not None:
        return environments.install(release, environments.SCRATCH)[0]
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
) -> Answer:
    """Measure the trial in that Python; ``hear`` is told of everything on the way.

    With ``resume``, what an earlier run of the same question found counts. Ctrl-C ends it early.
    Raises TrialError where nothing can be measured, or where nothing was when it was interrupted.
    """
    kept = _kept(trial, python)
    if not resume:
        kept.unlink(missing_ok=True)
    elif not kept.exists():
        raise TrialError("nothing is kept of this question; ask it without --resume")
    kept.parent.mkdir(parents=True, exist_ok=True)
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    order = msgspec.json.encode(Order(trial, str(kept)))
    interrupted = False
    with progress.listening(hear):
        try:
            said = interpreter.ask(
                python,
                "torchcompile_suite.trial.worker",
                order,
                {**_told(trial), **(variables or {})},
            )
        except KeyboardInterrupt:
            interrupted = True
        else:
            if said.status:
                raise TrialError(_reason(said))
    return _answer(read_lines(kept, Known), started, interrupted)


def _kept(trial: Trial, python: Path) -> Path:
    cache = platformdirs.user_cache_path("torchcompile-suite")
    return cache / "try" / f"{trial.digest(str(python.resolve()))}.jsonl"


def _told(trial: Trial) -> dict[str, str]:
    """The variables that make the target a workload in the worker and in its launches."""
    if trial.target is None:
        return {}
    files = (str(GIVEN), os.environ.get(workloads.VARIABLE, ""))
    return {
        target.VARIABLE: msgspec.json.encode(trial.target).decode(),
        workloads.VARIABLE: os.pathsep.join(filter(None, files)),
    }


def _reason(said: interpreter.Said) -> str:
    """Why the worker ended, in one line."""
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.json.decode(said.out, type=Refused).error
    return f"the measuring process ended with status {said.status}: {said.last_line}"


def _answer(lines: list[Known], started: str, interrupted: bool) -> Answer:
    outlines = [each.outline for each in lines if each.outline is not None]
    launches: dict[Cell, list[Launch]] = {}
    measured: dict[Cell, Measurement] = {}
    for each in lines:
        if each.cell is not None and each.launch is not None and each.launch.outcome.ok:
            launches.setdefault(each.cell, []).append(each.launch)
            measured.pop(each.cell, None)
        if each.measurement is not None:
            measured[each.measurement.cell] = each.measurement
    # Nobody looked at the numbers before pressing Ctrl-C, so their interval is that of a fixed
    # number of launches.
    for cell in launches.keys() - measured.keys():
        measured[cell] = Measurement(cell, OK, launches[cell], started, 0.0, stopped="fixed")
    if not outlines or not measured:
        raise TrialError("interrupted before anything was measured")
    return Answer(outlines[-1], list(measured.values()), interrupted)

"""Finds out where the time of a trial's call goes, in several processes one after the other."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..analysis import why
from ..analysis.why import Why
from ..attribution import Attribution
from ..cell import Cell
from ..engine import processes
from ..engine.processes import Environment
from ..engine.settings import Settings
from ..launch import attribute
from ..measurement import Outcome, Status
from . import plan
from .plan import Trial, TrialError
from .run import outline_of, target_variables

LAUNCHES = 3


class Wanted(NamedTuple):
    """One of two calls to compare: a trial with one cell, and the Python that makes it.

    ``name``: tells it from the other one.
    """

    trial: Trial
    python: Path
    name: str


def run(
    calls: Sequence[Wanted],
    launches: int,
    say: Callable[[str], object],
    variables: Mapping[str, str],
) -> tuple[list[Cell], Why]:
    """Where the time goes: of one call against eager, or of the second call against the first.

    - ``calls``: one or two. ``launches``: processes for each, in turns.
    - ``say``: gets a line for each. ``variables``: further environment variables of the processes.

    Raises TrialError with the reason if a call cannot be divided.
    """
    cells: list[Cell] = []
    environments = []
    for wanted in calls:
        environment = Environment(wanted.python, {**target_variables(wanted.trial), **variables})
        outlined = outline_of(wanted.trial, environment)
        say(plan.headline(wanted.trial, outlined))
        cells.append(plan.cells(wanted.trial, outlined)[0])
        environments.append(environment)
    found: list[list[Attribution]] = [[] for _ in calls]
    with tempfile.TemporaryDirectory(prefix="why-", ignore_cleanup_errors=True) as folder:
        for launch in range(1, launches + 1):
            for number, (wanted, cell) in enumerate(zip(calls, cells, strict=True)):
                cache = Path(folder, str(number))
                cache.mkdir(exist_ok=True)
                one = attribution(environments[number], cell, cache)
                name = f"{wanted.name}, launch {launch}" if len(calls) > 1 else f"launch {launch}"
                if not (one.outcome.ok and one.eager and one.mode):
                    raise TrialError(f"{cell}, {name}: {one.outcome}")
                say(
                    f"{name}: eager {one.eager.call_s * 1e3:.4g} ms, compiled "
                    f"{one.mode.call_s * 1e3:.4g} ms a call"
                )
                found[number].append(one)
    if len(calls) == 1:
        return cells, why.compiled_against_eager(found[0])
    return cells, why.compiled_against_compiled(found[0], found[1])


def attribution(environment: Environment, cell: Cell, cache: Path) -> Attribution:
    """What a new process finds out. Never raises for what the process does: see ``outcome``."""
    order = msgspec.json.encode(attribute.Order(cell, str(cache)))
    limit_s = Settings.from_environment().launch_limit_s
    data, reason = processes.asked(environment, attribute.MODULE, order, limit_s)
    if reason:
        return Attribution(Outcome(Status.CRASH, reason))
    return msgspec.json.decode(data, type=Attribution)

"""Finds out where the time of a trial's call goes, in several processes one after the other."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..analysis import why
from ..analysis.why import Why
from ..cell import Cell
from ..engine import launches
from ..engine.processes import Environment
from ..engine.progress import launch_line
from ..engine.series import Series
from ..engine.settings import Settings
from ..measurement import Launch
from . import plan
from .plan import Trial, TrialError
from .run import outline_of, target_variables


class Wanted(NamedTuple):
    """One of two calls to compare: a trial with one cell, and the Python that makes it.

    ``name``: tells it from the other one.
    """

    trial: Trial
    python: Path
    name: str

    def environment(self, variables: Mapping[str, str]) -> Environment:
        """The environment of the measuring processes, with further variables."""
        return Environment(self.python, {**target_variables(self.trial), **variables})


def run(
    calls: Sequence[Wanted],
    number: int,
    say: Callable[[str], object],
    variables: Mapping[str, str],
) -> tuple[list[Cell], list[Why]]:
    """Where the time goes: of one call against eager; or of the second call against the first, and
    the same of both in eager.

    - ``calls``: one or two. ``number``: launches of each, in turns.
    - ``say``: gets a line for each. ``variables``: further environment variables of the processes.

    Raises TrialError with the reason if a call cannot be divided.
    """
    cells: list[Cell] = []
    environments = []
    for wanted in calls:
        environment = wanted.environment(variables)
        outlined = outline_of(wanted.trial, environment)
        say(plan.headline(wanted.trial, outlined))
        cells.append(plan.cells(wanted.trial, outlined)[0])
        environments.append(environment)
    found: list[list[Launch]] = [[] for _ in calls]
    with tempfile.TemporaryDirectory(prefix="why-", ignore_cleanup_errors=True) as folder:
        for launch in range(1, number + 1):
            for at, (wanted, cell) in enumerate(zip(calls, cells, strict=True)):
                one = attributed(environments[at], cell, Path(folder, str(at)))
                name = f"{wanted.name}, launch {launch}" if len(calls) > 1 else f"launch {launch}"
                if not one.outcome.ok:
                    raise TrialError(f"{cell}, {name}: {one.outcome}")
                say(f"{name}: {launch_line(one)}")
                found[at].append(one)
    if len(calls) == 1:
        return cells, [why.compiled_against_eager(found[0])]
    before, after = found
    eager = why.call_against_call(before, after, "eager")
    return cells, [why.call_against_call(before, after), eager]


def attributed(environment: Environment, cell: Cell, cache: Path) -> Launch:
    """A launch that divides the calls of a timed cell. Raises `launches.Refused`."""
    divided = msgspec.structs.replace(cell, protocol="divided")
    series = Series.of(divided, [""], Settings.from_environment())
    return launches.of_series(environment, series, cache)

"""Writes what the compiler makes of a trial's cell to a folder: graphs, IR, code and guards."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from .. import targets
from ..cell import Cell
from ..engine import processes
from ..engine.launches import Generator
from ..engine.processes import Environment
from ..engine.settings import Settings
from ..errors import SuiteError
from ..launch.inspect import artefacts
from ..launch.messages import Order
from ..presentation.wording import plural
from . import generated, plan
from .plan import Trial
from .run import outline_of


def cell_of(trial: Trial, environment: Environment, target: targets.Target | None) -> Cell:
    """The one cell of the trial; with a target, that of its code. Raises TrialError."""
    if target is not None:
        (mode,) = trial.modes
        own = generated.own_batch(trial, environment)
        return next(cell for cell in generated.cells(trial, target, own) if cell.mode == mode)
    return plan.cells(trial, outline_of(trial, environment))[0]


def empty(folder: Path) -> None:
    """Make the folder. Raises SuiteError if it cannot be made or is not empty."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_empty = not any(folder.iterdir())
    except OSError as error:
        raise SuiteError(
            f"{folder} cannot be written: {error.strerror}; name another folder with --output"
        ) from None
    if not is_empty:
        raise SuiteError(f"{folder} is not empty; name another folder with --output")


def write(cell: Cell, environment: Environment, folder: Path) -> str:
    """Compile the cell with the torch of the environment and write its artefacts to the folder.

    Returns what was written, in words. Raises SuiteError.
    """
    limit_s = Settings.from_environment().launch_limit_s
    order = Order(cell, assemble=bool(cell.target), folder=str(folder.absolute()))
    if cell.target:
        with closing(Generator(environment, cell.target)) as generator:
            launch = generator.make(order, limit_s)
        made = launch.generated
        if made is None:
            raise SuiteError(f"{cell}: {launch.outcome.reason}")
        launches = plural(made.total("launches") or 0, "launch")
        return f"code of {plural(made.graphs or 0, 'graph')}, {launches}"
    try:
        written = processes.asked(environment, artefacts.MODULE, order, limit_s, artefacts.Written)
    except SuiteError as error:
        raise SuiteError(f"{cell}: {error}") from None
    if written.error:
        raise SuiteError(f"{cell}: {written.error}")
    kinds = ", ".join(written.kinds) or "no graph was compiled"
    return f"guards, graph breaks, {kinds}"

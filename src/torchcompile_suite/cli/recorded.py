"""What the commands share: the recorded results of the machine that they show."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import typer

from ..analysis import assembly, summaries, summary
from ..cell import Measurement
from ..errors import SuiteError
from ..host import machine
from ..presentation.wording import printable
from ..results import classes, machines, records
from ..results.machines import NoResultsError
from ..results.records import Problem, Record

RESULTS = Path("results")
MACHINE_HELP = "A folder of results/; else this machine, or the most complete one."


class ReportError(SuiteError):
    """There is nothing to report on. The message says what to measure."""


class Selection(NamedTuple):
    """The records of one machine."""

    machine: str
    records: list[Record]

    @property
    def versions(self) -> list[str]:
        """The releases that were measured, oldest first."""
        return sorted(
            {record.release for record in self.records if record.release}, key=summary.version_key
        )

    @property
    def device(self) -> str:
        """The kind of device that was measured."""
        return self.records[0].measurement.cell.device

    def measurements(self, version: str) -> list[Measurement]:
        """The measurements of one release."""
        return [record.measurement for record in self.records if record.release == version]


def read_records() -> list[Record]:
    """Every readable record under results/, without samples (`analysis.summaries`).

    Names unreadable files on standard error.
    """
    found = summaries.read(RESULTS)
    _name(found.problems)
    return found.records


def select(
    machine_name: str | None,
    versions: Sequence[str] = (),
    *,
    completeness_first: bool = False,
    every: bool = True,
) -> Selection:
    """The records of the machine that `machines.choose` chooses for those releases.

    Results of many machines take long to read. So the others are read only where neither the named
    machine nor this one decides, and one after another. Names unreadable files on standard error,
    and says there why it is another machine than this one. Raises NoResultsError.
    """
    here = machine.detect().machine
    choose = partial(
        machines.choose,
        releases=versions,
        here=here,
        named=machine_name,
        labels=[f"v{version}" for version in versions],
        completeness_first=completeness_first,
        every=every,
    )
    linked: list[Problem] = []
    folders = {folder.name: folder for folder in records.machine_folders(RESULTS, linked)}
    problems: list[Problem] = []
    found = _records(folders.get(machine_name or here), problems)
    try:
        choice = choose(machines.of_records(found))
    except NoResultsError:
        problems = linked
        values = []
        for folder in folders.values():
            values += machines.of_records(_records(folder, problems))
        choice = choose(values)
        found = _records(folders[choice.machine], [])
    finally:
        _name(problems)
    if choice.line:
        typer.echo(printable(choice.line), err=True)
    return Selection(choice.machine, found)


def assembled(selection: Selection, versions: Sequence[str]) -> Selection:
    """The selection with the results of other machines of its class.

    Each cell comes from one machine, the one that has it most completely (`assembly.assemble`).
    Says on standard error which machines take part, if there are several.
    """
    known = classes.of_machines(RESULTS, [])
    mine = known.get(selection.machine)
    problems: list[Problem] = []
    recorded = list(selection.records)
    for folder in records.machine_folders(RESULTS, []):
        if folder.name != selection.machine and known.get(folder.name, "") == mine:
            recorded += _records(folder, problems)
    _name(problems)
    asked = [record for record in recorded if not versions or record.release in versions]
    found = assembly.assemble(asked, versions)
    if len(found.machines) < 2:
        return selection._replace(records=found.records or selection.records)
    names = ", ".join(found.machines)
    typer.echo(
        printable(
            f"each cell from the machine of the class {mine} that has it most completely: {names}; "
            "--machine NAME shows one of them"
        ),
        err=True,
    )
    return Selection(names, found.records)


def _records(folder: Path | None, problems: list[Problem]) -> list[Record]:
    """The records of a machine's folder; none without a folder."""
    return summaries.read_machine(folder, problems) if folder is not None else []


def _name(problems: Sequence[Problem]) -> None:
    for problem in problems:
        typer.echo(printable(f"left out: {problem}"), err=True)

"""What the commands share: the recorded results of the machine that they show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import typer

from ..analysis import assembly, summaries, summary
from ..cell import Measurement
from ..errors import SuiteError
from ..host import machine
from ..presentation.wording import printable
from ..results import classes, machines, records

RESULTS = Path("results")
MACHINE_HELP = "A folder of results/; else this machine, or the most complete one."


class ReportError(SuiteError):
    """There is nothing to report on. The message says what to measure."""


class Selection(NamedTuple):
    """The records of one machine."""

    machine: str
    records: list[records.Record]

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


def read_results() -> records.Records:
    """Every readable record under results/, without samples (`analysis.summaries`).

    Names unreadable files on standard error.
    """
    content = summaries.read(RESULTS)
    for problem in content.problems:
        typer.echo(printable(f"left out: {problem}"), err=True)
    return content


def read_records() -> list[records.Record]:
    """The records of `read_results` that have times."""
    return read_results().records


def select(
    recorded: list[records.Record],
    machine_name: str | None,
    versions: Sequence[str] = (),
    *,
    completeness_first: bool = False,
    every: bool = True,
) -> Selection:
    """The records of the machine that `machines.choose` chooses for those releases.

    Says on standard error why, if it is another machine than this one. Raises NoResultsError.
    """
    choice = machines.choose(
        machines.of_records(recorded),
        versions,
        here=machine.detect().machine,
        named=machine_name,
        labels=[f"v{version}" for version in versions],
        completeness_first=completeness_first,
        every=every,
    )
    if choice.line:
        typer.echo(printable(choice.line), err=True)
    return Selection(
        choice.machine, [record for record in recorded if record.machine == choice.machine]
    )


def assembled(
    recorded: list[records.Record], selection: Selection, versions: Sequence[str]
) -> list[records.Record]:
    """The records of the selection, with those of other machines of its class.

    Each cell comes from one machine, the one that has it most completely (`assembly.assemble`).
    Says on standard error which machines take part, if there are several.
    """
    known = classes.of_machines(RESULTS, [])
    mine = known.get(selection.machine)
    same = {name for name, of_name in known.items() if of_name == mine} | {selection.machine}
    found = assembly.assemble(
        [
            record
            for record in recorded
            if record.machine in same and (not versions or record.release in versions)
        ],
        versions,
    )
    if len(found.machines) > 1:
        typer.echo(
            printable(
                f"each cell from the machine of the class {mine} that has it most completely: "
                f"{', '.join(found.machines)}; --machine NAME shows one of them"
            ),
            err=True,
        )
    return found.records

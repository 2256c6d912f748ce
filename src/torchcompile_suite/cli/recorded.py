"""What the commands share: the recorded results of the machine that they show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import typer

from ..analysis import summaries, summary
from ..cell import Measurement
from ..errors import SuiteError
from ..host import machine
from ..presentation.wording import printable
from ..results import machines, records

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


def read_records(machine_name: str | None = None) -> list[records.Record]:
    """Every readable record under results/, without samples (`analysis.summaries`).

    With the name of a machine that has records, only those are read: results of many machines take
    long. Names unreadable files on standard error.
    """
    content = _of_machine(machine_name) if machine_name else None
    content = content or summaries.read(RESULTS)
    for problem in content.problems:
        typer.echo(printable(f"left out: {problem}"), err=True)
    return content.records


def _of_machine(name: str) -> records.Records | None:
    """The records of one machine; None if it has none."""
    problems: list[records.Problem] = []
    for folder in records.machine_folders(RESULTS, []):
        if folder.name == name:
            found = summaries.read_machine(folder, problems)
            return records.Records(found, problems) if found else None
    return None


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

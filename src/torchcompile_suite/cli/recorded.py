"""What the commands share: the recorded results, and the machine and release they are about."""

from __future__ import annotations

from pathlib import Path

import typer

from ..cell import Measurement
from ..errors import SuiteError
from ..host import machine
from ..presentation.wording import printable
from ..results import records

RESULTS = Path("results")


class ReportError(SuiteError):
    """There is nothing to report on; the message says what to measure."""


def read_records() -> list[records.Record]:
    """Every readable record under results/. Names what is not readable on standard error."""
    found = records.read(RESULTS)
    for problem in found.problems:
        typer.echo(printable(f"left out: {problem}"), err=True)
    return found.records


def machine_of(found: list[records.Record], machine_name: str | None) -> str:
    """The folder of results/ to use. Raises ReportError where it has no results."""
    names = sorted({record.machine for record in found})
    here = machine_name or machine.detect().machine
    if here not in names and machine_name is None and len(names) == 1:
        here = names[0]
    if here not in names:
        known = ", ".join(names) or "none"
        raise ReportError(f"no results of machine {here!r} under {RESULTS}/; there are: {known}")
    return here


def measurements_of(
    found: list[records.Record], machine_name: str, version: str
) -> list[Measurement]:
    """The measurements of a machine and release."""
    return [
        record.measurement
        for record in found
        if record.machine == machine_name and record.release == version
    ]

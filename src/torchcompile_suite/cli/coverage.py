"""``torchcompile-suite coverage``: cells of the core that were measured, failed or are missing."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import matrix
from ..analysis import coverage
from ..analysis.coverage import Coverage
from ..cell import Measurement
from ..presentation import sheets, terminal
from ..presentation.terminal import console, one_line_errors
from ..presentation.wording import printable
from ..releases import catalogue
from .recorded import MACHINE_HELP, select


def coverage_command(
    releases: Annotated[
        list[str] | None, typer.Argument(help="Such as v2.4 v2.9; else all that were measured.")
    ] = None,
    machine_name: Annotated[str | None, typer.Option("--machine", help=MACHINE_HELP)] = None,
) -> None:
    """Count the cells of the core: measured, ended otherwise, missing. Exit with 1 at any gap.

    A gap is a cell that was not measured, or a number that is missing without a reason.
    """
    with one_line_errors():
        asked = [catalogue.find(name).version for name in releases or []]
        # The question is about completeness, so the method of the times comes second.
        selection = select(
            machine_name, asked, generated=True, completeness_first=True, every=False
        )
        covered = {
            version: _coverage(selection.measurements(version), selection.device)
            for version in asked or selection.versions
        }
        console().print(terminal.draw(sheets.coverage(covered)))
        gaps = sum(_list(version, one) for version, one in covered.items())
        typer.echo(f"unexplained gaps: {gaps}")
        if gaps:
            raise typer.Exit(1)


def _coverage(measurements: list[Measurement], device: str) -> Coverage:
    """The coverage of the core. Generated code belongs to it where there is any: releases that were
    measured before the suite generated code have none.
    """
    cells = matrix.core_cells()
    if any(measurement.cell.target for measurement in measurements):
        cells += matrix.core_generated()
    return coverage.coverage(measurements, cells, device)


def _list(version: str, covered: Coverage) -> int:
    """Print the cells that ended otherwise, and the gaps. Returns the number of gaps."""
    for measurement in covered.ended:
        outcome = measurement.outcome
        _print(f"{version}: {measurement.cell}: {outcome.status.value}: {outcome.reason}")
    gaps = [*(f"{cell}: not measured" for cell in covered.missing), *covered.unexplained]
    for gap in gaps:
        _print(f"{version}: {gap}")
    return len(gaps)


def _print(line: str) -> None:
    typer.echo(printable(line))

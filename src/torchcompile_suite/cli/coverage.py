"""``torchcompile-suite coverage``: the core's cells that were measured, failed or are missing."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import matrix
from ..analysis import coverage, summary
from ..presentation import sheets, terminal
from ..presentation.terminal import console, one_line_errors
from ..presentation.wording import printable
from ..releases import catalogue
from .recorded import machine_of, measurements_of, read_records


def coverage_command(
    releases: Annotated[
        list[str] | None, typer.Argument(help="Such as v2.4 v2.9; else all that were measured.")
    ] = None,
    machine_name: Annotated[
        str | None, typer.Option("--machine", help="A folder of results/; else this machine's.")
    ] = None,
) -> None:
    """Count the core's cells: measured, ended otherwise, missing. Exit with 1 at any gap.

    A gap is a cell that was not measured, or a number that is lacking without a reason.
    """
    with one_line_errors():
        found = read_records()
        here = machine_of(found, machine_name)
        mine = [record for record in found if record.machine == here]
        versions = [catalogue.find(name).version for name in releases or []] or sorted(
            {each.release for each in mine if each.release},
            key=summary.version_key,
        )
        cells = matrix.core_cells()
        device = mine[0].measurement.cell.device
        covered = {
            version: coverage.coverage(measurements_of(found, here, version), cells, device)
            for version in versions
        }
        out = console()
        out.print(terminal.draw(sheets.coverage(covered)))
        gaps = 0
        for version, each in covered.items():
            for measurement in each.ended:
                outcome = measurement.outcome
                _say(f"{version}: {measurement.cell}: {outcome.status.value}: {outcome.reason}")
            for what in (*(f"{cell}: not measured" for cell in each.missing), *each.unexplained):
                gaps += 1
                _say(f"{version}: {what}")
        typer.echo(f"unexplained gaps: {gaps}")
        if gaps:
            raise typer.Exit(1)


def _say(line: str) -> None:
    typer.echo(printable(line))

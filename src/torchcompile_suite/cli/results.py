"""``torchcompile-suite results``: merge results, and carry old ones over to the store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import SuiteError, cannot_write
from ..presentation.wording import printable
from ..results import sealing
from .options import Commands
from .recorded import RESULTS

app = typer.Typer(cls=Commands, help="The files of results/.", no_args_is_help=True)


@app.command()
def merge(
    target: Annotated[Path, typer.Argument(help="Destination folder, such as results.")],
    sources: Annotated[list[Path], typer.Argument(help="Other results, such as other/results.")],
) -> None:
    """Add the measurements of other results. The order makes no difference, nor does a repetition.

    A damaged file is named and left out, and so is another machine of the same name; then the exit
    status is 1. Example: torchcompile-suite results merge results ../other/results
    """
    left_out = 0
    for source in sources:
        if not source.is_dir():
            raise SuiteError(f"{source} is no folder")
        try:
            merged = sealing.merge(target, source)
        except OSError as error:
            remedy = "what was merged is whole, so correct this and merge again"
            raise cannot_write(error, target, remedy) from None
        for problem in merged.problems:
            typer.echo(printable(f"left out: {problem}"), err=True)
        typer.echo(printable(f"{source}: new files in {target}: {merged.added}"))
        left_out += len(merged.problems)
    if left_out:
        raise typer.Exit(1)


@app.command()
def carry_over() -> None:
    """Carry results of older versions over to the store, once; also what a killed run left.

    Records become segments, which never change. What cannot be carried over stays and is named.
    Example: torchcompile-suite results carry-over
    """
    if not RESULTS.is_dir():
        raise SuiteError(f"no {RESULTS} here; run this in a clone of torchcompile-suite")
    try:
        measurements, sealed = sealing.carry_over(RESULTS)
    except OSError as error:
        remedy = "nothing is lost: correct this and run it again"
        raise cannot_write(error, RESULTS, remedy) from None
    for problem in sealed.problems:
        typer.echo(printable(f"stays: {problem}"), err=True)
    typer.echo(f"{measurements} measurements in {RESULTS}; new segments: {len(sealed.segments)}")

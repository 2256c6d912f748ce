"""``torchcompile-suite results``: merge results, and carry old ones over to the store."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import SuiteError, cannot_write
from ..presentation.wording import printable
from ..results import sealing
from .app import Commands
from .options import PATH
from .recorded import RESULTS

app = Commands("results", help="The files of results/.")


@app.command()
@click.argument("target", type=PATH, help="Destination folder, such as results.")
@click.argument(
    "sources", nargs=-1, required=True, type=PATH, help="Other results, such as other/results."
)
def merge(target: Path, sources: tuple[Path, ...]) -> None:
    """Add the measurements of other results, in any order, also more than once.

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
            click.echo(printable(f"left out: {problem}"), err=True)
        click.echo(printable(f"{source}: new files in {target}: {merged.added}"))
        left_out += len(merged.problems)
    if left_out:
        raise SystemExit(1)


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
        click.echo(printable(f"stays: {problem}"), err=True)
    click.echo(f"measurements in {RESULTS}: {measurements}; new segments: {len(sealed.segments)}")

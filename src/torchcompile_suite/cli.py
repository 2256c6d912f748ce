"""``torchcompile-suite``: what ASV's own commands do not answer."""

from __future__ import annotations

import os
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer

from . import __version__, bench, machine, records, report
from .findings import summary
from .modes import MODES
from .releases import catalogue
from .releases.cli import app as releases_app
from .terminal import console, one_line_errors, printable

app = typer.Typer(
    help="Does torch.compile pay, on this hardware, for this model, in this mode, since when?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(releases_app, name="releases")

RESULTS = Path("results")


@app.callback(invoke_without_command=True)
def _main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command("bench")
def bench_command(
    releases: Annotated[
        list[str] | None, typer.Argument(help="Such as v2.4 v2.9; the newest when none is named.")
    ] = None,
) -> None:
    """Measure a quick selection of cells, publish the site and print the result.

    Example: torchcompile-suite bench v2.4 v2.9
    """
    with one_line_errors():
        # To the second, as records say it; results that came with the clone are not this run's.
        began = datetime.now(timezone.utc).isoformat(timespec="seconds")
        measured = bench.run(releases or [])
        print()
        versions = [release.version for release in measured]
        _print_report(versions, machine.detect().machine, since=began)
        # Whoever ran this through nox has no asv on the PATH.
        asv = os.path.relpath(Path(sys.executable).with_name("asv"))
        typer.echo(f"\nRaw records: {RESULTS}/{machine.detect().machine}/*{records.SUFFIX}")
        typer.echo(f"To open the history site: {asv} preview")


@app.command("report")
def report_command(
    releases: Annotated[
        list[str] | None, typer.Argument(help="Such as v2.9; all when none is named.")
    ] = None,
    machine_name: Annotated[
        str | None, typer.Option("--machine", help="Only this folder of results/.")
    ] = None,
) -> None:
    """Print what was measured: times, ratio with interval, compile cost, calls to break even.

    Example: torchcompile-suite report v2.9
    """
    with one_line_errors():
        wanted = [catalogue.find(name).version for name in releases or []]
        _print_report(wanted, machine_name)


def _print_report(versions: list[str], machine_name: str | None, since: str = "") -> None:
    found = records.read(RESULTS)
    for problem in found.problems:
        typer.echo(printable(f"left out: {problem}"), err=True)
    rows = [
        row
        for row in summary.rows(
            (record for record in found.records if record.measurement.started_at >= since), MODES
        )
        if (not versions or row.release in versions)
        and (machine_name is None or row.machine == machine_name)
    ]
    if not rows:
        raise bench.BenchError("nothing was measured yet; start with: nox -s bench")
    out = console()
    out.print(report.table(rows))
    out.print(
        "ratio: time in the mode over time in eager, below 1 is a gain; [95 % interval over "
        "launches].\ncompile s: lost to calls that compiled, nothing cached; warm s: with "
        "Inductor's disk cache.",
        style="dim",
        highlight=False,
    )

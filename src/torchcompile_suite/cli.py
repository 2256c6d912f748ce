"""``torchcompile-suite``: what ASV's own commands do not answer."""

from __future__ import annotations

import os
import sys
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from . import __version__, bench, machine, records, report
from .findings import change, summary
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
        here = machine.detect().machine
        found = [record for record in _records() if record.measurement.started_at >= began]
        _print_report(found, versions, here, Format.TABLE)
        if len(versions) == 2:
            comparison = _compare(found, versions[0], versions[1], here)
            _print_comparison(comparison, Format.TABLE, everything=True)
        # Whoever ran this through nox has no asv on the PATH.
        asv = os.path.relpath(Path(sys.executable).with_name("asv"))
        typer.echo(f"\nRaw records: {RESULTS}/{here}/*{records.SUFFIX}")
        typer.echo(f"To open the history site: {asv} preview")


class Format(str, Enum):
    """How a report is written."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"


@app.command("report")
def report_command(
    releases: Annotated[
        list[str] | None,
        typer.Argument(help="Two, such as v2.4 v2.9, are compared; all are shown without any."),
    ] = None,
    machine_name: Annotated[
        str | None,
        typer.Option("--machine", help="Only this folder of results/; this machine to compare."),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TABLE,
    everything: Annotated[
        bool, typer.Option("--all", help="Of a comparison, the unchanged cells too.")
    ] = False,
    fail_on_regression: Annotated[
        bool, typer.Option("--fail-on-regression", help="Exit with 1 if anything got worse.")
    ] = False,
) -> None:
    """Print what was measured, or what changed from one release to another beyond noise.

    Examples: torchcompile-suite report v2.9; torchcompile-suite report v2.4 v2.9 --format markdown
    """
    with one_line_errors():
        wanted = [catalogue.find(name).version for name in releases or []]
        if len(wanted) == 2:
            comparison = _compare(_records(), wanted[0], wanted[1], machine_name)
            _print_comparison(comparison, form, everything)
            if fail_on_regression and comparison.regressions:
                raise typer.Exit(1)
        elif fail_on_regression:
            raise bench.BenchError("--fail-on-regression needs two releases, such as v2.4 v2.9")
        else:
            _print_report(_records(), wanted, machine_name, form)


def _records() -> list[records.Record]:
    found = records.read(RESULTS)
    for problem in found.problems:
        typer.echo(printable(f"left out: {problem}"), err=True)
    return found.records


def _compare(
    found: list[records.Record], before: str, after: str, machine_name: str | None
) -> change.Comparison:
    """Two releases by version, on the named machine, or this one, or the only one there is."""
    names = sorted({record.machine for record in found})
    here = machine_name or machine.detect().machine
    if here not in names and machine_name is None and len(names) == 1:
        here = names[0]
    if here not in names:
        known = ", ".join(names) or "none"
        raise change.ChangeError(
            f"no results of machine {here!r} under {RESULTS}/; there are: {known}"
        )
    sides = [
        (
            version,
            [
                record.measurement
                for record in found
                if record.machine == here and summary.release(record.measurement) == version
            ],
        )
        for version in (before, after)
    ]
    return change.compare(here, sides[0], sides[1])


def _print_comparison(comparison: change.Comparison, form: Format, everything: bool) -> None:
    if form is Format.JSON:
        typer.echo(report.comparison_json(comparison))
        return
    sheets = [
        sheet
        for sheet in (
            report.changed(comparison, everything),
            report.gaps(comparison),
            report.means(comparison),
        )
        if sheet.lines
    ]
    explained = (
        "Below 1 is better. worse, better: beyond noise, false discoveries held at "
        f"{change.FALSE_DISCOVERY_RATE:.0%} over all figures; not changed: surely within "
        f"{change.MARGIN:.0%}; time ratio: compiled over eager."
    )
    if form is Format.MARKDOWN:
        typer.echo(report.judgement(comparison) + "\n")
        for sheet in sheets:
            typer.echo(report.markdown(sheet) + "\n")
        typer.echo(explained)
        return
    out = console()
    out.print(report.judgement(comparison), highlight=False, markup=False)
    for sheet in sheets:
        out.print(report.draw(sheet))
    out.print(explained, style="dim", highlight=False, markup=False)


def _print_report(
    found: list[records.Record], versions: list[str], machine_name: str | None, form: Format
) -> None:
    rows = [
        row
        for row in summary.rows(found, MODES)
        if (not versions or row.release in versions)
        and (machine_name is None or row.machine == machine_name)
    ]
    if not rows:
        raise bench.BenchError("nothing was measured yet; start with: nox -s bench")
    if form is Format.JSON:
        typer.echo(report.rows_json(rows))
        return
    sheet = report.measured(rows)
    explained = (
        "ratio: time in the mode over time in eager, below 1 is a gain; [95 % interval over "
        "launches].\ncompile s: lost to calls that compiled, nothing cached; warm s: with "
        "Inductor's disk cache."
    )
    if form is Format.MARKDOWN:
        typer.echo(report.markdown(sheet) + "\n\n" + explained)
        return
    out = console()
    out.print(report.draw(sheet))
    out.print(explained, style="dim", highlight=False, markup=False)

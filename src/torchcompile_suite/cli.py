"""``torchcompile-suite``: what ASV's own commands do not answer."""

from __future__ import annotations

import os
import sys
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from . import __version__, bench, machine, matrix, opening, records, report, series, workloads
from .cell import Cell, Measurement
from .commits.command import bisect_command
from .doctor.command import doctor_command
from .errors import SuiteError
from .findings import change, claims, coverage, summary
from .modes import MODES
from .releases import catalogue
from .releases.cli import app as releases_app
from .terminal import console, one_line_errors, printable
from .trial.command import try_command

app = typer.Typer(
    help="Does torch.compile pay, on this hardware, for this model, in this mode, since when?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(releases_app, name="releases")
app.command("try")(try_command)
app.command("doctor")(doctor_command)
app.command("bisect")(bisect_command)

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


@app.command("history")
def history_command(
    releases: Annotated[
        list[str] | None,
        typer.Argument(help="Such as v2.4 v2.9; else the newest patch of every minor release."),
    ] = None,
) -> None:
    """Measure the cells of the published history with many releases; goes on where it stopped.

    Before that an anchor cell is measured again, and held against its first measurement: a series
    comes from one machine. Some ten minutes a release.
    """
    with one_line_errors():
        measured = series.run(releases or [], RESULTS)
        versions = ", ".join(release.version for release in measured)
        typer.echo(f"\nmeasured, or measured before: {versions}. To see it: nox -s site")


class ReportError(SuiteError):
    """There is nothing to report on; the message says what to measure."""


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
            raise ReportError("--fail-on-regression needs two releases, such as v2.4 v2.9")
        else:
            _print_report(_records(), wanted, machine_name, form)


@app.command("claims")
def claims_command(
    machine_name: Annotated[
        str | None,
        typer.Option("--machine", help="A folder of results/; else this machine's."),
    ] = None,
    release: Annotated[
        str | None, typer.Option("--release", help="Such as v2.9; else the newest measured.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A list of objects.")] = False,
) -> None:
    """Judge what documents claim about torch.compile by this machine's recorded results.

    Examples: torchcompile-suite claims; torchcompile-suite claims --release v2.4 --json
    """
    with one_line_errors():
        found = _records()
        here = _machine(found, machine_name)
        version = (
            catalogue.find(release).version
            if release
            else max(
                (each.release for each in found if each.machine == here),
                key=summary.version_key,
            )
        )
        measurements = _measurements(found, here, version)
        if not measurements:
            raise ReportError(
                f"nothing of {version} was measured on {here}; try: asv run v{version}^!"
            )
        device = measurements[0].cell.device
        judged = claims.judge(measurements, device)
        if as_json:
            typer.echo(report.claims_json(judged))
            return
        out = console()
        out.print(
            printable(f"PyTorch {version} on {here} ({device})"), highlight=False, markup=False
        )
        out.print(report.draw(report.claims(judged)))


@app.command("coverage")
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
        found = _records()
        here = _machine(found, machine_name)
        mine = [record for record in found if record.machine == here]
        versions = [catalogue.find(name).version for name in releases or []] or sorted(
            {each.release for each in mine if each.release},
            key=summary.version_key,
        )
        cells = matrix.core_cells()
        device = mine[0].measurement.cell.device
        covered = {
            version: coverage.coverage(_measurements(found, here, version), cells, device)
            for version in versions
        }
        out = console()
        out.print(report.draw(report.coverage(covered)))
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


@app.command("open")
def open_command(
    workload: Annotated[str, typer.Argument(help="Such as softmax_matmul.")],
    batch_size: Annotated[int, typer.Option("--batch-size", min=1)] = 1,
    mode: Annotated[str, typer.Option("--mode", help="A mode of torch.compile.")] = "default",
    release: Annotated[
        str | None, typer.Option("--release", help="Such as v2.9; else the newest.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="An empty folder, or none yet.")
    ] = None,
) -> None:
    """Write a compile's FX graphs, IR, generated code, guards and graph breaks to a folder.

    Its index.md says which kernel came from which source line.
    Example: torchcompile-suite open softmax_matmul --mode max-autotune --release v2.4
    """
    with one_line_errors():
        workloads.get(workload)
        if mode not in matrix.COMPILED:
            raise opening.OpenError(f"no mode {mode!r}; there are: {', '.join(matrix.COMPILED)}")
        chosen = catalogue.find(release) if release else catalogue.read()[-1]
        folder = output or Path(f"open-{workload}-{batch_size}-{mode}-{chosen.version}")
        cell = Cell(workload, batch_size, mode, device=machine.device_kind())
        kinds = opening.open_cell(cell, chosen, folder)
        typer.echo(f"{folder}/index.md: guards, graph breaks, {kinds}")


def _records() -> list[records.Record]:
    found = records.read(RESULTS)
    for problem in found.problems:
        typer.echo(printable(f"left out: {problem}"), err=True)
    return found.records


def _compare(
    found: list[records.Record], before: str, after: str, machine_name: str | None
) -> change.Comparison:
    """Two releases by version, on the named machine, or this one, or the only one there is."""
    here = _machine(found, machine_name)
    sides = (
        change.Side(version, _measurements(found, here, version)) for version in (before, after)
    )
    return change.compare(here, *sides)


def _machine(found: list[records.Record], machine_name: str | None) -> str:
    names = sorted({record.machine for record in found})
    here = machine_name or machine.detect().machine
    if here not in names and machine_name is None and len(names) == 1:
        here = names[0]
    if here not in names:
        known = ", ".join(names) or "none"
        raise ReportError(f"no results of machine {here!r} under {RESULTS}/; there are: {known}")
    return here


def _measurements(
    found: list[records.Record], machine_name: str, version: str
) -> list[Measurement]:
    return [
        record.measurement
        for record in found
        if record.machine == machine_name and record.release == version
    ]


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
        typer.echo(printable(report.judgement(comparison)) + "\n")
        for sheet in sheets:
            typer.echo(report.markdown(sheet) + "\n")
        typer.echo(explained)
        return
    out = console()
    out.print(printable(report.judgement(comparison)), highlight=False, markup=False)
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
        raise ReportError("nothing was measured yet; start with: nox -s bench")
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

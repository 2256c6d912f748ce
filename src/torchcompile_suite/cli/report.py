"""``torchcompile-suite report``: what was measured, and what changed between two releases."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from ..analysis import change, summary
from ..analysis.ends import REMEDY, Ends, both_ends
from ..cell import Measurement
from ..modes import MODES
from ..presentation import documents, markdown, sheets, terminal, wording
from ..presentation.terminal import console, one_line_errors
from ..presentation.wording import printable
from ..releases import catalogue
from ..results.records import Record
from .recorded import MACHINE_HELP, ReportError, Selection, assembled, read_records, select


class Format(str, Enum):
    """How a report is written."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"


def report_command(
    releases: Annotated[
        list[str] | None,
        typer.Argument(help="One is shown; two, such as v2.4 v2.9, are compared. Default: all."),
    ] = None,
    machine_name: Annotated[str | None, typer.Option("--machine", help=MACHINE_HELP)] = None,
    form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TABLE,
    everything: Annotated[
        bool, typer.Option("--all", help="In a comparison, show unchanged cells, too.")
    ] = False,
    fail_on_regression: Annotated[
        bool, typer.Option("--fail-on-regression", help="Exit with 1 if anything got worse.")
    ] = False,
) -> None:
    """Print what was measured, or what changed from one release to another beyond noise.

    Without releases and --machine it prints all results of all machines.

    Examples: torchcompile-suite report v2.9; torchcompile-suite report v2.4 v2.9 --format markdown
    """
    with one_line_errors():
        wanted = [catalogue.find(name).version for name in releases or []]
        if len(wanted) == 2:
            comparison = compare_releases(_chosen(machine_name, wanted, every=True), *wanted)
            print_comparison(comparison, form, everything)
            if fail_on_regression and comparison.regressions:
                raise typer.Exit(1)
        elif fail_on_regression:
            raise ReportError("--fail-on-regression needs two releases, such as v2.4 v2.9")
        elif wanted or machine_name:
            selection = _chosen(machine_name, wanted, every=False)
            print_report(selection.records, wanted, form, selection.machine)
        else:
            print_report(read_records(), wanted, form)


def _chosen(machine_name: str | None, versions: list[str], *, every: bool) -> Selection:
    """The named machine, or the chosen one with the others of its class."""
    selection = select(machine_name, versions, every=every)
    return selection if machine_name else assembled(selection, versions)


def compare_releases(selection: Selection, before: str, after: str) -> change.Comparison:
    """Compare two versions on each machine of the selection. Raises ChangeError."""
    of_machine: dict[str, list[Record]] = {}
    for record in selection.records:
        of_machine.setdefault(record.machine, []).append(record)
    of_machine = of_machine or {selection.machine: []}
    return change.compare_machines(
        {name: (_side(mine, before), _side(mine, after)) for name, mine in of_machine.items()}
    )


def _side(records: list[Record], version: str) -> change.Side:
    measured = [record.measurement for record in records if record.release == version]
    return change.Side(version, measured)


def print_comparison(comparison: change.Comparison, form: Format, everything: bool) -> None:
    """Print a comparison. ``everything`` includes the unchanged cells."""
    if form is Format.JSON:
        typer.echo(documents.comparison_json(comparison))
        return
    drawn = [
        sheet
        for sheet in (
            sheets.changed(comparison, everything),
            sheets.gaps(comparison),
            sheets.means(comparison),
        )
        if sheet.lines
    ]
    explained = (
        "Below 1 is better. worse, better: beyond noise, at a false discovery rate of "
        f"{change.FALSE_DISCOVERY_RATE:.0%} over all figures; not changed: surely within "
        f"{change.MARGIN:.0%}; time ratio: compiled over eager."
    )
    if form is Format.MARKDOWN:
        typer.echo(printable(wording.judgement(comparison)) + "\n")
        for sheet in drawn:
            typer.echo(markdown.markdown(sheet) + "\n")
        typer.echo(explained)
        return
    out = console()
    out.print(printable(wording.judgement(comparison)), highlight=False, markup=False)
    for sheet in drawn:
        out.print(terminal.draw(sheet))
    out.print(explained, style="dim", highlight=False, markup=False)


def print_report(
    records: list[Record], versions: list[str], form: Format, machine_name: str = ""
) -> None:
    """Print the measured cells of those versions, or of all; ``machine_name`` is for messages."""
    rows = [row for row in summary.rows(records, MODES) if not versions or row.release in versions]
    if not rows:
        what = " and ".join(f"v{version}" for version in versions)
        raise ReportError(
            f"nothing of {what} was measured on {machine_name}; try: asv run RELEASE^!"
            if records and versions
            else "nothing was measured yet; start with: nox -s bench"
        )
    if form is Format.JSON:
        typer.echo(documents.rows_json(rows))
        return
    sheet = sheets.measured(rows)
    both = sheets.ends(_both_ends(records, versions))
    explained = (
        "ratio: time in the mode over time in eager, below 1 is a gain; [95 % interval over "
        "launches].\ncompile s: time lost to calls that compiled, nothing cached; warm s: with "
        "Inductor's disk cache."
    )
    heap = (
        "The heap decides, too. default: malloc as a script gets it; settled: malloc keeps its "
        f"memory, as with {REMEDY}. Malloc's share is of the time with the default heap."
    )
    if form is Format.MARKDOWN:
        typer.echo(markdown.markdown(sheet) + "\n\n" + explained)
        if both.lines:
            typer.echo("\n" + markdown.markdown(both) + "\n\n" + heap)
        return
    out = console()
    out.print(terminal.draw(sheet))
    out.print(explained, style="dim", highlight=False, markup=False)
    if both.lines:
        out.print(terminal.draw(both))
        out.print(heap, style="dim", highlight=False, markup=False)


def _both_ends(records: list[Record], versions: list[str]) -> list[Ends]:
    """The cells at both ends of the heap, of one machine and release after another."""
    groups: dict[tuple[str, str], list[Measurement]] = {}
    for record in records:
        if not versions or record.release in versions:
            groups.setdefault((record.machine, record.release), []).append(record.measurement)
    return [both for measurements in groups.values() for both in both_ends(measurements)]

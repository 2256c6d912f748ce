"""``torchcompile-suite report``: what was measured, and what changed between two releases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import click

from ..analysis import change, generated, summaries, summary
from ..analysis.ends import REMEDY, both_ends
from ..cell import Cell
from ..errors import SuiteError, similar
from ..measurement import Measurement
from ..presentation import documents, sheets, stories, terminal, wording
from ..presentation.sheets import Sheet
from ..presentation.stories import ComparedReason
from ..presentation.terminal import Output
from ..presentation.wording import printable
from ..results.machines import NoResultsError
from ..results.records import Record
from . import recorded
from .options import Format, format_option, machine_option
from .recorded import Selection

# More lines are too many to read.
MOST_ROWS = 40


_Has = TypeVar("_Has", bound=sheets.OfCell)


class Rows(NamedTuple):
    """The cells of which every figure is shown: all, or those of a model."""

    everything: bool = False
    model: str | None = None

    def __call__(self, cell: Cell) -> bool:
        """Whether the cell is one of them."""
        return self.everything or cell.workload == self.model

    def of(self, found: Sequence[_Has]) -> list[_Has]:
        """What is of the model that is asked for; all, if none is."""
        return [one for one in found if self.model in (None, one.cell.workload)]

    def need(self, versions: Sequence[str], records: Iterable[Record]) -> None:
        """Raise SuiteError if no record of those versions is of the model that is asked for."""
        models = {
            record.measurement.cell.workload
            for record in records
            if not versions or record.release in versions
        }
        if self.model is not None and self.model not in models:
            raise SuiteError(
                f"no cell here has the model {self.model!r}{similar(self.model, models)}"
            )


@click.command()
@click.argument(
    "releases", nargs=-1, help="One is shown; two, such as v2.4 v2.9, are compared. Default: all."
)
@machine_option
@format_option
@click.option("--all", "everything", is_flag=True, help="All rows.")
@click.option("--model", help="All rows of this model.")
@click.option(
    "--fail-on-regression",
    is_flag=True,
    help="Exit with 1 if a figure got worse, or a cell that had numbers fails.",
)
def report_command(
    releases: tuple[str, ...],
    machine_name: str | None,
    form: Format,
    everything: bool,
    model: str | None,
    fail_on_regression: bool,
) -> None:
    """Print what was measured, or what changed from one release to another beyond noise.

    One or two releases: the whole, then what matters most; --all and --model show each figure. More
    releases, or none: each figure. Without releases and --machine: of all machines.

    Examples: torchcompile-suite report v2.9; torchcompile-suite report v2.4 v2.9 --format markdown
    """
    wanted = [recorded.version_named(name) for name in releases]
    rows = Rows(everything, model)
    if len(set(wanted)) < len(wanted):
        raise SuiteError(f"name each release once: {', '.join(releases)}")
    if len(wanted) == 2:
        _compare(wanted, machine_name, form, rows, fail_on_regression)
    elif fail_on_regression:
        raise SuiteError("--fail-on-regression needs two releases, such as v2.4 v2.9")
    elif wanted or machine_name:
        _show(wanted, machine_name, form, rows)
    else:
        results = recorded.read_results()
        rows.need([], [*results.records, *results.generated])
        code = generated.rows(_warned(results.generated), [])
        print_report(results.records, wanted, form, rows, code=code)


def _compare(
    versions: list[str],
    machine_name: str | None,
    form: Format,
    rows: Rows,
    fail_on_regression: bool,
) -> None:
    """Print a comparison. Exit with 1 if asked to."""
    of_targets = _warned(recorded.read_generated())
    code = generated.compare(of_targets, *versions)
    enough = bool(code.compared) and not fail_on_regression
    # What is judged is what was measured here.
    selection = _selected(machine_name, versions, of_targets, enough, own=fail_on_regression)
    rows.need(versions, [*of_targets, *(selection.records if selection else ())])
    if selection is None:
        if form is Format.JSON:
            click.echo(documents.generated_json(_code_of(code, rows)))
            return
        _print_changes(code, form, rows)
        both = f"both v{code.before} and v{code.after}"
        click.echo(f"No machine has times of {both}, so none are compared.", err=True)
        return
    comparison = compare_releases(selection.records, *versions)
    # One machine that is named, or the machines of a class.
    of_cells = recorded.read_divided if machine_name else recorded.read_divided_of_class
    divided = summaries.divided_by_place(of_cells(selection.machine))
    reasons = rows.of(list(stories.reasons(divided, *versions)))
    print_comparison(comparison, form, rows, code, reasons)
    if fail_on_regression and (comparison.regressions or comparison.broken):
        raise SystemExit(1)


def _show(versions: list[str], machine_name: str | None, form: Format, rows: Rows) -> None:
    """Print the measured cells of a machine, or of a machine and those of its class."""
    of_targets = _warned(recorded.read_generated())
    code = generated.rows(of_targets, versions)
    enough = bool(code) and form is not Format.JSON
    selection = _selected(machine_name, versions, of_targets, enough, every=False)
    rows.need(versions, [*of_targets, *(selection.records if selection else ())])
    if selection is None:
        _print_generated(rows.of(code), form)
        return
    print_report(selection.records, versions, form, rows, selection.machine, code)


def _selected(
    machine_name: str | None,
    versions: list[str],
    of_targets: Sequence[Record],
    enough: bool,
    *,
    every: bool = True,
    own: bool = False,
) -> Selection | None:
    """The records of the named machine, or of a machine and those of its class.

    None without any, if what was generated for targets is ``enough``. Raises NoResultsError.
    """
    try:
        selection = recorded.select(machine_name, versions, every=every, own=own)
    except NoResultsError:
        if not enough or machine_name not in {None, *(record.machine for record in of_targets)}:
            raise
        return None
    return selection if machine_name or own else recorded.assembled(selection, versions)


def _warned(code: Sequence[Record]) -> Sequence[Record]:
    """The same, after a line on standard error for each of them that differs between machines."""
    for release, cell, names in generated.disagreements(code):
        text = (
            f"v{release}, {cell}: the machines {', '.join(names)} have different code. They have "
            "different builds of torch, or the suite has a fault."
        )
        click.echo(printable(text), err=True)
    return code


def compare_releases(records: Sequence[Record], before: str, after: str) -> change.Comparison:
    """Compare two versions, each cell on its machine. Raises ChangeError."""

    def side(machine: str, version: str) -> change.Side:
        mine = [one for one in records if (one.machine, one.release) == (machine, version)]
        return change.Side(version, [one.measurement for one in mine])

    names = dict.fromkeys(record.machine for record in records)
    return change.compare_machines({one: (side(one, before), side(one, after)) for one in names})


_WHY = "Why (torchcompile-suite why; each at 95 %, without regard to how many were looked at):"
# What a table of generated code says, and what not.
_GENERATED = (
    "Generated for a GPU that is not here: counts, the same on any machine, and no times.\n"
    "launches: of one call; with CUDA graphs: a graph as one launch."
)


def print_comparison(
    comparison: change.Comparison,
    form: Format,
    rows: Rows,
    code: generated.Comparison | None = None,
    reasons: Sequence[ComparedReason] = (),
) -> None:
    """Print a comparison. ``rows``: the cells of which every figure is shown. ``code``: what was
    generated for targets. ``reasons``: why calls changed.
    """
    if form is Format.JSON:
        shown = comparison._replace(changes=rows.of(comparison.changes))
        of_model = _code_of(code, rows) if code else None
        click.echo(documents.comparison_json(shown, of_model, reasons))
        return
    found = change.findings(comparison)
    most = sheets.findings(found[: change.MOST_FINDINGS])
    wanted = comparison._replace(changes=[one for one in comparison.changes if rows(one.cell)])
    explained = (
        "Below 1 is better. worse, better: beyond noise, at a false discovery rate of "
        f"{change.FALSE_DISCOVERY_RATE:.0%} over all figures;\nnot changed: surely within "
        f"{change.MARGIN:.0%}; time ratio: compiled over eager.\n"
        f"{'' if rows.everything else _left(len(found) - len(most.lines), comparison)}"
    )
    _print(form, [sheets.means(comparison)], "", wording.judgement(comparison))
    _print(form, [most], explained, "What matters most:" if most.lines else "", apart=True)
    every = [sheets.changed(wanted, everything=True), sheets.gaps(wanted)]
    if any(sheet.lines for sheet in every):
        _print(form, every, "", apart=True)
    if reasons:
        lines = [f"{each.cell}: {each.says}" for each in reasons]
        _print(form, [], "", "\n".join([_WHY, *lines]), apart=True)
    _print_changes(code, form, rows)


def _left(findings: int, comparison: change.Comparison) -> str:
    """What of the comparison is not printed, and how to see it."""
    gaps = sum(bool(one.gap) for one in comparison.changes)
    left = [f"{wording.plural(findings, 'more change')}"] if findings else []
    left += [f"{wording.plural(gaps, 'cell')} that cannot be compared"] if gaps else []
    return f"Each figure{', '.join(['', *left])}: --all, or --model NAME."


def _code_of(code: generated.Comparison, rows: Rows) -> generated.Comparison:
    """The code of the model that is asked for."""
    return code._replace(differences=rows.of(code.differences), gaps=rows.of(code.gaps))


def _print_changes(code: generated.Comparison | None, form: Format, rows: Rows) -> None:
    if code is None or not (code.compared or code.gaps):
        return
    counted = f"Generated code: {wording.plural(len(code.differences), 'count')} changed, "
    counted += f"cells compared: {code.compared}."
    _print(form, [sheets.generated_counts(code)], _GENERATED, counted, apart=True)
    wanted = code._replace(
        differences=[one for one in code.differences if rows(one.cell)],
        gaps=[one for one in code.gaps if rows(one.cell)],
    )
    if wanted.differences or wanted.gaps:
        drawn = [sheets.generated_changes(wanted), sheets.generated_gaps(wanted)]
        _print(form, drawn, "", apart=True)


def print_report(
    records: list[Record],
    versions: list[str],
    form: Format,
    wanted: Rows,
    machine_name: str = "",
    code: Sequence[generated.Row] = (),
) -> None:
    """Print the measured cells of those versions, or of all; ``machine_name`` is for messages.

    ``wanted``: the cells of which every figure is shown. If they are too many to read, and none is
    asked for, the whole is shown. ``code``: what was generated for targets. It is not part of the
    JSON, which is a list of cells with times.
    """
    shown = [record for record in records if not versions or record.release in versions]
    rows = summary.rows(shown)
    if not rows:
        if code and form is not Format.JSON and not machine_name:
            _print_generated(wanted.of(code), form)
            return
        if records and versions:
            raise recorded.not_measured(versions, machine_name)
        raise SuiteError("nothing was measured yet; start with: nox -s bench")
    asked = [record for record in shown if wanted(record.measurement.cell)]
    if form is Format.JSON:
        click.echo(wording.written(summary.rows(asked) if wanted.model else rows))
        return
    if not asked and not wanted.model and len(rows) > MOST_ROWS and len(versions) == 1:
        names = ", ".join(dict.fromkeys(row.machine for row in rows))
        _print_whole(f"{versions[0]} on {names}", rows, form)
        return
    if asked or wanted.model:
        shown, rows = asked, summary.rows(asked)
        code = [one for one in code if wanted(one.cell)]
    both = _both_ends(shown)
    explained = (
        "ratio: time in the mode over time in eager, below 1 is a gain; [95 % interval over "
        "launches].\ncompile s: time lost to compiling, nothing cached; warm s: with "
        "Inductor's disk cache."
    )
    heap = (
        "The heap decides, too. default: malloc as a script gets it; settled: malloc keeps its "
        f"memory, as with {REMEDY}. Malloc's share is of the time with the default heap."
    )
    if rows:
        _print(form, [sheets.measured(rows)], explained)
    if both.lines:
        _print(form, [both], heap, apart=True)
    _print_generated(code, form)


def _print_whole(what: str, rows: Sequence[summary.Row], form: Format) -> None:
    """Print how many cells gain, and which most."""
    ended = sum(not row.outcome.ok for row in rows)
    told = f"{what}: {wording.plural(len(rows) - ended, 'cell')} with numbers, {ended} without."
    models = sheets.payoffs(rows)
    if models.lines:
        told += " Of models as users run them:"
    _print(form, [models] if models.lines else [], "", told)
    explained = (
        "ratio: time in the mode over time in eager, below 1 is a gain.\n"
        "Each cell, both ends of the heap, and code for GPUs: --all, or --model NAME."
    )
    most = sheets.extremes(rows, change.MOST_FINDINGS // 2)
    gains = (
        "What gains most, and what loses most:" if most.lines else "No cell surely gains or loses."
    )
    _print(form, [most], explained, gains, apart=True)


def _print_generated(code: Sequence[generated.Row], form: Format) -> None:
    if code:
        _print(form, [sheets.generated(code)], _GENERATED, apart=True)


def _print(
    form: Format,
    drawn: Sequence[Sheet],
    explained: str,
    headline: str = "",
    *,
    apart: bool = False,
) -> None:
    """Print the tables that have lines, and below them what explains them.

    ``apart``: something was printed before. Markdown needs an empty line there.
    """
    drawn = [sheet for sheet in drawn if sheet.lines]
    safe = terminal.escaped if form is Format.MARKDOWN else printable
    lines = [safe(line) for line in headline.split("\n")]
    headline = ("\n\n" if form is Format.MARKDOWN else "\n").join(lines)
    if form is Format.MARKDOWN:
        if apart:
            click.echo()
        for text in filter(None, [headline, *map(terminal.markdown, drawn)]):
            click.echo(text + "\n")
        if explained:
            click.echo(explained)
        return
    out = Output()
    for line in filter(None, headline.split("\n")):
        out.say(line)
    for sheet in drawn:
        out.draw(sheet)
    for line in filter(None, explained.split("\n")):
        out.say(line, dim=True)


def _both_ends(records: Sequence[Record]) -> Sheet:
    """The cells at both ends of the heap. Machine and release are columns only if there are
    several.
    """
    groups: dict[tuple[str, str], list[Measurement]] = {}
    for record in records:
        groups.setdefault((record.machine, record.release), []).append(record.measurement)
    found = [(place, one) for place, mine in groups.items() for one in both_ends(mine)]
    sheet = sheets.ends([one for _, one in found])
    places = [place for place, _ in found for _ in range(2)]  # a line for each end
    titles = ("machine", "release")
    several = [at for at in range(2) if len({place[at] for place in places}) > 1]
    lines = [
        [*(place[at] for at in several), *line]
        for place, line in zip(places, sheet.lines, strict=True)
    ]
    return sheet._replace(columns=[*(titles[at] for at in several), *sheet.columns], lines=lines)

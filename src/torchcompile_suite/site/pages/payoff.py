"""Does it pay: by model and mode, for a machine, a release and a batch size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ...analysis import statistics
from ...analysis.ends import REMEDY, Ends, both_ends
from ...analysis.payoff import Payoff, asks_whether_it_pays, best, counts
from ...analysis.summary import Row
from ...cell import Cell
from ...modes import EAGER, MODES
from ...presentation import sheets
from ...presentation.wording import milliseconds, ratio
from .. import charts, paths
from ..content import Content, Machine, label
from ..page import Choice, Figure, Link, Option, Page, Section, Table, Value
from . import common

COMPILED = [name for name in MODES if name != EAGER]


def pages(content: Content) -> Iterator[Page]:
    """One page for each machine, release and batch size."""
    return (
        _page(content, machine, release, size)
        for machine in content.machines
        for release in machine.releases
        for size in _batches(asked(machine, release))
    )


def asked(machine: Machine, release: str) -> list[Row]:
    """The release's cells that ask whether compiling pays."""
    return [row for row in machine.rows(release) if asks_whether_it_pays(row.cell)]


def path(machine: Machine, release: str) -> str:
    """The page of the batch size with most cells."""
    return paths.payoff(machine.name, release, _batches(asked(machine, release))[0])


def _batches(rows: Sequence[Row]) -> list[int]:
    """The batch sizes, those with most cells first."""
    sizes = [row.cell.batch_size for row in rows]
    return sorted(set(sizes), key=lambda size: (-sizes.count(size), size)) or [1]


def answer(rows: Sequence[Row], release: str, machine: str) -> list[str]:
    """For each mode: how many cells gain, and the mean ratio."""
    sentences = []
    for mode in COMPILED:
        of_mode = [row for row in rows if row.cell.mode == mode]
        ratios = [row.ratio for row in of_mode if row.ratio is not None]
        if not ratios:
            continue
        number = counts(of_mode)
        others = "".join(
            f", {pays.value} in {number[pays]}"
            for pays in Payoff
            if pays is not Payoff.GAIN and number[pays]
        )
        sentences.append(
            f"Mode {mode}: faster in {number[Payoff.GAIN]} of "
            f"{common.plural(len(ratios), 'cell')}{others}. The geometric mean of the ratios is "
            f"{ratio(statistics.geometric_mean(ratios))}."
        )
    if not sentences:
        return [f"Nothing was measured with PyTorch {release} on {machine}."]
    return [f"PyTorch {release} on {machine}, compiled against eager:", *sentences]


def _page(content: Content, machine: Machine, release: str, size: int) -> Page:
    here = paths.payoff(machine.name, release, size)
    everything = asked(machine, release)
    rows = [row for row in everything if row.cell.batch_size == size]
    sections = []
    if any(row.ratio is not None for row in rows):
        sections.append(_ratios(machine, release, here, rows))
    elif rows:
        sections.append(Section("Gaps", "gaps", tables=[_matrix(machine, rows)]))
    both = [
        each
        for each in both_ends(machine.measurements(release))
        if each.cell.batch_size == size and asks_whether_it_pays(each.cell)
    ]
    if both:
        sections.append(_heap(machine, release, both))
    return Page(
        here,
        "payoff",
        f"Does it pay? PyTorch {label(release)}, batch {size}",
        answer(rows, release, machine.name) + common.older_method(machine),
        [
            *common.machines(
                content, machine, lambda other: path(other, _nearest(other.releases, release))
            ),
            common.releases(machine, release, lambda other: _same_batch(machine, other, size)),
            Choice(
                "Batch size",
                [
                    Option(str(other), paths.payoff(machine.name, release, other), other == size)
                    for other in sorted(_batches(everything))
                ],
            ),
        ],
        sections,
        [common.flat(row) for row in rows],
    )


def _ratios(machine: Machine, release: str, here: str, rows: Sequence[Row]) -> Section:
    """The chart of the ratios and their table."""
    bars = [
        charts.Bar(
            common.name(row),
            row.cell.mode,
            row.ratio,
            paths.in_cell(machine.name, row.cell, release),
        )
        for row in _by_gain(rows)
        if row.ratio is not None
    ]
    text = [common.BELOW]
    models = list(dict.fromkeys(bar.label for bar in bars))
    if len(models) > common.MOST_LINES:
        half = common.MOST_LINES // 2
        drawn = {*models[:half], *models[-half:]}
        bars = [bar for bar in bars if bar.label in drawn]
        text.append(
            f"The chart shows {2 * half} of {len(models)} models: the {half} with the largest gain "
            f"and the {half} with the smallest."
        )
    modes = [mode for mode in COMPILED if any(bar.series == mode for bar in bars)]
    chart = charts.ratios(bars, modes, here, "time ratio, mode over eager (below 1: faster)")
    return Section(
        "Ratios",
        "ratios",
        text,
        Figure(chart, "The time ratio of each model and mode, with its 95 % interval."),
        [_matrix(machine, rows)],
    )


def _heap(machine: Machine, release: str, both: Sequence[Ends]) -> Section:
    """The cells that were measured at both ends of the heap."""
    lines: list[list[Value]] = [
        [Link(line[0], paths.in_cell(machine.name, each.cell, release)), *line[1:]]
        for each in both
        for line in sheets.ends([each]).lines
    ]
    sheet = sheets.ends(both)
    return Section(
        "Both ends of the heap",
        "heap",
        [
            "On a CPU the state of the heap decides, too. Default: malloc as a script gets it, in "
            "a process that runs only eager or only the compiled model. Settled: malloc keeps its "
            f"memory, as with the environment variables {REMEDY}. All other figures of this page "
            "are of the settled heap. Malloc's share is of the time with the default heap."
        ],
        tables=[
            Table(
                "Times, ratio and page faults a call with the default and the settled heap.",
                sheet.columns,
                sheet.numbers,
                lines,
            )
        ],
    )


def _by_gain(rows: Sequence[Row]) -> list[Row]:
    """The workload with the largest gain first; workloads without numbers last."""

    def value(row: Row) -> float:
        return row.ratio.value if row.ratio is not None else math.inf

    least: dict[tuple[str, str], float] = {}
    for row in rows:
        key = (row.cell.workload, row.cell.variant)
        least[key] = min(least.get(key, math.inf), value(row))
    return sorted(rows, key=lambda row: least[row.cell.workload, row.cell.variant])


def _nearest(releases: Sequence[str], wanted: str) -> str:
    return wanted if wanted in releases else releases[-1]


def _same_batch(machine: Machine, release: str, size: int) -> str:
    sizes = _batches(asked(machine, release))
    return paths.payoff(machine.name, release, size if size in sizes else sizes[0])


def _matrix(machine: Machine, rows: Sequence[Row]) -> Table:
    """One line for each model, one column for each mode."""
    models: dict[tuple[str, str], dict[str, Row]] = {}
    for row in _by_gain(rows):
        models.setdefault((row.cell.workload, row.cell.variant), {})[row.cell.mode] = row
    modes = [mode for mode in COMPILED if any(mode in by_mode for by_mode in models.values())]
    lines: list[list[Value]] = []
    for by_mode in models.values():
        first = next(iter(by_mode.values()))
        fastest: list[Cell] = best(by_mode.values()) if len(by_mode) > 1 else []
        line: list[Value] = [common.linked(machine, first), milliseconds(first.eager_s)]
        for mode in modes:
            cell = by_mode.get(mode)
            line.append("" if cell is None else common.paying(machine, cell, cell.cell in fastest))
        lines.append(line)
    return Table(
        "The time ratio of each model in each mode. Fastest: the fastest mode, and modes that "
        "cannot be told from it. An empty field was not measured.",
        ["model", "eager ms", *modes],
        frozenset(["eager ms"]),
        lines,
    )

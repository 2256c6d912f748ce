"""Does it pay: model x mode, for a machine, a release and a batch size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ...analysis import statistics
from ...analysis.payoff import Payoff, asks_whether_it_pays, best, counts
from ...analysis.summary import Row
from ...cell import Cell
from ...modes import EAGER, MODES
from ...presentation.wording import milliseconds, ratio
from .. import charts, paths
from ..content import Content, Machine, label
from ..page import Choice, Figure, Option, Page, Section, Table, Value
from . import common

COMPILED = [name for name in MODES if name != EAGER]


def pages(content: Content) -> Iterator[Page]:
    """One for each machine, release and batch size."""
    return (
        page
        for machine in content.machines
        for release in machine.releases
        for page in _of_release(content, machine, release)
    )


def asked(machine: Machine, release: str) -> list[Row]:
    """The release's cells that ask whether compiling pays."""
    return [row for row in machine.rows(release) if asks_whether_it_pays(row.cell)]


def path(machine: Machine, release: str) -> str:
    """The page a newcomer should see first: the batch size with most cells."""
    return paths.payoff(machine.name, release, _batches(asked(machine, release))[0])


def _batches(rows: Sequence[Row]) -> list[int]:
    found = [row.cell.batch_size for row in rows]
    return sorted(set(found), key=lambda size: (-found.count(size), size)) or [1]


def _of_release(content: Content, machine: Machine, release: str) -> list[Page]:
    rows = asked(machine, release)
    sizes = _batches(rows)
    return [
        _page(
            content, machine, release, size, sizes, [r for r in rows if r.cell.batch_size == size]
        )
        for size in sizes
    ]


def answer(rows: Sequence[Row], release: str, machine: str) -> list[str]:
    """In words: how many gain, in each mode."""
    sentences = []
    for mode in COMPILED:
        mine = [row for row in rows if row.cell.mode == mode]
        measured = [row.ratio for row in mine if row.ratio is not None]
        if not measured:
            continue
        of = counts(mine)
        mean = statistics.geometric_mean(measured)
        others = "".join(
            f", {each.value} in {of[each]}"
            for each in Payoff
            if each is not Payoff.GAIN and of[each]
        )
        sentences.append(
            f"Mode {mode}: faster in {of[Payoff.GAIN]} of {common.plural(len(measured), 'cell')}"
            f"{others}; geometric mean of the ratios {ratio(mean)}."
        )
    if not sentences:
        return [f"Nothing was measured here with PyTorch {release} on {machine}."]
    return [f"PyTorch {release} on {machine}, compiled against eager:", *sentences]


def _page(
    content: Content,
    machine: Machine,
    release: str,
    size: int,
    sizes: Sequence[int],
    rows: Sequence[Row],
) -> Page:
    here = paths.payoff(machine.name, release, size)
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
    sections = []
    if bars:
        models = list(dict.fromkeys(bar.label for bar in bars))
        text = [common.BELOW]
        if len(models) > common.MOST_LINES:
            half = common.MOST_LINES // 2
            drawn_too = {*models[:half], *models[-half:]}
            bars = [bar for bar in bars if bar.label in drawn_too]
            text.append(
                f"The drawing has the {half} models that gain most and the {half} that gain least, "
                f"of {len(models)}."
            )
        modes = [mode for mode in COMPILED if any(bar.series == mode for bar in bars)]
        drawn = charts.ratios(bars, modes, here, "time ratio, mode over eager (below 1: faster)")
        sections.append(
            Section(
                "Ratios",
                "ratios",
                text,
                Figure(drawn, "Time ratio of each model and mode with its interval, around 1."),
                [_matrix(machine, rows)],
            )
        )
    elif rows:
        sections.append(Section("Gaps", "gaps", tables=[_matrix(machine, rows)]))
    return Page(
        here,
        "payoff",
        f"Does it pay? PyTorch {label(release)}, batch {size}",
        answer(rows, release, machine.name) + common.older_method(machine),
        [
            *common.machines(
                content, machine, lambda each: path(each, _nearest(each.releases, release))
            ),
            common.releases(machine, release, lambda each: _same_batch(machine, each, size)),
            Choice(
                "Batch size",
                [
                    Option(str(each), paths.payoff(machine.name, release, each), each == size)
                    for each in sorted(sizes)
                ],
            ),
        ],
        sections,
        [common.flat(row) for row in rows],
    )


def _by_gain(rows: Sequence[Row]) -> list[Row]:
    """The workload that gains most first; those without numbers last."""

    def of(row: Row) -> float:
        return row.ratio.value if row.ratio is not None else math.inf

    most: dict[tuple[str, str], float] = {}
    for row in rows:
        key = (row.cell.workload, row.cell.variant)
        most[key] = min(most.get(key, math.inf), of(row))
    return sorted(rows, key=lambda row: most[row.cell.workload, row.cell.variant])


def _nearest(releases: Sequence[str], wanted: str) -> str:
    return wanted if wanted in releases else releases[-1]


def _same_batch(machine: Machine, release: str, size: int) -> str:
    sizes = _batches(asked(machine, release))
    return paths.payoff(machine.name, release, size if size in sizes else sizes[0])


def _matrix(machine: Machine, rows: Sequence[Row]) -> Table:
    groups: dict[tuple[str, str], dict[str, Row]] = {}
    for row in _by_gain(rows):
        groups.setdefault((row.cell.workload, row.cell.variant), {})[row.cell.mode] = row
    modes = [mode for mode in COMPILED if any(mode in group for group in groups.values())]
    lines: list[list[Value]] = []
    for group in groups.values():
        first = next(iter(group.values()))
        fastest: list[Cell] = best(group.values()) if len(group) > 1 else []
        line: list[Value] = [common.linked(machine, first), milliseconds(first.eager_s)]
        for mode in modes:
            found = group.get(mode)
            line.append(
                "" if found is None else common.paying(machine, found, found.cell in fastest)
            )
        lines.append(line)
    return Table(
        "Time ratio of each model in each mode; the fastest modes that cannot be told apart are "
        "marked. An empty field was not measured.",
        ["model", "eager ms", *modes],
        frozenset(["eager ms"]),
        lines,
    )

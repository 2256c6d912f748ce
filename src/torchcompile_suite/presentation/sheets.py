"""Results as tables, before they are drawn."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from ..analysis import generated as code
from ..analysis.change import QUANTITIES, Comparison, Difference, Finding, of_model
from ..analysis.claims import Judged
from ..analysis.coverage import Coverage, SeriesCoverage
from ..analysis.ends import Ends
from ..analysis.payoff import Payoff, break_even, counts
from ..analysis.statistics import geometric_mean, having
from ..analysis.summary import Row
from ..cell import Cell
from ..measurement import Measurement
from .wording import count, milliseconds, of_known, ratio, seconds

T = TypeVar("T")
Columns: TypeAlias = Mapping[str, Callable[[T], str]]
"""The name of a column -> its text in the line of an item."""


class Sheet(NamedTuple):
    """A table before it is drawn. Columns named in ``numbers`` are aligned to the right.

    The text may come from result files, which are not trusted: it must never be read as markup.
    """

    columns: list[str]
    numbers: frozenset[str]
    lines: list[list[str]]


# The columns that say which cell a line is of, and are numbers.
_COUNTED = frozenset(("batch", "inputs", "length", "operators"))


def sheet(
    items: Iterable[T],
    place: Columns[T],
    figures: Columns[T],
    reason: Callable[[T], str] = lambda _: "",
) -> Sheet:
    """A line for each item: ``place`` says which one it is, ``figures`` what is known of it.

    Figures are numbers. ``reason``: why an item has none, empty if it has some. It stands in the
    first column of the figures, and the others are empty.
    """
    lines = []
    for item in items:
        if why := reason(item):
            own = [why, *[""] * (len(figures) - 1)] if figures else []
        else:
            own = [of(item) for of in figures.values()]
        lines.append([*(of(item) for of in place.values()), *own])
    numbers = frozenset((*_COUNTED.intersection(place), *figures))
    return Sheet([*place, *figures], numbers, lines)


def ended(one: Row | Measurement) -> str:
    """Why a cell has no number; empty if it ended well."""
    return "" if one.outcome.ok else str(one.outcome)


class OfCell(Protocol):
    """What has a cell."""

    @property
    def cell(self) -> Cell:
        """The cell."""


CELL = ["model", "batch", "mode"]


def cell_columns(cell: Cell) -> list[str]:
    """The values of the columns `CELL`. The variant is part of the mode column."""
    mode = f"{cell.mode}: {cell.variant}" if cell.variant else cell.mode
    if cell.way == "as-given":  # the user's code decides on the mode
        mode = cell.variant
    return [cell.workload, str(cell.batch_size), mode]


def mode_of_phase(cell: Cell) -> str:
    """The mode and the variant of a cell, where something else says in which phase it is."""
    return cell_columns(msgspec.structs.replace(cell, phase="inference"))[-1]


MODEL: Columns[OfCell] = {
    "model": lambda one: one.cell.workload,
    "batch": lambda one: str(one.cell.batch_size),
}
PLACE: Columns[OfCell] = {**MODEL, "mode": lambda one: cell_columns(one.cell)[-1]}
"""The columns `CELL` of what has a cell."""
_TARGET: Columns[OfCell] = {
    **MODEL,
    "mode": lambda one: one.cell.mode,
    "target": lambda one: one.cell.target,
}
_WHERE: Columns[Row] = {"machine": lambda row: row.machine, "release": lambda row: row.release}
_MEASURED: Columns[Row] = {
    "eager ms": lambda row: milliseconds(row.eager_s),
    "compiled ms": lambda row: milliseconds(row.latency_s),
    "ratio [95 %]": lambda row: ratio(row.ratio),
    "compile s": lambda row: seconds(row.cold_compile_s),
    "warm s": lambda row: seconds(row.warm_compile_s),
    "pays after": lambda row: str(break_even(row)),
}
# Calls that are each waited for, on an accelerator: they take longer than calls in a row.
_SINGLE: Columns[Row] = {
    "one eager call ms": lambda row: milliseconds(row.eager_single_s),
    "one compiled ms": lambda row: milliseconds(row.single_s),
}


def measured(rows: Sequence[Row]) -> Sheet:
    """One line for each cell. Machine and release are columns only if there are several."""
    several = {name: of for name, of in _WHERE.items() if len({of(row) for row in rows}) > 1}
    single = _SINGLE if any(row.single_s is not None for row in rows) else {}
    return sheet(rows, {**several, **PLACE}, {**_MEASURED, **single}, reason=ended)


def payoffs(rows: Iterable[Row]) -> Sheet:
    """One line for each phase, mode and variant, of models as users run them."""
    of_mode: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if of_model(row.cell) and row.ratio is not None:
            of_mode.setdefault((row.cell.phase, mode_of_phase(row.cell)), []).append(row)
    lines = []
    for (phase, mode), mine in of_mode.items():
        ratios = [row.ratio for row in mine if row.ratio is not None]
        mean = f"{ratio(geometric_mean(having(ratios)))}{of_known(ratios)}"
        lines.append([phase, mode, str(len(mine)), mean, *map(str, counts(mine).values())])
    figures = ["cells", "geometric mean [95 %]", *(one.value for one in Payoff)]
    return Sheet(["phase", "mode", *figures], frozenset(figures), lines)


def extremes(rows: Iterable[Row], most: int) -> Sheet:
    """The cells that gain most, then those that lose most, by what their intervals are sure of."""
    known = [
        (row.ratio, row.cell)
        for row in rows
        if row.cell.asks_whether_it_pays and row.ratio is not None and row.ratio.known
    ]
    gains = sorted((one for one in known if one[0].high < 1), key=lambda one: one[0].high)[:most]
    losses = sorted((one for one in known if one[0].low > 1), key=lambda one: -one[0].low)[:most]
    lines = [[ratio(of), _short(cell)] for of, cell in (*gains, *losses)]
    return Sheet(["ratio [95 %]", "where"], frozenset(("ratio [95 %]",)), lines)


def ends(both: Sequence[Ends]) -> Sheet:
    """Two lines for each cell that was measured at both ends of the heap: default and settled."""
    lines = []
    for each in both:
        shares = [
            "cannot tell" if share is None else f"{share:.0%}"
            for share in (each.eager_share, each.mode_share)
        ]
        for name, end, share in (
            ("default", each.default, shares),
            ("settled", each.settled, ["", ""]),
        ):
            times = milliseconds(end.eager_s), milliseconds(end.mode_s), ratio(end.ratio)
            faults = f"{end.eager_faults:,.0f}", f"{end.mode_faults:,.0f}"
            lines.append([*cell_columns(each.cell), name, *times, *faults, *share])
    figures = [
        *("eager ms", "compiled ms", "ratio [95 %]", "page faults: eager", "faults: compiled"),
        *("malloc's share: eager", "share: compiled"),
    ]
    return Sheet([*CELL, "heap", *figures], frozenset(("batch", *figures)), lines)


def findings(found: Sequence[Finding]) -> Sheet:
    """One line for each finding, none of which breaks in a terminal of 100 columns."""
    columns = ["after/before", "figure", "where"]
    return Sheet(columns, frozenset(columns[:1]), [_finding(one) for one in found])


def _short(cell: Cell) -> str:
    """The cell without what is the default."""
    batch, mode = f"batch {cell.batch_size}", "" if cell.mode == "default" else cell.mode
    return ", ".join(filter(None, (cell.workload, batch, mode, cell.variant)))


def _finding(one: Finding) -> list[str]:
    change, effect = one.of[0]
    if len(one.of) == 1:
        moved = f" ({change.moved})" if one.name == "time ratio" and change.moved else ""
        return [ratio(effect.factor), f"{one.name}{moved}", _short(change.cell)]
    values = [effect.factor.value for _, effect in one.of]
    where = f"{one.difference.value} in {len(one.of)} of {one.measured} cells, most in "
    return [f"{min(values):.2f} to {max(values):.2f}", one.name, f"{where}{change.cell.workload}"]


def changed(comparison: Comparison, everything: bool = False) -> Sheet:
    """One line for each figure that changed beyond noise, or for all figures."""
    several = len(set(comparison.machine_of.values())) > 1
    lines = [
        [
            *([comparison.machine_of[change.cell]] if several else []),
            *cell_columns(change.cell),
            name,
            ratio(effect.factor),
            effect.difference.value,
            change.moved_by(name),
        ]
        for change in comparison.changes
        for name, effect in change.effects.items()
        if everything or effect.difference.changed
    ]
    columns = [*CELL, "figure", "after/before [95 %]", "difference", "time that changed"]
    columns = ["machine", *columns] if several else columns
    return Sheet(columns, frozenset(("batch", "after/before [95 %]")), lines)


def gaps(comparison: Comparison) -> Sheet:
    """The cells that cannot be compared, with the reasons."""
    without = [change for change in comparison.changes if change.gap]
    return sheet(without, {**PLACE, "why not compared": lambda change: change.gap}, {})


def means(comparison: Comparison) -> Sheet:
    """The geometric mean of each figure, over how many cells, and in how many of all it changed."""
    lines = []
    for name in QUANTITIES:
        mine = [one for one in comparison.changes if name in one.effects]
        if not mine:
            continue
        number = Counter(one.effects[name].difference for one in mine)
        averaged = sum(one.cell in comparison.in_means for one in mine)
        counts = [str(number[one]) for one in Difference]
        lines.append([name, ratio(comparison.means.get(name)), str(averaged), *counts])
    of = "models" if comparison.of_models else "cells"
    counted = [one.value for one in Difference]
    if len(comparison.in_means) < len(comparison.changes):
        counted[0] = f"all cells: {counted[0]}"
    columns = ["figure", f"mean of {of} [95 %]", "cells", *counted]
    return Sheet(columns, frozenset(columns[1:]), lines)


def documents(judged: Sequence[Judged]) -> Sheet:
    """One line for each document whose claims were judged."""
    lines = [
        [document.id, document.kind, document.subject, document.hardware, document.setting]
        for document in dict.fromkeys(each.claim.document for each in judged)
    ]
    return Sheet(["document", "kind", "subject", "hardware", "setting"], frozenset(), lines)


def claims(judged: Sequence[Judged]) -> Sheet:
    """One line for each claim; `documents` describes the documents."""
    lines = [
        [claim.id, claim.seed, claim.says, verdict.value, reason]
        for claim, verdict, _, _, reason in judged
    ]
    return Sheet(["claim", "document", "it says", "verdict", "here"], frozenset(), lines)


_WITHOUT = ["no numbers", "not measured", "unexplained"]


def _without(covered: Coverage | SeriesCoverage) -> list[str]:
    return [str(len(of)) for of in (covered.ended, covered.missing, covered.unexplained)]


def coverage(covered: Mapping[str, Coverage]) -> Sheet:
    """One line for each release."""
    lines = []
    for version, release in covered.items():
        cells = release.ok + len(release.ended) + len(release.missing)
        lines.append([version, str(cells), str(release.ok), *_without(release)])
    columns = ["release", "cells", "ok", *_WITHOUT]
    return Sheet(columns, frozenset(columns[1:]), lines)


def series(covered: Sequence[SeriesCoverage]) -> Sheet:
    """One line for each series; columns count releases."""
    lines = [
        [*cell_columns(one.cell), str(len(one.ok)), *_without(one), one.machine] for one in covered
    ]
    counts = ["ok", *_WITHOUT]
    return Sheet([*CELL, *counts, "machine"], frozenset(("batch", *counts)), lines)


# The counts of a table, as far as any row has them.
_COUNTS = (
    *("graphs", "graph breaks", "Triton kernels", code.LAUNCHES, "of libraries"),
    *("of them backward", code.WITH_CUDA_GRAPHS),
)


def generated(rows: Sequence[code.Row]) -> Sheet:
    """One line for each cell with a target. Release is a column only if there are several."""
    several = len({row.release for row in rows}) > 1
    release: Columns[code.Row] = {"release": lambda row: row.release} if several else {}
    return counted(rows, {**release, **_TARGET}, (*_COUNTS, "bytes after fusion"))


def counted(
    rows: Sequence[code.Row], place: Columns[code.Row], names: Sequence[str] = _COUNTS
) -> Sheet:
    """One line for each row, with those of the counts that any row has."""
    shown = {name: _counted(name) for name in names if any(name in row.counts for row in rows)}
    # Where nothing was generated, a column has the reasons.
    return sheet(rows, place, shown or {"graphs": _counted("graphs")}, reason=_no_code)


def _counted(name: str) -> Callable[[code.Row], str]:
    return lambda row: count(row.counts.get(name))


def _no_code(row: code.Row) -> str:
    return str(row.outcome) if row.generated is None else ""


def generated_changes(comparison: code.Comparison) -> Sheet:
    """One line for each count that differs between the two releases."""
    return sheet(
        comparison.differences,
        {**_TARGET, "count": lambda difference: difference.name},
        {
            comparison.before: lambda difference: count(difference.before),
            comparison.after: lambda difference: count(difference.after),
        },
    )


def generated_counts(comparison: code.Comparison) -> Sheet:
    """One line for each count that differs anywhere: in how many cells, and where most.

    A count that one of the releases does not know is neither more nor less.
    """
    lines = []
    for name in code.COUNTS:
        mine = [
            (one.before, one.after, one.cell)
            for one in comparison.differences
            if one.name == name and one.before is not None and one.after is not None
        ]
        if not mine:
            continue
        more = sum(after > before for before, after, _ in mine)
        before, after, cell = max(mine, key=lambda one: _times(*one[:2]))
        where = f"{cell.workload}: {count(before)} to {count(after)}"
        lines.append([name, str(more), str(len(mine) - more), where])
    columns = ["count", "more in cells", "fewer in cells", "most in"]
    return Sheet(columns, frozenset(columns[1:3]), lines)


def _times(before: int, after: int) -> float:
    """How many times the larger count is of the smaller one; infinite for one that is 0."""
    small, large = sorted((before, after))
    return large / small if small else math.inf


def generated_gaps(comparison: code.Comparison) -> Sheet:
    """The cells whose code cannot be compared, with the reasons."""
    return sheet(comparison.gaps, {**_TARGET, "why not compared": lambda gap: gap.reason}, {})


def fleet(expected: Sequence[tuple[int, float, float, float]]) -> Sheet:
    """How long a plan takes: machines, seconds, seconds of the ideal, efficiency."""
    columns = ["machines", "hours", "ideal hours", "efficiency"]
    lines = [
        [str(machines), f"{seconds / 3600:.1f}", f"{ideal_s / 3600:.1f}", f"{efficiency:.0%}"]
        for machines, seconds, ideal_s, efficiency in expected
    ]
    return Sheet(columns, frozenset(columns), lines)

"""Results as tables, before they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..analysis import generated as code
from ..analysis.change import Comparison
from ..analysis.claims import Judged
from ..analysis.coverage import Coverage, SeriesCoverage
from ..analysis.ends import Ends
from ..analysis.payoff import break_even
from ..analysis.summary import Row
from ..cell import Cell, Outcome
from .wording import count, milliseconds, ratio, seconds


class Sheet(NamedTuple):
    """A table before it is drawn. Columns named in ``numbers`` are aligned to the right.

    The text may come from result files, which are not trusted: it must never be read as markup.
    """

    columns: list[str]
    numbers: frozenset[str]
    lines: list[list[str]]


CELL = ["model", "batch", "mode"]
# Calls that are each waited for, on an accelerator: they take longer than calls in a row.
SINGLE = ["one eager call ms", "one compiled ms"]


def cell_columns(cell: Cell) -> list[str]:
    """The values of the columns `CELL`. The variant is part of the mode column."""
    mode = f"{cell.mode}: {cell.variant}" if cell.variant else cell.mode
    if cell.way == "as-given":  # the user's code decides on the mode
        mode = cell.variant
    return [cell.workload, str(cell.batch_size), mode]


def no_number(outcome: Outcome, columns: int) -> list[str]:
    """What a line has in that many columns if its cell has no number: the reason, in the first."""
    return [str(outcome), *[""] * (columns - 1)]


def measured(rows: Sequence[Row]) -> Sheet:
    """One line for each cell. Machine and release are columns only if there are several."""
    places = {
        name: value
        for name, value in (("machine", _machine), ("release", _release))
        if len({value(row) for row in rows}) > 1
    }
    figures = ["eager ms", "compiled ms", "ratio [95 %]", "compile s", "warm s", "pays after"]
    single = any(row.single_s is not None for row in rows)
    figures += SINGLE if single else []
    lines = []
    for row in rows:
        line = [value(row) for value in places.values()]
        line += cell_columns(row.cell)
        if row.outcome.ok:
            line += _figures(row)
            line += [milliseconds(row.eager_single_s), milliseconds(row.single_s)] if single else []
        else:
            line += no_number(row.outcome, len(figures))
        lines.append(line)
    columns = [*places, *CELL, *figures]
    return Sheet(columns, frozenset(("batch", *figures)), lines)


def _machine(row: Row) -> str:
    return row.machine


def _release(row: Row) -> str:
    return row.release


def _figures(row: Row) -> list[str]:
    return [
        milliseconds(row.eager_s),
        milliseconds(row.latency_s),
        ratio(row.ratio),
        seconds(row.cold_compile_s),
        seconds(row.warm_compile_s),
        str(break_even(row)),
    ]


def ends(both: Sequence[Ends]) -> Sheet:
    """Two lines for each cell that was measured at both ends of the heap: default and settled."""
    lines = []
    for each in both:
        shares = [f"{each.eager_share:.0%}", f"{each.mode_share:.0%}"]
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
            (change.moved or "cannot tell") if name == "time ratio" else "",
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
    lines = [
        [*cell_columns(change.cell), change.gap] for change in comparison.changes if change.gap
    ]
    return Sheet([*CELL, "why not compared"], frozenset(("batch",)), lines)


def means(comparison: Comparison) -> Sheet:
    """The geometric mean of each figure over the cells that both releases have."""
    lines = [
        [
            name,
            ratio(mean),
            str(sum(1 for change in comparison.changes if name in change.effects)),
        ]
        for name, mean in comparison.means.items()
    ]
    columns = ["figure", "geometric mean of after/before [95 %]", "cells"]
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


def coverage(covered: Mapping[str, Coverage]) -> Sheet:
    """One line for each release."""
    columns = ["release", "cells", "ok", "no numbers", "not measured", "unexplained"]
    lines = [
        [
            version,
            str(release.ok + len(release.ended) + len(release.missing)),
            str(release.ok),
            str(len(release.ended)),
            str(len(release.missing)),
            str(len(release.unexplained)),
        ]
        for version, release in covered.items()
    ]
    return Sheet(columns, frozenset(columns[1:]), lines)


def series(covered: Sequence[SeriesCoverage]) -> Sheet:
    """One line for each series; columns count releases."""
    counts = ["ok", "no numbers", "not measured", "unexplained"]
    lines = [
        [
            *cell_columns(one.cell),
            str(len(one.ok)),
            str(len(one.ended)),
            str(len(one.missing)),
            str(len(one.unexplained)),
            one.machine,
        ]
        for one in covered
    ]
    return Sheet([*CELL, *counts, "machine"], frozenset(("batch", *counts)), lines)


# The counts of a table, as far as any row has them.
_SHOWN = (
    *("graphs", "graph breaks", "Triton kernels", code.LAUNCHES, "of libraries"),
    *("of them backward", code.WITH_CUDA_GRAPHS, "bytes after fusion"),
)


def generated(rows: Sequence[code.Row]) -> Sheet:
    """One line for each cell with a target. Release is a column only if there are several."""
    several = len({row.release for row in rows}) > 1
    shown = [name for name in _SHOWN if any(name in row.counts for row in rows)]
    lines = []
    for row in rows:
        line = [row.release] if several else []
        line += [row.cell.workload, str(row.cell.batch_size), row.cell.mode, row.cell.target]
        if row.generated is None:
            line += no_number(row.outcome, len(shown))
        else:
            line += [count(row.counts.get(name)) for name in shown]
        lines.append(line)
    columns = [*(["release"] if several else []), *CELL, "target", *shown]
    return Sheet(columns, frozenset(("batch", *shown)), lines)


def generated_changes(comparison: code.Comparison) -> Sheet:
    """One line for each count that differs between the two releases."""
    lines = [
        [
            *(difference.cell.workload, str(difference.cell.batch_size)),
            *(difference.cell.mode, difference.cell.target),
            *(difference.name, count(difference.before), count(difference.after)),
        ]
        for difference in comparison.differences
    ]
    columns = [*CELL, "target", "count", comparison.before, comparison.after]
    return Sheet(columns, frozenset(("batch", *columns[-2:])), lines)


def generated_gaps(comparison: code.Comparison) -> Sheet:
    """The cells whose code cannot be compared, with the reasons."""
    lines = [
        [gap.cell.workload, str(gap.cell.batch_size), gap.cell.mode, gap.cell.target, gap.reason]
        for gap in comparison.gaps
    ]
    return Sheet([*CELL, "target", "why not compared"], frozenset(("batch",)), lines)


def fleet(expected: Sequence[tuple[int, float, float, float]]) -> Sheet:
    """How long a plan takes: machines, seconds, seconds of the ideal, efficiency."""
    columns = ["machines", "hours", "ideal hours", "efficiency"]
    lines = [
        [str(machines), f"{seconds / 3600:.1f}", f"{ideal_s / 3600:.1f}", f"{efficiency:.0%}"]
        for machines, seconds, ideal_s, efficiency in expected
    ]
    return Sheet(columns, frozenset(columns), lines)

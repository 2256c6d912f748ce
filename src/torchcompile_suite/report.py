"""What was measured and what changed, for the terminal, for Markdown and for programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from rich.table import Table
from rich.text import Text
from tabulate import tabulate

from .cell import Cell
from .findings.change import Comparison, Verdict
from .findings.claims import Judged
from .findings.coverage import Coverage
from .findings.summary import Row
from .statistics import Interval
from .terminal import printable


class Sheet(NamedTuple):
    """A table before it is drawn. Columns named in ``numbers`` are aligned to the right.

    Cells may come from result files, which are not trusted: who draws it must take them as text.
    """

    columns: list[str]
    numbers: frozenset[str]
    lines: list[list[str]]


CELL = ["model", "batch", "mode"]


def cell_columns(cell: Cell) -> list[str]:
    """The cell under the columns of `CELL`: its variant goes with the mode."""
    mode = f"{cell.mode}: {cell.variant}" if cell.variant else cell.mode
    return [cell.workload, str(cell.batch_size), mode]


def draw(sheet: Sheet) -> Table:
    """For the terminal."""
    made = Table(header_style="bold")
    for name in sheet.columns:
        made.add_column(name, justify="right" if name in sheet.numbers else "left")
    for name, column in zip(sheet.columns, made.columns, strict=True):
        column.no_wrap = name in ("model", "mode")
    for line in sheet.lines:
        made.add_row(*(Text(printable(cell)) for cell in line))
    return made


def markdown(sheet: Sheet) -> str:
    """As a GitHub table."""
    align = ["right" if name in sheet.numbers else "left" for name in sheet.columns]
    return tabulate(
        [[_markdown_text(cell) for cell in line] for line in sheet.lines],
        headers=sheet.columns,
        tablefmt="github",
        colalign=align if sheet.lines else None,
        disable_numparse=True,
    )


def _markdown_text(text: str) -> str:
    """Text that cannot end a cell, nor start markup."""
    return "".join("\\" + c if c in r"\`*_{}[]<>|#!" else c for c in printable(text))


def measured(rows: Sequence[Row]) -> Sheet:
    """One line a cell. The machine and release are columns only where they differ."""
    places = {
        name: value
        for name, value in (("machine", _machine), ("release", _release))
        if len({value(row) for row in rows}) > 1
    }
    figures = ["eager ms", "compiled ms", "ratio [95 %]", "compile s", "warm s", "pays after"]
    lines = []
    for row in rows:
        line = [value(row) for value in places.values()]
        line += cell_columns(row.cell)
        if row.outcome.ok:
            line += _figures(row)
        else:
            line += [f"{row.outcome.status.value}: {row.outcome.reason}"]
            line += [""] * (len(figures) - 1)
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
        pays_after(row),
    ]


def ratio(interval: Interval | None) -> str:
    """A ratio with its interval, or without it where one launch cannot give any."""
    if interval is None:
        return "-"
    if math.isnan(interval.low):
        return f"{interval.value:.2f}"
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def milliseconds(interval: Interval | None) -> str:
    """A time with three digits; a dash without one."""
    return "-" if interval is None else f"{interval.value * 1e3:.3g}"


def seconds(value: float | None) -> str:
    """To a tenth; a dash without any."""
    return "-" if value is None else f"{value:.1f}"


def pays_after(row: Row) -> str:
    """When compiling has paid for itself, in words; nothing is claimed that the interval denies."""
    if row.break_even_calls is None or row.ratio is None:
        return "-"
    if not (row.ratio.high < 1 or row.ratio.low > 1):
        return "cannot tell"
    calls = row.break_even_calls
    return "never" if math.isinf(calls) else f"{calls:,.0f} calls"


def changed(comparison: Comparison, everything: bool = False) -> Sheet:
    """One line a figure that changed beyond noise, or all figures."""
    lines = [
        [
            *cell_columns(change.cell),
            name,
            ratio(effect.factor),
            effect.verdict.value,
            (change.moved or "cannot tell") if name == "time ratio" else "",
        ]
        for change in comparison.changes
        for name, effect in change.effects.items()
        if everything or effect.verdict.changed
    ]
    columns = [*CELL, "figure", "after/before [95 %]", "verdict", "who moved"]
    return Sheet(columns, frozenset(("batch", "after/before [95 %]")), lines)


def gaps(comparison: Comparison) -> Sheet:
    """The cells that cannot be compared, with the reason."""
    lines = [
        [*cell_columns(change.cell), change.gap] for change in comparison.changes if change.gap
    ]
    return Sheet([*CELL, "not compared because"], frozenset(("batch",)), lines)


def means(comparison: Comparison) -> Sheet:
    """The geometric mean over the cohort, one line a figure."""
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


def claims(judged: Sequence[Judged]) -> Sheet:
    """One line a claim."""
    lines = [
        [each.claim.id, each.claim.seed, each.claim.says, each.verdict.value, each.reason]
        for each in judged
    ]
    return Sheet(["claim", "document", "it says", "verdict", "here"], frozenset(), lines)


def coverage(covered: Mapping[str, Coverage]) -> Sheet:
    """One line a release."""
    columns = ["release", "cells", "ok", "ended otherwise", "not measured", "unexplained"]
    lines = [
        [
            version,
            str(each.ok + len(each.ended) + len(each.missing)),
            str(each.ok),
            str(len(each.ended)),
            str(len(each.missing)),
            str(len(each.unexplained)),
        ]
        for version, each in covered.items()
    ]
    return Sheet(columns, frozenset(columns[1:]), lines)


def claims_json(judged: Sequence[Judged]) -> bytes:
    """The claims for programs: a list of objects; ``ours`` and ``interval`` may be null."""
    content = [
        {
            "id": each.claim.id,
            "seed": each.claim.seed,
            "says": each.claim.says,
            "verdict": each.verdict,
            "ours": each.ours,
            "interval": None if each.interval is None else [each.interval.low, each.interval.high],
            "reason": each.reason,
        }
        for each in judged
    ]
    return msgspec.json.format(msgspec.json.encode(content))


def judgement(comparison: Comparison) -> str:
    """The comparison in plain sentences."""
    counts = dict.fromkeys(Verdict, 0)
    for change in comparison.changes:
        for effect in change.effects.values():
            counts[effect.verdict] += 1
    noise = comparison.noise
    floor = (
        "Its noise floor was not measured (no eager cells)."
        if noise is None
        else f"Its noise floor: one launch's ratio of eager to eager differs from 1 by {noise:.1%}."
    )
    unlike = (
        f" Compile costs and memory of {len(comparison.unlike)} cells are left out: before and "
        "after, their processes began with different libraries imported."
        if comparison.unlike
        else ""
    )
    return (
        f"{comparison.before} to {comparison.after} on {comparison.machine}: "
        f"{comparison.compared} of {len(comparison.changes)} cells were measured on both sides; "
        f"of {sum(counts.values())} figures {counts[Verdict.WORSE]} are worse, "
        f"{counts[Verdict.BETTER]} better, {counts[Verdict.SAME]} not changed, and of "
        f"{counts[Verdict.UNKNOWN]} one cannot tell. {floor}{unlike}"
    )


def comparison_json(comparison: Comparison) -> bytes:
    """The comparison for programs: one object, intervals as [value, low, high]."""
    content: dict[str, Any] = {
        "machine": comparison.machine,
        "before": comparison.before,
        "after": comparison.after,
        "cells": len(comparison.changes),
        "compared": comparison.compared,
        "noise": comparison.noise,
        "means": comparison.means,
        "unlike": comparison.unlike,
        "changes": [
            {
                "cell": change.cell,
                "gap": change.gap,
                "moved": change.moved,
                "effects": {
                    name: {
                        "factor": effect.factor,
                        "p": effect.p,
                        "q": effect.q,
                        "verdict": effect.verdict,
                    }
                    for name, effect in change.effects.items()
                },
            }
            for change in comparison.changes
        ],
    }
    return msgspec.json.format(msgspec.json.encode(content))


def rows_json(rows: Sequence[Row]) -> bytes:
    """The measured cells for programs: a list of objects, intervals as [value, low, high]."""
    return msgspec.json.format(msgspec.json.encode([row._asdict() for row in rows]))

"""The measured cells as a table in the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from .findings.summary import Row
from .statistics import Interval
from .terminal import printable


def table(rows: Sequence[Row]) -> Table:
    """One line a cell. The machine and release are columns only where they differ."""
    several_machines = len({row.machine for row in rows}) > 1
    several_releases = len({row.release for row in rows}) > 1
    made = Table(header_style="bold", row_styles=None)
    if several_machines:
        made.add_column("machine")
    if several_releases:
        made.add_column("release")
    for name in ("model", "batch", "mode"):
        made.add_column(name, justify="right" if name == "batch" else "left", no_wrap=True)
    for name in ("eager ms", "compiled ms", "ratio [95 %]", "compile s", "warm s", "pays after"):
        made.add_column(name, justify="right")
    for row in rows:
        cells = []
        if several_machines:
            cells.append(_text(row.machine))
        if several_releases:
            cells.append(_text(row.release))
        cells += [_text(row.cell.workload), Text(str(row.cell.batch_size)), _text(row.cell.mode)]
        if row.outcome.ok:
            cells += [Text(text) for text in _figures(row)]
        else:
            cells.append(_text(f"{row.outcome.status.value}: {row.outcome.reason}", style="red"))
        made.add_row(*cells)
    return made


def _text(found: str, style: str = "") -> Text:
    """What a result file says, taken as text: neither markup nor terminal commands."""
    return Text(printable(found), style=style)


def _figures(row: Row) -> list[str]:
    return [
        _milliseconds(row.eager_s),
        _milliseconds(row.latency_s),
        ratio(row.ratio),
        _seconds(row.cold_compile_s),
        _seconds(row.warm_compile_s),
        pays_after(row),
    ]


def ratio(interval: Interval | None) -> str:
    """A ratio with its interval, or without it where one launch cannot give any."""
    if interval is None:
        return "-"
    if math.isnan(interval.low):
        return f"{interval.value:.2f}"
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def _milliseconds(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval.value * 1e3:.3g}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def pays_after(row: Row) -> str:
    """When compiling has paid for itself, in words; nothing is claimed that the interval denies."""
    if row.break_even_calls is None or row.ratio is None:
        return "-"
    if not (row.ratio.high < 1 or row.ratio.low > 1):
        return "cannot tell"
    calls = row.break_even_calls
    return "never" if math.isinf(calls) else f"{calls:,.0f} calls"

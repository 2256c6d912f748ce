"""What several pages say in the same way."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...analysis.payoff import Payoff, payoff
from ...analysis.statistics import Interval
from ...analysis.summary import Row
from ...cell import METHOD
from ...presentation.wording import ratio
from .. import paths
from ..content import Content, Machine, label
from ..page import Choice, Link, Marked, Option, Value

# A drawing of more lines cannot be read, and a site with more drawings takes too long to make: the
# tables have everything.
MOST_LINES = 60
MOST_DRAWN_CELLS = 500

BELOW = (
    "Ratios are time in the mode over time in eager, so below 1 is a gain; the brackets are 95 % "
    "intervals over processes."
)


def name(row: Row) -> str:
    """The workload, with what makes the cell differ from plain inference."""
    return f"{row.cell.workload} ({row.cell.variant})" if row.cell.variant else row.cell.workload


def linked(machine: Machine, row: Row, text: str = "") -> Link:
    """To the cell's page."""
    return Link(text or name(row), paths.in_cell(machine.name, row.cell, row.release))


def paying(machine: Machine, row: Row, best: bool = False) -> Value:
    """The ratio as a verdict, or the reason of the gap; leads to the cell's page."""
    to = paths.in_cell(machine.name, row.cell, row.release)
    if not row.outcome.ok:
        return Marked(row.outcome.status.value, "gap", to, row.outcome.reason)
    said = payoff(row.ratio)
    text = f"{ratio(row.ratio)} {said.value}{', fastest' if best else ''}"
    return Marked(text, KINDS[said], to)


KINDS = {Payoff.GAIN: "gain", Payoff.LOSS: "loss", Payoff.NONE: "none", Payoff.UNKNOWN: "unknown"}


def machines(content: Content, here: Machine, to: Callable[[Machine], str]) -> list[Choice]:
    """The choice of machine, where there is one."""
    if len(content.machines) < 2:
        return []
    options = [Option(each.name, to(each), each is here) for each in content.machines]
    return [Choice("Machine", options)]


def releases(machine: Machine, here: str, to: Callable[[str], str]) -> Choice:
    """The choice of release."""
    return Choice(
        "Release", [Option(label(each), to(each), each == here) for each in machine.releases]
    )


def older_method(machine: Machine) -> list[str]:
    """A warning, where the machine's times were taken by another method than today's."""
    if machine.method == METHOD:
        return []
    return [
        f"Its times were taken by method {machine.method}, which method {METHOD} has replaced "
        "(docs/method.md, Turns): they may favour eager, and no newer time is comparable with them."
    ]


def percent(log: float) -> str:
    """The half-width of an interval of a log, as people say it."""
    return "an unknown amount" if math.isnan(log) else f"{math.expm1(log):.0%}"


def plural(count: int, noun: str) -> str:
    """1 cell, 2 cells; 1 process, 2 processes."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}{'es' if noun[-1] == 's' else 's'}"


def flat(row: Row) -> dict[str, Any]:
    """A row for programs: seconds, bytes, ratios; each interval as three columns."""
    made: dict[str, Any] = {
        "machine": row.machine,
        "release": row.release,
        "cell": str(row.cell),
        "workload": row.cell.workload,
        "batch_size": row.cell.batch_size,
        "mode": row.cell.mode,
        "variant": row.cell.variant,
        "outcome": row.outcome.status.value,
        "reason": row.outcome.reason,
        "verdict": payoff(row.ratio).value if row.outcome.ok else "",
    }
    for key, interval in (
        ("eager_s", row.eager_s),
        ("mode_s", row.latency_s),
        ("ratio", row.ratio),
    ):
        made |= spread(key, interval)
    return made | {
        "cold_compile_s": row.cold_compile_s,
        "warm_compile_s": row.warm_compile_s,
        "peak_memory_bytes": row.peak_memory_bytes,
        "break_even_calls": row.break_even_calls,
    }


def spread(key: str, interval: Interval | None) -> dict[str, float | None]:
    """An interval as three columns."""
    value, low, high = interval or (None, None, None)
    return {key: value, f"{key}_low": low, f"{key}_high": high}

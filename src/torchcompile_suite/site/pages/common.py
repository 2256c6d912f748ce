"""Parts that several pages share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from ...analysis.payoff import Payoff, payoff
from ...analysis.statistics import Interval
from ...analysis.summary import Row
from ...cell import METHOD
from ...presentation.wording import ratio
from .. import paths
from ..content import Content, Machine, label
from ..page import Choice, Link, Marked, Option, Page, Value

# Limits for charts. A chart with more lines cannot be read, and a site with more charts takes too
# long to make. The tables have everything.
MOST_LINES = 60
MOST_DRAWN_CELLS = 500

BELOW = (
    "A ratio is the time in the mode over the time in eager: below 1 is a gain. The brackets hold "
    "the 95 % interval over launches; a launch measures a cell once, in processes of its own."
)


def name(row: Row) -> str:
    """The workload, and how the cell differs from plain inference."""
    return f"{row.cell.workload} ({row.cell.variant})" if row.cell.variant else row.cell.workload


def linked(machine: Machine, row: Row, text: str = "") -> Link:
    """A link to the cell's page."""
    return Link(text or name(row), paths.in_cell(machine.name, row.cell, row.release))


def paying(machine: Machine, row: Row, best: bool = False) -> Value:
    """The ratio and the payoff, or why there are no numbers, with a link to the cell's page."""
    to = paths.in_cell(machine.name, row.cell, row.release)
    if not row.outcome.ok:
        return Marked(row.outcome.status.value, "gap", to, row.outcome.reason)
    pays = payoff(row.ratio)
    text = f"{ratio(row.ratio)} {pays.value}{', fastest' if best else ''}"
    return Marked(text, KINDS[pays], to)


KINDS = {Payoff.GAIN: "gain", Payoff.LOSS: "loss", Payoff.NONE: "none", Payoff.UNKNOWN: "unknown"}


def page_a_release(
    content: Content, page: Callable[[Content, Machine, str], Page]
) -> Iterator[Page]:
    """One page for each machine and release."""
    return (
        page(content, machine, release)
        for machine in content.machines
        for release in machine.releases
    )


def machines(content: Content, here: Machine, to: Callable[[Machine], str]) -> list[Choice]:
    """The choice of the machine; empty if there is only one."""
    if len(content.machines) < 2:
        return []
    options = [Option(machine.name, to(machine), machine is here) for machine in content.machines]
    return [Choice("Machine", options)]


def releases(machine: Machine, here: str, to: Callable[[str], str]) -> Choice:
    """The choice of the release."""
    return Choice(
        "Release",
        [Option(label(release), to(release), release == here) for release in machine.releases],
    )


def older_method(machine: Machine) -> list[str]:
    """A warning if the machine's times were measured by an older method."""
    if machine.method == METHOD:
        return []
    return [
        f"These times were measured by method {machine.method}, which method {METHOD} has replaced "
        "(see docs/method.md). The state of the heap in them is not known, and they cannot be "
        "compared with newer times."
    ]


def percent(log: float) -> str:
    """The half-width of an interval of a log, in per cent."""
    return "an unknown amount" if math.isnan(log) else f"{math.expm1(log):.0%}"


def plural(count: int, noun: str) -> str:
    """The count with its noun: 1 cell, 2 cells; 1 launch, 2 launches."""
    if count == 1:
        return f"{count} {noun}"
    return f"{count} {noun}{'es' if noun.endswith(('s', 'ch')) else 's'}"


def flat(row: Row) -> dict[str, Any]:
    """The data of a row: seconds, bytes and ratios, each interval as three columns."""
    data: dict[str, Any] = {
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
        data |= spread(key, interval)
    return data | {
        "cold_compile_s": row.cold_compile_s,
        "warm_compile_s": row.warm_compile_s,
        "peak_memory_bytes": row.peak_memory_bytes,
        "break_even_calls": row.break_even_calls,
    }


def spread(key: str, interval: Interval | None) -> dict[str, float | None]:
    """An interval as three columns."""
    value, low, high = interval or (None, None, None)
    return {key: value, f"{key}_low": low, f"{key}_high": high}

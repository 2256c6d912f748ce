"""Figures and judgements in words: how every command and page writes them."""

from __future__ import annotations

import math

from ..analysis.change import Comparison, Verdict
from ..analysis.statistics import Interval
from ..analysis.summary import Row


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


def printable(text: str) -> str:
    """Text of a result file without what a terminal would obey: escapes, bells, line breaks."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)

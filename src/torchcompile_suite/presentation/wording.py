"""Figures and judgements in words: how every command and page writes them."""

from __future__ import annotations

from ..analysis.change import Comparison, Difference
from ..analysis.statistics import Interval


def ratio(interval: Interval | None) -> str:
    """A ratio with its interval, or without it where one launch cannot give any."""
    return "-" if interval is None else str(interval)


def milliseconds(interval: Interval | None) -> str:
    """A time with three digits; a dash without one."""
    return "-" if interval is None else f"{interval.value * 1e3:.3g}"


def seconds(value: float | None) -> str:
    """To a tenth; a dash without any."""
    return "-" if value is None else f"{value:.1f}"


def judgement(comparison: Comparison) -> str:
    """The comparison in plain sentences."""
    counts = dict.fromkeys(Difference, 0)
    for change in comparison.changes:
        for effect in change.effects.values():
            counts[effect.difference] += 1
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
        f"of {sum(counts.values())} figures {counts[Difference.WORSE]} are worse, "
        f"{counts[Difference.BETTER]} better, {counts[Difference.SAME]} not changed, and of "
        f"{counts[Difference.UNKNOWN]} one cannot tell. {floor}{unlike}"
    )


def printable(text: str) -> str:
    """Text of a result file without what a terminal would obey: escapes, bells, line breaks."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)

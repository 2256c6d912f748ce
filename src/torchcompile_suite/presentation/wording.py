"""Figures in words, and content as JSON: how all commands and pages write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ..analysis.change import Comparison, Difference
from ..analysis.payoff import Payoff
from ..analysis.statistics import Interval, formatted, having


def ratio(interval: Interval | None) -> str:
    """A ratio with its interval; a dash without a ratio."""
    return "-" if interval is None else str(interval)


def milliseconds(interval: Interval | None) -> str:
    """A time in milliseconds with three digits; a dash without a time."""
    return "-" if interval is None else formatted(interval.value * 1e3, ".3g")


def duration(seconds: float | None) -> str:
    """A time with three digits in a unit that suits it; a dash without a time."""
    if seconds is None:
        return "-"
    units = (("s", 1.0), ("ms", 1e3), ("us", 1e6))
    unit, scale = units[0 if seconds >= 0.9995 else 1 if seconds >= 1e-4 else 2]
    return f"{formatted(seconds * scale, '.3g')} {unit}"


def seconds(value: float | None) -> str:
    """Seconds with one decimal; a dash without a time."""
    return number(value, ".1f")


def number(value: Interval | float | None, spec: str, scale: float = 1) -> str:
    """The value times ``scale``, in a format for each of its numbers; a dash without a value."""
    if value is None:
        return "-"
    if isinstance(value, Interval):
        return format(value.scaled(scale), spec)
    return formatted(value * scale, spec)


def count(things: int | None) -> str:
    """A number of things, with commas between thousands; a dash without one."""
    return number(things, ",")


def plural(number: int, noun: str) -> str:
    """The number with its noun: 1 cell, 2 cells; 1 launch, 2 launches."""
    if number == 1:
        return f"{number} {noun}"
    return f"{number} {noun}{'es' if noun.endswith(('s', 'ch')) else 's'}"


def of_known(found: Sequence[Interval]) -> str:
    """`` (of 2)``: over how many a mean is that leaves out what has no interval (`having`).

    Empty if it is over all.
    """
    known = len(having(found))
    return f" (of {known})" * (known < len(found))


def listed(texts: Iterable[str]) -> str:
    """The texts in one sentence: "a, b and c". There is at least one."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def without_gain(number: Mapping[Payoff, int]) -> str:
    """How many cells have another payoff than a gain: ", slower in 2, cannot tell in 1"."""
    others = [pays for pays in Payoff if pays is not Payoff.GAIN and number[pays]]
    return "".join(f", {pays.value} in {number[pays]}" for pays in others)


def judgement(comparison: Comparison) -> str:
    """The comparison in sentences."""
    counts = dict.fromkeys(Difference, 0)
    for change in comparison.changes:
        for effect in change.effects.values():
            counts[effect.difference] += 1
    noise = comparison.noise
    floor = (
        "The noise floor was not measured: there are no eager cells."
        if noise is None
        else f"Noise floor: in one launch, the ratio of eager to eager is off by {noise:.1%}."
    )
    unlike = (
        f" Left out are compile costs and memory of {plural(len(comparison.unlike), 'cell')} whose "
        "processes started with different libraries imported, before and after."
        if comparison.unlike
        else ""
    )
    packages = "".join(
        f" In {plural(len(cells), 'cell')} another package differs, too ({said}): a change there "
        "may be its own."
        for said, cells in comparison.packages.items()
    )
    return (
        f"{comparison.before} to {comparison.after} on {comparison.machine}: "
        f"{comparison.compared} of {len(comparison.changes)} cells can be compared. "
        f"{_turns(comparison)} "
        f"Of {plural(sum(counts.values()), 'figure')}: {counts[Difference.WORSE]} worse, "
        f"{counts[Difference.BETTER]} better, {counts[Difference.SAME]} not changed, and for "
        f"{counts[Difference.UNKNOWN]} the measurement does not decide. {floor}{unlike}{packages}"
    )


def averaged(comparison: Comparison) -> str:
    """What the means of a comparison are over, in words."""
    cells = plural(len(comparison.in_means), "cell")
    of = " of models as users run them" if comparison.of_models else ""
    return f"{cells}{of}, as far as each has the figure"


def _turns(comparison: Comparison) -> str:
    """The sentence that says which cells were measured in turns."""
    paired, compared = comparison.paired, comparison.compared
    before, after = comparison.before, comparison.after
    turns = (
        "measured in turns: times are compared round by round, and time ratios and memory, which "
        "do not drift, launch by launch"
    )
    # A commit has no dot, and `history` measures releases only.
    how = f" (for times: torchcompile-suite history v{before} v{after})" if "." in before else ""
    apart = f"measured one run after the other, so only their ratios and memory are compared{how}"
    if not paired:
        return f"They were {apart}."
    if paired == compared:
        return f"All of them were {turns}."
    return f"{paired} of them were {turns}. The others were {apart}."


# JSON escapes those below U+0020 itself. The others are controls, and what turns a line around.
_CONTROLS = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069]")


def printable(text: str) -> str:
    """The text with control characters, escapes and line breaks replaced.

    Text of a result file could otherwise control the terminal.
    """
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def written(content: Any) -> bytes:
    """The content as indented JSON. What could control a terminal is escaped in its texts."""
    text = msgspec.json.format(msgspec.json.encode(content)).decode()
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()

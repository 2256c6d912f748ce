"""Why a call takes the time that it takes: a sentence, a table, and what usually helps."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Iterator
from statistics import fmean

from msgspec import Struct

from ..analysis.advice import disagreement
from ..analysis.statistics import Interval, formatted, geometric_interval
from ..analysis.why import LONG_S, MISSING, WORTH, Family, Group, Side, Why, numbered
from ..attribution import Split, Step
from ..cell import Cell
from .sheets import Sheet
from .wording import listed, milliseconds, number, ratio, written

# The table has so many lines, and the sentence so many losses and so many gains.
MOST_LINES = 12
MOST_NAMED = 2
MOST_CODE = 60
EAGER_AND_COMPILED = ("eager", "compiled")
SUMMED_UP = ["eager ms", "compiled ms", "ratio [95 %]", "loses most in", "gains most in"]
_KERNEL_NAME = re.compile(r"\b((?:cpp|triton)_[a-z]+_\w*?)_?\d+\b")


def sentences(why: Why, names: tuple[str, str]) -> Iterator[str]:
    """The answer in sentences. ``names``: of the two calls."""
    first, second = (fmean(side.calls_s) for side in (why.before, why.after))
    times = f"A call takes {_ms(first)} ms ({names[0]}) and {_ms(second)} ms ({names[1]})"
    yield f"{times}." if _torn(why) else f"{times}: {why.ratio} of {names[0]}'s time."
    yield from reasons(why, names)


def reasons(why: Why, names: tuple[str, str]) -> Iterator[str]:
    """What makes the difference, in sentences, without the times of the calls."""
    if why.other_code:
        yield f"Launches with other code than the first, which do not count: {why.other_code}."
    if torn := _torn(why):
        yield f"Cannot tell why: {torn}. Repeat it when nothing else runs."
        return
    if not why.ratio.known:
        yield "One launch gives no interval, so no difference is sure."
        return
    losses, gains = worth_naming(why)
    parts = []
    if losses:
        parts.append(f"loses {listed(map(named, losses[:MOST_NAMED]))}")
    if gains:
        parts.append(f"gains {listed(map(named, gains[:MOST_NAMED]))}")
    if parts:
        yield f"It {' and '.join(parts)}."
    else:
        yield "No part of the call makes a difference that the launches agree on."
    for side, name in ((why.before, names[0]), (why.after, names[1])):
        if abs(side.missing) > MISSING and fmean(side.calls_s) > LONG_S:
            more = "more" if side.missing > 0 else "less"
            yield f"The parts of the {name} call add up to {abs(side.missing):.0%} {more} than it."


def _torn(why: Why) -> str:
    """How far the launches disagree about the ratio or a call's time; empty if they do not."""
    times = (geometric_interval(side.calls_s) for side in (why.before, why.after))
    return next(filter(None, map(disagreement, (why.ratio, *times))), "")


def worth_naming(why: Why) -> tuple[list[Family], list[Family]]:
    """Losses and gains that the launches are sure of and that are worth a word, largest first."""
    least_s = WORTH * fmean(why.before.calls_s)
    worth = [one for one in why.families if one.sure and abs(one.difference_s.value) >= least_s]
    return (
        [family for family in worth if family.difference_s.value > 0],
        [family for family in worth if family.difference_s.value < 0],
    )


def summed_up(why: Why) -> list[str]:
    """The values of the columns `SUMMED_UP`."""
    times = (geometric_interval(side.calls_s) for side in (why.before, why.after))
    largest = (named(of[0]) if of else "-" for of in worth_naming(why))
    return [*map(milliseconds, times), ratio(why.ratio), *largest]


def named(family: Family) -> str:
    """Such as ``1.53 ms in 20 times conv2d (`conv` and others)``."""
    number = len(family.groups)
    what = f"{number} times {family.what}" if number > 1 else family.what
    module = family.groups[0].module
    where = f" (`{module}`{' and others' * (number > 1)})" if module else ""
    return f"{_ms(abs(family.difference_s.value))} ms in {what}{where}"


def sheet(why: Why, names: tuple[str, str], everything: bool = False) -> Sheet:
    """A line for each family."""
    first = fmean(why.before.calls_s)
    lines = []
    for family in why.families if everything else why.families[:MOST_LINES]:
        group = family.groups[0]
        difference = family.difference_s
        lines.append(
            [
                str(len(family.groups)) if group.operators else "",
                family.what,
                group.module,
                _steps(group.after),
                _ms(family.before_s.value),
                _ms(family.after_s.value),
                number(difference, "+.3f", 1e3),
                f"{difference.value / first:+.1%}",
            ]
        )
    columns = ["groups", "operators", "in (first)", "kernels", *(f"{name} ms" for name in names)]
    columns += ["difference [95 %]", f"of {names[0]}"]
    return Sheet(columns, frozenset(("groups", *columns[4:])), lines)


def _steps(steps: Iterable[Step]) -> str:
    """What computes the operators, such as ``2 generated, convolution``."""
    names = (step.name if step.kind in ("library", "operator") else "generated" for step in steps)
    # MultiOutput takes a part of a library's result.
    return ", ".join(numbered(name for name in names if name != "MultiOutput"))


def remedies(why: Why) -> Iterator[str]:
    """What a test has shown to help against the largest losses, each once."""
    if _torn(why):
        return
    steps = why.after.splits[0].steps
    training = any(step.direction == "backward" for step in steps)
    losses = [
        (step, "conv" in family.what.lower())
        for family in worth_naming(why)[0]
        for group in family.groups
        for step in group.after
        if step.weights or (step.kind == "copy" and "conv" in family.what.lower())
    ]
    if not training and any(step.weights for step, _ in losses):
        yield (
            "Copies of weights are the same in each call. For inference, freeze the weights: "
            "torch._inductor.config.freezing = True before torch.compile, calls under "
            "torch.no_grad()."
        )
    if any(convolves for _, convolves in losses):
        yield (
            "Convolutions want channels_last, for the model and its input, where it is not so: "
            "--channels-last"
        )


def code_changes(why: Why) -> list[str]:
    """The largest difference worth naming whose generated code differs: lines of a diff.

    Empty if there is none. Numbers in the names of kernels are left out.
    """
    worth = itertools.chain(*worth_naming(why))
    for family in sorted(worth, key=lambda one: -abs(one.difference_s.value)):
        group = family.groups[0]
        one, two = _code(why.before, group.before), _code(why.after, group.after)
        if (one or two) and one != two:
            changes = difflib.unified_diff(one, two, "before", "after", n=2, lineterm="")
            return [f"{family.what}:", *changes]
    return []


def _code(side: Side, steps: Iterable[Step]) -> list[str]:
    found = [side.code.get(f"{step.graph}/{step.name}", "") for step in steps]
    return _KERNEL_NAME.sub(r"\1", "\n".join(found)).splitlines()


class ExplainedCall(Struct):
    """One of the two calls; see `analysis.why.Side`. ``code``: of each kernel, by graph/name."""

    name: str
    torch: str
    missing: float
    launches: list[Split]
    code: dict[str, str]


class ExplainedFamily(Struct):
    """Groups that are alike, with the seconds of all of them together."""

    what: str
    before_s: Interval
    after_s: Interval
    difference_s: Interval
    groups: list[Group]


class Explained(Struct):
    """The whole answer of ``torchcompile-suite why``. ``ratio``: second call over the first."""

    cells: list[Cell]
    calls: list[ExplainedCall]
    ratio: Interval
    sentences: list[str]
    remedies: list[str]
    families: list[ExplainedFamily]


def as_json(cells: Iterable[Cell], names: tuple[str, str], why: Why) -> bytes:
    """The whole answer as JSON."""
    calls = [
        ExplainedCall(name, side.torch, side.missing, side.splits, side.code)
        for name, side in zip(names, (why.before, why.after), strict=True)
    ]
    families = [
        ExplainedFamily(one.what, one.before_s, one.after_s, one.difference_s, one.groups)
        for one in why.families
    ]
    return written(
        Explained(
            list(cells),
            calls,
            why.ratio,
            list(sentences(why, names)),
            list(remedies(why)),
            families,
        )
    )


def _ms(seconds: float) -> str:
    return formatted(seconds * 1e3, ".3g" if abs(seconds) >= 1e-5 else ".4f")

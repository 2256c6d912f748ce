"""What makes the difference between two calls of one model: eager and compiled, or two compiled.

A *group* is a set of operators of the model and the steps that compute them on either side. An
operator and a step belong together if the step computes the operator, so a group is the smallest
set that both sides compute on their own. What moves from one kernel of a group to another is no
difference. Groups that are alike, such as the same block sixteen times, are a *family*.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Sequence
from itertools import takewhile
from statistics import fmean, median
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from ..attribution import Attribution, Direction, Operator, Place, Split, Step
from ..measurement import Launch
from .statistics import Interval, geometric_interval, mean_interval

# A group whose quotient differs by this factor from that of its like is named on its own, if it
# makes a difference of such a share of the call.
UNLIKE, WORTH = 2.0, 0.01
# So much of the call has to be missing in the sum of its parts before a reader is told, in calls
# that are as long as that.
MISSING, LONG_S = 0.03, 1e-3
# The parts of a call outside of its steps, by the name of the group that they are.
_AROUND: dict[str, tuple[Place, ...]] = {
    "outside of the operators": ("entry", "python", "exit"),
    "guards": ("guards",),
    "buffers between kernels": ("buffers",),
    "idle gaps of the device": ("idle",),
}
_LINE = re.compile(r"(?<=\.py):\d+(?=: )")
Origin: TypeAlias = tuple[Direction, Hashable]


class Side(NamedTuple):
    """One of the two calls, with that version of torch.

    ``splits``: of each launch, with equal steps. ``origins``: for each step the operators that it
    computes, under names that both sides share. ``operators``: by that name.
    """

    torch: str
    splits: list[Split]
    origins: list[list[Origin]]
    operators: dict[Origin, Operator]
    code: dict[str, str]

    @property
    def calls_s(self) -> list[float]:
        """Seconds of a call, by launch."""
        return [split.call_s for split in self.splits]

    def seconds(self, steps: Sequence[int]) -> list[float]:
        """Seconds of these steps together, by launch."""
        return [math.fsum(split.steps[at].seconds for at in steps) for split in self.splits]

    def rest_s(self, places: Sequence[Place]) -> list[float]:
        """Seconds at these places outside of all steps, by launch."""
        return [math.fsum(split.rest_s.get(at, 0.0) for at in places) for split in self.splits]

    @property
    def missing(self) -> float:
        """How much more than the call its parts are, as a share of the call.

        A rest below 0 means that the steps took longer where they were timed: then it is that.
        """
        return median(_missing(split) for split in self.splits)


def _missing(split: Split) -> float:
    beyond = -min([0.0, *split.rest_s.values()])
    off = split.sum_s - split.call_s
    return (off if abs(off) > beyond else beyond) / split.call_s


class Group(Struct, frozen=True):
    """A group, or a part of the call outside of all steps.

    - ``what``: the operators, or the name of the part.
    - ``before``, ``after``: its steps. ``before_s``, ``after_s``: their seconds, by launch.
    """

    what: str
    operators: list[Operator]
    before: list[Step]
    after: list[Step]
    before_s: list[float]
    after_s: list[float]

    @property
    def factor(self) -> float:
        """The second time over the first; infinite if there is no first one."""
        first = fmean(self.before_s)
        return fmean(self.after_s) / first if first > 0 else math.inf

    @property
    def module(self) -> str:
        """The path of the smallest module that calls all of the operators."""
        paths = (operator.module.split(".") for operator in self.operators)
        shared = takewhile(lambda names: len(set(names)) == 1, zip(*paths, strict=False))
        return ".".join(names[0] for names in shared)

    @property
    def kind(self) -> Hashable:
        """Equal for groups that are alike."""
        return self.what, _counted(self.before), _counted(self.after)


class Family(NamedTuple):
    """Groups that are alike."""

    groups: list[Group]

    @property
    def what(self) -> str:
        """What each of them is."""
        return self.groups[0].what

    @property
    def before_s(self) -> Interval:
        """Seconds in the first call, with their interval over launches."""
        return mean_interval(_sums(group.before_s for group in self.groups))

    @property
    def after_s(self) -> Interval:
        """Seconds in the second call."""
        return mean_interval(_sums(group.after_s for group in self.groups))

    @property
    def difference_s(self) -> Interval:
        """The second minus the first: a loss is above 0."""
        before = _sums(group.before_s for group in self.groups)
        after = _sums(group.after_s for group in self.groups)
        return mean_interval([two - one for one, two in zip(before, after, strict=True)])

    @property
    def sure(self) -> bool:
        """Whether the launches agree on the sign of the difference."""
        return self.difference_s.low > 0 or self.difference_s.high < 0


class Why(NamedTuple):
    """The answer: families, those first that make the most difference.

    ``other_code``: launches that do not count, because their code was not that of the first one.
    Of two calls, the launch that the other one made beside it does not count either.
    """

    before: Side
    after: Side
    families: list[Family]
    other_code: int = 0

    @property
    def ratios(self) -> list[float]:
        """The second call over the first, by launch."""
        return [two / one for one, two in zip(self.before.calls_s, self.after.calls_s, strict=True)]

    @property
    def ratio(self) -> Interval:
        """The second call over the first, with its interval over launches."""
        return geometric_interval(self.ratios)


def compiled_against_eager(launches: Sequence[Launch]) -> Why:
    """Why a compiled call takes another time than an eager one. At least one launch is ok."""
    own = [one for one in _alike(launches) if one is not None]
    names: list[Hashable] = list(range(len(own[0].operators)))
    torch = _torch(launches)
    before, after = (
        _side([getattr(one, side) for one in own], names, own[0], torch)
        for side in ("eager", "mode")
    )
    return _why(before, after)._replace(other_code=len(launches) - len(own))


def call_against_call(
    before: Sequence[Launch], after: Sequence[Launch], side: Literal["eager", "mode"] = "mode"
) -> Why:
    """Why a call of ``after`` takes another time than that of ``before``: the compiled one, or by
    ``side`` the eager one. Launches at the same place of both lists were made one after the other,
    and the first ones are ok.

    Operators are the same if the same line of the same module calls them; else, if the same code
    does: the lines of torch's own modules move between releases.
    """
    alike = _alike(before), _alike(after)
    beside = zip(*alike, strict=True)
    pairs = [(one, two) for one, two in beside if one is not None and two is not None]
    one, two = zip(*pairs, strict=True)
    placed = [{(each.module, each.where) for each in side[0].operators} for side in (one, two)]
    named = [_origins(side[0].operators, placed[0] & placed[1]) for side in (one, two)]
    for origin in _unequal(*named):
        for names in named:
            names[:] = [name[:1] if name[0] == origin else name for name in names]
    sides = (
        _side([getattr(each, side) for each in own], names, own[0], _torch(launches))
        for own, names, launches in zip((one, two), named, (before, after), strict=True)
    )
    return _why(*sides)._replace(other_code=sum(each.count(None) for each in alike))


def _side(splits: list[Split], names: Sequence[Hashable], one: Attribution, torch: str) -> Side:
    """``names``: of the operators of ``one``. An operator has a backward pass of its own."""
    origins = [[(step.direction, names[at]) for at in step.operators] for step in splits[0].steps]
    directions: tuple[Direction, ...] = ("forward", "backward")
    operators = {
        (direction, name): operator
        for direction in directions
        for name, operator in zip(names, one.operators, strict=True)
    }
    return Side(torch, splits, origins, operators, one.code)


def _origins(
    operators: Sequence[Operator], of_both: Container[tuple[str, str]]
) -> list[tuple[Hashable, ...]]:
    """A name for each operator: module and line, and its number among those of that line.

    ``of_both``: the modules and lines that both calls have. Of another line only the code counts.
    """
    seen: Counter[Hashable] = Counter()
    names: list[tuple[Hashable, ...]] = []
    for operator in operators:
        origin = operator.module, operator.where
        if origin not in of_both:
            origin = operator.module, _LINE.sub("", operator.where)
        names.append((origin, seen[origin]))
        seen[origin] += 1
    return names


def _unequal(
    one: Iterable[tuple[Hashable, ...]], two: Iterable[tuple[Hashable, ...]]
) -> set[Hashable]:
    """The lines from which the two captured another number of operators."""
    counts = [Counter(name[0] for name in names) for names in (one, two)]
    return {origin for origin in {*counts[0], *counts[1]} if counts[0][origin] != counts[1][origin]}


def _alike(launches: Sequence[Launch]) -> list[Attribution | None]:
    """Of each launch with the steps that the first one has; None for another one."""
    made = [one.attribution for one in launches]
    first = _steps(next(one for one in made if one is not None))
    return [one if one is not None and _steps(one) == first else None for one in made]


def _steps(one: Attribution) -> list[list[tuple[object, ...]]]:
    return [
        [(step.name, step.kind, step.direction, *step.operators) for step in split.steps]
        for split in (one.eager, one.mode)
    ]


def _torch(launches: Sequence[Launch]) -> str:
    return next((one.environment.torch for one in launches if one.environment), "")


def _why(before: Side, after: Side) -> Why:
    groups = [*_groups(before, after), *_copies(before, after), *_around(before, after)]
    families = _families(groups, WORTH * fmean(before.calls_s))
    families.sort(key=lambda family: -abs(family.difference_s.value))
    return Why(before, after, families)


def _groups(before: Side, after: Side) -> Iterable[Group]:
    """The groups of operators."""
    joined: dict[Hashable, Hashable] = {}

    def root(name: Hashable) -> Hashable:
        while (above := joined.setdefault(name, name)) != name:
            name = above
        return name

    members: dict[Hashable, list[Any]] = defaultdict(lambda: [{}, [], []])
    placed = [
        (number, at, side.origins[at] or [("forward", (number, at))])
        for number, side in enumerate((before, after), 1)
        for at, step in enumerate(side.splits[0].steps)
        if step.kind != "copy"
    ]
    for _, _, origins in placed:
        for origin in origins[1:]:
            joined[root(origin)] = root(origins[0])
    for number, at, origins in placed:
        found = members[root(origins[0])]
        found[0] |= dict.fromkeys(origins)
        found[number].append(at)
    known = {**after.operators, **before.operators}
    for origins, first, second in members.values():
        operators = [known[origin] for origin in origins if origin in known]
        backward = any(direction == "backward" for direction, _ in origins)
        steps = [
            side.splits[0].steps[at]
            for side, own in ((before, first), (after, second))
            for at in own
        ]
        copying = " and copies of weights" * any(step.weights for step in steps)
        what = f"{'backward of ' * backward}{_what(operators)}{copying}"
        yield _group(what, operators, before, after, first, second)


def _copies(before: Side, after: Side) -> Iterable[Group]:
    """Copies into another layout: for the same operators on both sides they are one group."""
    found: dict[Hashable, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for number, side in enumerate((before, after)):
        for at, step in enumerate(side.splits[0].steps):
            if step.kind == "copy":
                found[frozenset(side.origins[at]), step.weights][number].append(at)
    for first, second in found.values():
        side, at = (before, first[0]) if first else (after, second[0])
        operators = [side.operators[origin] for origin in side.origins[at]]
        tensor = "weights" if side.splits[0].steps[at].weights else "a tensor"
        served = ", ".join(dict.fromkeys(each.called for each in operators))
        yield _group(f"copy of {tensor} before {served}", operators, before, after, first, second)


def _around(before: Side, after: Side) -> Iterable[Group]:
    around = dict(_AROUND)
    splits = [*before.splits, *after.splits]
    if any("entry" in split.rest_s and "guards" not in split.rest_s for split in splits):
        # Not known apart: a call has them before it enters the generated code.
        around["outside of the operators"] += around.pop("guards")
    for what, places in around.items():
        first, second = before.rest_s(places), after.rest_s(places)
        if any(first) or any(second):
            yield Group(what, [], [], [], first, second)


def _group(
    what: str,
    operators: list[Operator],
    before: Side,
    after: Side,
    first: list[int],
    second: list[int],
) -> Group:
    return Group(
        what,
        operators,
        [before.splits[0].steps[at] for at in first],
        [after.splits[0].steps[at] for at in second],
        before.seconds(first),
        after.seconds(second),
    )


def _families(groups: Iterable[Group], worth_s: float) -> list[Family]:
    alike: dict[Hashable, list[Group]] = defaultdict(list)
    for group in groups:
        alike[group.kind].append(group)
    families = []
    for members in alike.values():
        usual = median(group.factor for group in members)
        own = [
            each
            for each in members
            if not usual / UNLIKE <= each.factor <= usual * UNLIKE
            and abs(fmean(each.after_s) - fmean(each.before_s)) >= worth_s
        ]
        apart = set(map(id, own))  # to compare each with each would take long
        rest = [each for each in members if id(each) not in apart]
        families += [Family([each]) for each in own] + ([Family(rest)] if rest else [])
    return families


def numbered(names: Iterable[str]) -> list[str]:
    """Each name once, with its number if that is not 1."""
    counts = Counter(names)
    return [f"{number} {name}" if number > 1 else name for name, number in counts.items()]


def _what(operators: Sequence[Operator]) -> str:
    """The operators in words, such as ``batch_norm, 2 relu``."""
    names = numbered(operator.called for operator in operators)
    if len(names) > 4:
        names = [*names[:3], f"{len(names) - 3} more"]
    return ", ".join(names) or "an operator that the compiler does not name"


def _counted(steps: Iterable[Step]) -> Hashable:
    own = ("generated", "copy")
    names = Counter(step.kind if step.kind in own else step.name for step in steps)
    return tuple(sorted(names.items()))


def _sums(lists: Iterable[list[float]]) -> list[float]:
    return [math.fsum(each) for each in zip(*lists, strict=True)]

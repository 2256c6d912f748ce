"""Bisection: which commits are measured, how often, and which one is the first bad commit."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ..analysis.statistics import Interval
from ..errors import SuiteError
from . import judge
from .judge import Side

# Launches before the first decision. The good and the bad end come first, because every other
# commit is compared with them.
FIRST_OF_ENDS = 3
FIRST_OF_STEP = 2
# Limits of launches for an end and for a step.
MOST_OF_ENDS = 16
MOST_OF_STEP = 20
# Launches of the last good and the first bad commit, in turns, when all is decided. Until then each
# commit was compared with ends that were measured up to an hour before.
AT_THE_END = 3
# Limit for measuring an undecided commit again, if it lies between good and bad in the end.
MOST_OF_SUSPECT = 40


class Measures(Protocol):
    """The measurements that a search needs. `measuring.Measuring` implements it."""

    @property
    def refused(self) -> Mapping[str, str]:
        """The commits that cannot be measured, with the reason."""

    def values(self, commit: str) -> list[float]:
        """The metric of the commit, one value a launch."""

    def measure(self, commit: str, count: int) -> None:
        """Measure until the commit has ``count`` values, or enter the reason into ``refused``."""


class Step(Struct, frozen=True):
    """A commit that was measured: its side and its values.

    ``reason``: why the side is unknown; otherwise empty.
    """

    commit: str
    side: Side
    values: list[float]
    reason: str = ""


class Result(NamedTuple):
    """The answer of a search.

    - ``before``: the last good commit.
    - ``suspects``: one of these is the first bad commit. Only the last one could be measured and
      decided.
    - ``factor``: bad over good.
    - ``again``: the last suspect over ``before``, of launches in turns at the end.
    - ``steps``: all commits that were measured.
    """

    before: str
    suspects: list[str]
    factor: Interval
    again: Interval
    steps: list[Step]

    @property
    def confirmed(self) -> bool:
        """Whether the launches at the end differ, in the same direction as all."""
        value = self.factor.value
        return self.again.low > 1 if value > 1 else self.again.high < 1


def bisect(
    commits: Sequence[str], measures: Measures, report: Callable[[Step], None] = lambda _: None
) -> Result:
    """Find the first bad commit. ``commits``: oldest first; the first is good, the last is bad.

    1. Both ends are measured until they differ beyond the risk.
    2. Each step is measured until its side is known. A commit that cannot be measured or decided is
       skipped.
    3. Undecided commits that lie between good and bad in the end are measured again, in turns with
       their two neighbours.
    4. The last good and the first bad commit are measured once more, in turns.

    ``report`` gets each step. Raises SuiteError if the ends cannot be measured, or do not
    differ.
    """
    steps: dict[str, Step] = {}

    def done(step: Step) -> None:
        steps[step.commit] = step
        report(step)

    first, last = commits[0], commits[-1]
    _ends(first, last, measures)
    done(Step(first, Side.GOOD, measures.values(first)))
    done(Step(last, Side.BAD, measures.values(last)))
    good, bad = 0, len(commits) - 1
    skipped: set[int] = set()
    most, beside = MOST_OF_STEP, False
    while True:
        place = next_place(good, bad, skipped)
        if place is None:
            # Undecided commits were left for later: most of them turn out not to matter.
            undecided = {at for at in skipped if commits[at] not in measures.refused}
            if beside or not undecided.intersection(range(good, bad)):
                break
            skipped -= undecided
            most, beside = MOST_OF_SUSPECT, True
            continue
        ends = (commits[good], commits[bad]) if beside else ()
        step = _step(commits[place], list(steps.values()), measures, most, ends)
        done(step)
        if step.side is Side.GOOD:
            good = place
        elif step.side is Side.BAD:
            bad = place
        else:
            skipped.add(place)
    pair = commits[good], commits[bad]
    known = [len(measures.values(commit)) for commit in pair]
    for more in range(1, AT_THE_END + 1):
        for commit, count in zip(pair, known, strict=True):
            measures.measure(commit, count + more)
    # Some commits were measured again after their step, so their values are read once more.
    final = [replace(step, values=measures.values(step.commit)) for step in steps.values()]
    factor = judge.factor(
        _pooled(final, Side.GOOD, measures),
        _pooled(final, Side.BAD, measures),
        [step.values for step in final],
    )
    good_again, bad_again = (
        measures.values(commit)[count:] for commit, count in zip(pair, known, strict=True)
    )
    again = Interval(math.nan, math.nan, math.nan)  # where what could be measured now cannot
    if good_again and bad_again:
        again = judge.factor(good_again, bad_again, [step.values for step in final])
    return Result(commits[good], list(commits[good + 1 : bad + 1]), factor, again, final)


def next_place(good: int, bad: int, skipped: Container[int]) -> int | None:
    """The index of the commit to measure next: nearest to the middle between ``good`` and ``bad``,
    and not ``skipped``.

    None if there is none: then the first bad commit is ``bad``, or a skipped one before it.
    """
    middle = (good + bad) / 2
    inside = [place for place in range(good + 1, bad) if place not in skipped]
    return min(inside, key=lambda place: (abs(place - middle), place), default=None)


def _ends(first: str, last: str, measures: Measures) -> None:
    for count in _looks(FIRST_OF_ENDS, MOST_OF_ENDS):
        for end in (first, last):
            measures.measure(end, count)
            if end in measures.refused:
                raise SuiteError(f"{end[:10]} cannot be measured: {measures.refused[end]}")
            if len(measures.values(end)) < 2:
                raise SuiteError(
                    f"{end[:10]} gives no value of this metric; choose another --metric or cell"
                )
        samples = measures.values(first), measures.values(last)
        # Each step is compared with the middle between the ends: half of the difference.
        if judge.differ(*samples, samples, times=2):
            return
    if judge.differ(*samples, samples):
        return
    factor = judge.factor(*samples, samples)
    raise SuiteError(
        f"{last[:10]} over {first[:10]} is {factor:.3f} after {MOST_OF_ENDS} launches each: too "
        "little for a search; name other commits, another cell or another metric"
    )


def _step(
    commit: str, steps: Sequence[Step], measures: Measures, most: int, beside: Sequence[str]
) -> Step:
    """Measure the commit until its side is known, in turns with the commits ``beside`` it.

    All commits that are known to be good form one sample of good, and so do the bad ones. With the
    two ends alone, the decision about the tenth commit would be no surer than about the second.
    """
    for count in _looks(FIRST_OF_STEP, most):
        for measured in (commit, *beside):
            measures.measure(measured, count)
        if commit in measures.refused:
            return Step(commit, Side.UNKNOWN, [], measures.refused[commit])
        values = measures.values(commit)
        others = [measures.values(step.commit) for step in steps if step.commit != commit]
        side = judge.side(
            values,
            _pooled(steps, Side.GOOD, measures),
            _pooled(steps, Side.BAD, measures),
            [*others, values],
        )
        if side is not Side.UNKNOWN:
            return Step(commit, side, values)
    return Step(commit, Side.UNKNOWN, values, f"cannot tell after {most} launches")


def _looks(first: int, most: int) -> Iterator[int]:
    """Counts of launches after which a decision is tried.

    Each look costs one overlay, and one process that imports torch. The later looks are therefore
    farther apart.
    """
    count = first
    while count < most:
        yield count
        count += max(1, count // 3)
    yield most


def _pooled(steps: Sequence[Step], side: Side, measures: Measures) -> list[float]:
    return [value for step in steps if step.side is side for value in measures.values(step.commit)]

"""The first bad commit between a good and a bad one: what is measured, until when, the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from ..analysis.statistics import Interval
from ..errors import SuiteError
from . import judge, search
from .judge import Side

# Good and bad are measured first: everything else is held against them.
FIRST_OF_ENDS = 3
FIRST_OF_STEP = 2
MOST_OF_ENDS = 16
MOST_OF_STEP = 20
# Of a commit that could not be told and, in the end, stands between good and bad.
MOST_OF_SUSPECT = 40


class BisectionError(SuiteError):
    """There is nothing to search for; the message says why."""


class Measures(Protocol):
    """What a search needs of whoever measures: see `measuring.Measuring`."""

    refused: dict[str, str]

    def values(self, commit: str) -> list[float]:
        """The metric, one value a launch."""

    def measure(self, commit: str, count: int) -> None:
        """Have that many values of it, or say in ``refused`` why not."""


class Step(NamedTuple):
    """A commit that was looked at: where it belongs, its values, and why it has none."""

    commit: str
    side: Side
    values: list[float]
    reason: str = ""


class Found(NamedTuple):
    """The answer: the first bad commit is the last of ``suspects``; where there are more, those
    before it could not be measured. ``before`` is the last good one. ``factor``: bad over good.
    """

    before: str
    suspects: list[str]
    factor: Interval
    steps: list[Step]


def bisect(
    commits: Sequence[str], measures: Measures, hear: Callable[[Step], None] = lambda _: None
) -> Found:
    """Find the first bad one of ``commits``: oldest first, the first is good and the last is bad.

    Good and bad are measured until they surely differ, each step until it surely belongs to one of
    them; what cannot be measured, or not be told apart, is skipped. What stands between good and
    bad at the end, and could be measured, is measured once more, both of them beside it. Raises
    BisectionError where the two ends cannot be measured, or do not differ.
    """
    steps: dict[str, Step] = {}

    def done(step: Step) -> None:
        steps[step.commit] = step
        hear(step)

    first, last = commits[0], commits[-1]
    _ends(first, last, measures)
    done(Step(first, Side.GOOD, measures.values(first)))
    done(Step(last, Side.BAD, measures.values(last)))
    good, bad = 0, len(commits) - 1
    skipped: set[int] = set()
    most, beside = MOST_OF_STEP, False
    while True:
        place = search.next_place(good, bad, skipped)
        if place is None:
            # What could not be told was left for later, in the hope that it would not matter.
            doubts = {at for at in skipped if commits[at] not in measures.refused}
            if beside or not doubts.intersection(range(good, bad)):
                break
            skipped -= doubts
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
    # Some were measured again after their step.
    final = [step._replace(values=measures.values(step.commit)) for step in steps.values()]
    factor = judge.factor(
        _together(final, Side.GOOD, measures),
        _together(final, Side.BAD, measures),
        [step.values for step in final],
    )
    return Found(commits[good], list(commits[good + 1 : bad + 1]), factor, final)


def _ends(first: str, last: str, measures: Measures) -> None:
    for count in _looks(FIRST_OF_ENDS, MOST_OF_ENDS):
        for end in (first, last):
            measures.measure(end, count)
            if end in measures.refused:
                raise BisectionError(f"{end[:10]} cannot be measured: {measures.refused[end]}")
            if len(measures.values(end)) < 2:
                raise BisectionError(
                    f"{end[:10]} gives no value to go by; choose another --metric or cell"
                )
        samples = measures.values(first), measures.values(last)
        # Each step is held against the middle between them, half of the way.
        if judge.differ(*samples, samples, times=2):
            return
    if judge.differ(*samples, samples):
        return
    factor = judge.factor(*samples, samples)
    raise BisectionError(
        f"{last[:10]} over {first[:10]} is {factor.value:.3f} "
        f"[{factor.low:.3f}, {factor.high:.3f}] after {MOST_OF_ENDS} launches each: too little to "
        "search for; name other commits, another cell or metric"
    )


def _step(
    commit: str, steps: Sequence[Step], measures: Measures, most: int, beside: Sequence[str]
) -> Step:
    """Measure the commit until it is told, and the commits ``beside`` it in turns with it."""
    # All that are known to be good are one sample of what is good: held against the two ends
    # alone, the tenth commit would be judged no more surely than the second.
    for count in _looks(FIRST_OF_STEP, most):
        for each in (commit, *beside):
            measures.measure(each, count)
        if commit in measures.refused:
            return Step(commit, Side.UNKNOWN, [], measures.refused[commit])
        values = measures.values(commit)
        others = [measures.values(step.commit) for step in steps if step.commit != commit]
        side = judge.side(
            values,
            _together(steps, Side.GOOD, measures),
            _together(steps, Side.BAD, measures),
            [*others, values],
        )
        if side is not Side.UNKNOWN:
            return Step(commit, side, values)
    return Step(commit, Side.UNKNOWN, values, f"cannot tell after {most} launches")


def _looks(first: int, most: int) -> Iterator[int]:
    """After how many launches a decision is tried: each look costs laying a commit and starting a
    process that imports torch, so the later ones lie further apart.
    """
    count = first
    while count < most:
        yield count
        count += max(1, count // 3)
    yield most


def _together(steps: Sequence[Step], side: Side, measures: Measures) -> list[float]:
    return [value for step in steps if step.side is side for value in measures.values(step.commit)]

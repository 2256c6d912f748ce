"""Does compiling pay: what one interval allows to say, which mode is best, and after how many calls
and how long compiling has paid for itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import NamedTuple, TypeVar

from ..cell import Cell
from .change import MARGIN
from .statistics import COLD_SPREAD, Interval, reach
from .summary import Row

_T = TypeVar("_T")


class Payoff(str, Enum):
    """A mode compared with eager."""

    GAIN = "faster"
    LOSS = "slower"
    NONE = "no gain"
    UNKNOWN = "cannot tell"


def payoff(ratio: Interval | None) -> Payoff:
    """What a time ratio (mode over eager) with its 95 % interval says.

    Faster or slower if the whole interval lies on one side of 1. No gain if the interval rules out
    a gain of more than `change.MARGIN`. Otherwise unknown.
    """
    if ratio is None or not ratio.known:
        return Payoff.UNKNOWN
    if ratio.high < 1:
        return Payoff.GAIN
    if ratio.low > 1:
        return Payoff.LOSS
    return Payoff.NONE if ratio.low >= 1 / (1 + MARGIN) else Payoff.UNKNOWN


def fastest(
    ratios: Iterable[tuple[Interval, _T]], may_win: Callable[[Interval], bool] = lambda _: True
) -> list[_T]:
    """That with the smallest ratio, then those that cannot be told from it; empty without any.

    ``may_win``: whether a ratio may be the first.
    """
    # Without a launch that counts, the ratio is NaN.
    numbers = (each for each in ratios if not math.isnan(each[0].value))
    known = sorted(numbers, key=lambda each: each[0].value)
    winner = next((each for each in known if may_win(each[0])), None)
    if winner is None:
        return []
    others = [one for ratio, one in known if one != winner[1] and not ratio.low > winner[0].high]
    return [winner[1], *others]


def best(rows: Iterable[Row], *, gains: bool = True) -> list[Cell]:
    """The cell of the fastest mode, then those that cannot be told from it; empty without a gain.

    ``rows`` are the modes of one workload, equal in everything else. ``gains``: of the others only
    those that gain, too; False: also one that may be as fast and may be slower than eager.
    """

    def gain(ratio: Interval) -> bool:
        return payoff(ratio) is Payoff.GAIN

    known = [(row.ratio, row.cell) for row in rows if row.ratio is not None]
    return fastest([one for one in known if gain(one[0])] if gains else known, gain)


def counts(rows: Sequence[Row]) -> dict[Payoff, int]:
    """The number of rows of each payoff; failed cells are not counted."""
    number = Counter(payoff(row.ratio) for row in rows if row.outcome.ok)
    return {each: number[each] for each in Payoff}


class State(str, Enum):
    """What can be claimed about a break-even."""

    CALLS = "calls"
    NEVER = "never"
    CANNOT_TELL = "cannot tell"
    NOT_KNOWN = "-"


class BreakEven(NamedTuple):
    """The point at which a compiled model has done as many calls as eager in the same time.

    ``calls`` is the number of compiled calls up to that point. ``seconds`` is the time from the
    start of the first call: the cold compile, then ``calls`` steady calls. Both are estimates:
    infinite if the estimated ratio is 1 or more, None if a figure is missing. ``least`` and
    ``most`` bound the calls, as far as the ratio, eager's time and the one cold compile are known;
    None unless compiling pays. ``state`` says what that interval allows to claim.
    """

    state: State
    calls: float | None = None
    seconds: float | None = None
    least: float | None = None
    most: float | None = None

    def __str__(self) -> str:
        """The calls in words; no claim that the interval of the ratio does not support."""
        if self.state is not State.CALLS or self.least is None or self.most is None:
            return self.state.value
        least, most = (
            _two_digits(math.floor(max(calls, 1) + 0.5)) for calls in (self.least, self.most)
        )
        if least == most:
            return f"about {most} call{'s' * (most != '1')}"
        return f"{least} to {most} calls"

    @property
    def duration(self) -> str:
        """The time in words; empty unless compiling pays."""
        if self.state is not State.CALLS or self.seconds is None:
            return ""
        for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
            if self.seconds >= 2 * size:
                return f"about {_two_digits(self.seconds / size)} {unit}"
        return f"about {_two_digits(self.seconds)} s"


def _two_digits(estimate: float) -> str:
    """The number as an estimate is written: 1,200 and 2.3. Halves go up, as in the pages."""
    unit = 10.0 ** (math.floor(math.log10(estimate)) - 1) if estimate > 0 else 1.0
    rounded = math.floor(estimate / unit + 0.5) * unit
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:.2g}"


def break_even(row: Row) -> BreakEven:
    """The break-even of a row; not known for eager, a failed cell, or without a cold compile."""
    calls = row.break_even_calls
    if calls is None or row.ratio is None or row.eager_s is None or row.cold_compile_s is None:
        return BreakEven(State.NOT_KNOWN)
    # By the ratio of pairs: two times have drifted, and may have another quotient.
    seconds = row.cold_compile_s + calls * row.eager_s.value * row.ratio.value
    pays = payoff(row.ratio)
    if pays is Payoff.GAIN:
        gain = 1 - row.ratio.value
        # Of one launch, eager's time has no interval.
        more = math.hypot(COLD_SPREAD, reach(row.eager_s) if row.eager_s.known else 0.0)
        fewer, further = (
            math.hypot(math.log((1 - bound) / gain), more)
            for bound in (row.ratio.low, row.ratio.high)
        )
        return BreakEven(
            State.CALLS, calls, seconds, calls * math.exp(-fewer), calls * math.exp(further)
        )
    return BreakEven(State.NEVER if pays is Payoff.LOSS else State.CANNOT_TELL, calls, seconds)

"""After how many calls, and after how long, compiling has paid for itself."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from .payoff import Payoff, payoff
from .summary import Row


class State(str, Enum):
    """What can be claimed about a break-even."""

    CALLS = "calls"
    NEVER = "never"
    CANNOT_TELL = "cannot tell"
    NOT_KNOWN = "-"


class BreakEven(NamedTuple):
    """The point at which a compiled model has done as many calls as eager in the same time.

    ``calls`` is the number of compiled calls up to that point. ``seconds`` is the time from the
    start of the first call: the cold compile, then ``calls`` steady calls. Both are estimates
    without an interval: infinite if the estimated ratio is 1 or more, None if a figure is missing.
    ``state`` says what the interval of the ratio allows to claim.
    """

    state: State
    calls: float | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        """The calls in words; no claim that the interval of the ratio does not support."""
        if self.state is State.CALLS and self.calls is not None:
            return f"{self.calls:,.0f} calls"
        return self.state.value

    @property
    def duration(self) -> str:
        """The time in words; empty unless compiling pays."""
        if self.state is not State.CALLS or self.seconds is None:
            return ""
        for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
            if self.seconds >= 2 * size:
                return f"{self.seconds / size:.3g} {unit}"
        return f"{self.seconds:.3g} s"


def break_even(row: Row) -> BreakEven:
    """The break-even of a row; not known for eager, a failed cell, or without a cold compile."""
    calls = row.break_even_calls
    if calls is None or row.ratio is None or row.latency_s is None or row.cold_compile_s is None:
        return BreakEven(State.NOT_KNOWN)
    seconds = row.cold_compile_s + calls * row.latency_s.value
    pays = payoff(row.ratio)
    if pays is Payoff.GAIN:
        return BreakEven(State.CALLS, calls, seconds)
    return BreakEven(State.NEVER if pays is Payoff.LOSS else State.CANNOT_TELL, calls, seconds)

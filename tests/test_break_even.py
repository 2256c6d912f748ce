"""The break-even of a row: what can be claimed, after how many calls, after how long."""

from __future__ import annotations

import math

import pytest

from torchcompile_suite.analysis import advice
from torchcompile_suite.analysis.payoff import BreakEven, State, break_even
from torchcompile_suite.analysis.statistics import Interval
from torchcompile_suite.analysis.summary import Row
from torchcompile_suite.cell import Cell
from torchcompile_suite.measurement import OK

UNKNOWN = (math.nan, math.nan)


def row(ratio: float, low: float, high: float, cold_s: float | None = 30.0) -> Row:
    """A row whose eager call takes 0.125 s."""
    calls = None
    if cold_s is not None:
        calls = math.ceil(cold_s / (0.125 * (1 - ratio))) if ratio < 1 else math.inf
    return Row(
        "machine",
        "2.9.1",
        Cell("resnet18", 1, "default"),
        OK,
        eager_s=Interval(0.125, 0.12, 0.13),
        # As measured times are: not quite what the ratio of pairs says.
        latency_s=Interval(0.13 * ratio, *UNKNOWN),
        ratio=Interval(ratio, low, high),
        cold_compile_s=cold_s,
        break_even_calls=calls,
    )


@pytest.mark.parametrize(
    ("measured", "state", "text"),
    [
        (row(0.75, 0.7, 0.8), State.CALLS, "780 to 1,200 calls"),
        (row(0.75, 0.749, 0.751), State.CALLS, "870 to 1,100 calls"),
        (row(0.75, 0.749, 0.751, cold_s=0.01), State.CALLS, "about 1 call"),
        (row(1.2, 1.1, 1.3), State.NEVER, "never"),
        (row(0.75, 0.6, 1.05), State.CANNOT_TELL, "cannot tell"),
        (row(1.01, 0.99, 1.03), State.CANNOT_TELL, "cannot tell"),
        (row(0.75, *UNKNOWN), State.CANNOT_TELL, "cannot tell"),
        (row(0.75, 0.7, 0.8, cold_s=None), State.NOT_KNOWN, "-"),
        (Row("machine", "2.9.1", Cell("resnet18", 1, "eager"), OK), State.NOT_KNOWN, "-"),
    ],
)
def test_only_what_the_interval_supports_is_claimed(measured: Row, state: State, text: str) -> None:
    found = break_even(measured)
    assert found.state is state
    assert str(found) == text
    assert bool(found.duration) == (state is State.CALLS)


def test_the_time_to_pay_includes_the_cold_compile() -> None:
    """At the break-even, eager would have needed the same time for the same calls."""
    found = break_even(row(0.75, 0.7, 0.8))
    assert found.seconds == pytest.approx(30.0 + 960 * 0.09375)
    assert found.seconds == pytest.approx(960 * 0.125)
    assert found.duration == "about 2 minutes"
    assert "after 780 to 1,200 calls (about 2 minutes)" in advice.sentence(
        [row(0.75, 0.7, 0.8)], ""
    )


def test_estimates_without_a_claim_are_kept_for_data() -> None:
    assert break_even(row(0.75, 0.6, 1.05)).calls == 960
    assert break_even(row(1.2, 1.1, 1.3)).seconds == math.inf


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(7.0, "7 s"), (110.0, "110 s"), (120.0, "2 minutes"), (7200.0, "2 hours"), (2e5, "2.3 days")],
)
def test_a_duration_has_the_largest_unit_of_which_there_are_two(seconds: float, text: str) -> None:
    assert BreakEven(State.CALLS, 1, seconds).duration == f"about {text}"

"""Statistics, on numbers whose answer is known."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite.analysis import statistics
from torchcompile_suite.analysis.statistics import Interval
from torchcompile_suite.conditions import Interference
from torchcompile_suite.measurement import OK, Launch

from . import examples

seconds = st.floats(1e-6, 1e3)


def test_a_constant_series_is_steady_once_two_windows_are_full() -> None:
    window = statistics.STEADY_WINDOW
    assert not statistics.is_steady([0.1] * (2 * window - 1))
    assert statistics.is_steady([0.1] * (2 * window))


def test_a_series_that_still_gets_faster_is_not_steady() -> None:
    assert not statistics.is_steady([1.0 * 0.97**i for i in range(20)])


def test_one_disturbed_call_does_not_unsettle() -> None:
    assert statistics.is_steady([0.1] * 6 + [0.5] + [0.1] * 5)


@given(st.lists(seconds, min_size=1, max_size=30), st.floats(0.1, 10))
def test_ratio_of_scaled_pairs_is_the_scale(eager: list[float], scale: float) -> None:
    pairs = [(one, one * scale) for one in eager]
    assert statistics.launch_ratio(pairs) == pytest.approx(scale)
    assert statistics.launch_latency(pairs) == pytest.approx(
        scale * statistics.launch_eager_latency(pairs)
    )


def test_the_error_of_a_launch_is_that_of_a_median() -> None:
    """Logs -2, -1, 0, 1, 2 per cent: their median absolute deviation is 1 per cent."""
    pairs = [(1.0, math.exp(each / 100)) for each in (-2, -1, 0, 1, 2)]
    error = math.sqrt(math.pi / 2 / 5) * 1.4826 * 0.01
    assert statistics.launch_error(pairs) == pytest.approx(error)
    assert statistics.launch_error([*pairs[:4], (1.0, 9.0)]) == pytest.approx(error)
    assert statistics.launch_error(pairs[:1]) == 0


def test_calls_until_steady_and_their_seconds() -> None:
    warm_up_s = [30.0, *[0.3] * 4, *[0.1] * 12]
    assert statistics.calls_until_steady(warm_up_s) == 5
    launch = Launch("cold", OK, pairs_s=[(0.1, 0.1)], warm_up_s=warm_up_s)
    assert statistics.calls_until_steady_of(launch) == 5
    assert statistics.seconds_until_steady_of(launch) == pytest.approx(31.2)
    # Ten calls, the first of which compiles, over ten of eager's.
    mixed = Launch("cold", OK, pairs_s=[(0.1, 0.1)], warm_up_s=[9.1, *[0.1] * 20])
    assert statistics.warm_up_mixed_ratio(mixed) == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("steal", "others", "words"),
    [
        (0.04, 0.09, ""),
        (0.0, 0.11, "other processes took 11%"),
        (0.06, 0.0, "other guests of the host took 6%"),
    ],
)
def test_what_others_took_disturbs_a_launch(steal: float, others: float, words: str) -> None:
    launch = Launch("warm", OK, interference=Interference(steal, others))
    assert statistics.taken(launch).startswith(words)
    assert bool(statistics.disturbed(launch)) == bool(words)


@given(st.lists(seconds, min_size=1, max_size=30))
def test_compile_cost_is_never_negative(calls: list[float]) -> None:
    assert 0 <= statistics.compile_cost(calls) <= sum(calls)


def test_the_first_call_is_not_taken_for_a_steady_one() -> None:
    """A model whose calls are so slow that the warm-up ends after one."""
    assert statistics.compile_cost([60.0, 7.0], 3.0) == 3.0 + 53.0
    # The warm-up ended with a call that compiled again. The turns that followed show it.
    assert statistics.compile_cost([15.0, 8.0], 1.0, turns_s=0.01) == pytest.approx(
        1 + 14.99 + 7.99
    )
    assert statistics.calls_until_steady([60.0, 7.0]) == 1


def test_compile_cost_counts_a_late_recompile() -> None:
    calls = [30.0, 0.1, 5.1, *[0.1] * 10]
    assert statistics.compile_cost(calls) == pytest.approx(29.9 + 5.0)


def test_compile_cost_is_not_moved_by_a_machine_that_slows_down() -> None:
    calm = [8.0, *[0.025] * 200]
    busy = [8.0, *[0.025] * 100, *[0.045] * 100]
    assert statistics.compile_cost(busy) == pytest.approx(statistics.compile_cost(calm), rel=0.01)


@given(st.lists(seconds, min_size=2, max_size=20))
def test_an_interval_contains_its_estimate(values: list[float]) -> None:
    found = statistics.geometric_interval(values)
    assert found.low <= found.value * (1 + 1e-9)
    assert found.value <= found.high * (1 + 1e-9)
    assert min(values) * (1 - 1e-9) <= found.value <= max(values) * (1 + 1e-9)


def test_interval_of_one_launch_is_unknown() -> None:
    found = statistics.geometric_interval([2.0])
    assert found.value == pytest.approx(2.0)
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_interval_matches_scipy_on_logs() -> None:
    from scipy import stats

    values = [0.50, 0.52, 0.47, 0.55]
    logs = np.log(values)
    low, high = stats.t.interval(0.95, 3, loc=logs.mean(), scale=stats.sem(logs))
    found = statistics.geometric_interval(values, level=0.95)
    assert (found.low, found.high) == pytest.approx((math.exp(low), math.exp(high)))


@given(st.floats(1e-12, 1e6))
def test_the_inverse_of_trigamma_gives_the_value_back(value: float) -> None:
    from scipy import special

    y = statistics.intervals._inverse_trigamma(value)
    assert special.polygamma(1, y) == pytest.approx(value, rel=1e-12)


@given(
    st.integers(1, 2000),
    st.floats(1e-6, 1 - 1e-6).filter(lambda probability: abs(probability - 0.5) > 0.01),
)
def test_a_quantile_of_t_is_that_of_scipy(degrees: int, probability: float) -> None:
    from scipy import special

    expected = float(special.stdtrit(degrees, probability))
    assert statistics.t_quantile(probability, degrees) == pytest.approx(expected, rel=1e-9)


def test_a_quantile_of_t_without_degrees_is_unknown() -> None:
    assert statistics.t_quantile(0.5, 3) == 0
    assert math.isnan(statistics.t_quantile(0.975, 0))


def test_the_coverage_of_an_interval_is_its_level() -> None:
    """Three log-normal launches, 4000 times: 95 % of the intervals contain the true value."""
    random = np.random.default_rng(7)
    covered = 0
    for draw in np.exp(random.normal(math.log(0.7), 0.04, size=(4000, 3))):
        found = statistics.geometric_interval(draw.tolist(), level=0.95)
        covered += found.low <= 0.7 <= found.high
    assert 0.94 <= covered / 4000 <= 0.96


@pytest.mark.parametrize("spread", [0.005, 0.015, 0.03, 0.05])
def test_stopping_when_precise_does_not_break_coverage(spread: float) -> None:
    """Launches until the ratio is known to 3 %, 3000 times.

    These launches are log-normal. Real ones are not (tests/test_evidence.py), so the coverage here
    may be a little above 95 %.
    """
    random = np.random.default_rng(11)
    covered = 0
    for draw in np.exp(random.normal(math.log(0.7), spread, size=(3000, 12))):
        launches: list[Launch] = []
        for ratio in draw.tolist():
            launches.append(Launch("warm", OK, pairs_s=[(1.0, ratio)]))
            if statistics.precise(launches, 0.03):
                break
        found = statistics.measured_ratio(launches)
        covered += found.low <= 0.7 <= found.high
    assert 0.93 <= covered / 3000 <= 0.98


def test_plain_t_does_not_cover_when_the_data_decide_when_to_stop() -> None:
    """The reason for the higher nominal level of t at later looks."""
    random = np.random.default_rng(12)
    covered = 0
    for draw in np.exp(random.normal(0, 0.05, size=(3000, 12))):
        for n in range(3, 13):
            found = statistics.geometric_interval(draw[:n].tolist(), level=0.95)
            if statistics.half_width(found) <= 0.03:
                break
        covered += found.low <= 1 <= found.high
    assert covered / 3000 < 0.93


def test_how_much_wider_than_needed_the_interval_of_a_mean_is() -> None:
    """docs/method.md says so: three launches a cell, and a hundred cells."""
    cell = [0.99, 1.0, 1 / 0.99]
    mean = statistics.geometric_mean([statistics.geometric_interval(cell)] * 100)
    error = math.sqrt(statistics.log_variance(cell) / 3 / 100)
    assert statistics.reach(mean) / (1.96 * error) == pytest.approx(2.88, abs=0.01)


def test_half_width_is_relative() -> None:
    assert statistics.half_width(statistics.Interval(2, 2 / 1.1, 2 * 1.1)) == pytest.approx(0.1)
    assert math.isnan(statistics.half_width(statistics.geometric_interval([1.0])))


def test_a_disturbed_launch_does_not_count() -> None:
    launches = [
        Launch("cold", OK, pairs_s=[(1.0, 0.5)]),
        Launch("warm", OK, pairs_s=[(1.0, 9.0)], disturbed="disturbed"),
    ]
    assert statistics.counted(launches) == launches[:1]
    assert statistics.measured_ratio(launches).value == pytest.approx(0.5)


def test_a_disturbed_launch_has_no_compile_cost() -> None:
    launches = [
        Launch("warm", OK, pairs_s=[(0.1, 0.1)], warm_up_s=[seconds, *[0.1] * 10], disturbed=why)
        for seconds, why in ((5.1, ""), (9.1, "disturbed"))
    ]
    assert statistics.compile_costs(launches, "warm") == pytest.approx([5.0])
    assert statistics.compile_costs(launches, "warm", every=True) == pytest.approx([5.0, 9.0])


def test_a_slowdown_is_that_of_the_launches_that_count() -> None:
    launches = [
        Launch("cold", OK, calibration_s=1.0e-4),
        Launch("warm", OK, calibration_s=1.5e-4, disturbed="disturbed"),
        Launch("warm", OK, calibration_s=1.2e-4),
        Launch("warm", OK),
    ]
    assert statistics.slowdown(launches, 1.0e-4) == pytest.approx(1.1)
    assert statistics.slowdown(launches, None) == 1
    assert statistics.slowdown(launches[3:], 1.0e-4) == 1
    assert statistics.quietest(launches, 2.0e-4, None) == 1.0e-4
    assert statistics.quietest(launches[3:], None) is None


def test_importing_the_compiler_is_part_of_its_cost() -> None:
    calls = [4.1, *[0.1] * 10]
    launches = [
        Launch("warm", OK, warm_up_s=calls, compiler_import_s=3.0),
        Launch("cold", OK, warm_up_s=calls),
    ]
    assert statistics.compile_costs(launches, "warm") == [pytest.approx(7.0)]
    assert statistics.compile_costs(launches, "cold") == [pytest.approx(4.0)]


def test_break_even() -> None:
    assert statistics.calls_to_break_even(30.0, 0.04, 0.75) == 3000
    assert statistics.calls_to_break_even(30.0, 0.03, 1.25) == math.inf
    assert statistics.calls_to_break_even(0.0, 0.04, 0.75) == 0


@pytest.mark.parametrize(
    ("interval", "spec", "text"),
    [
        (Interval(0.754, 0.7, 0.8), "", "0.75 [0.70, 0.80]"),
        (Interval(0.754, 0.7, 0.8), ".3f", "0.754 [0.700, 0.800]"),
        (Interval(1234.5, 1200.0, 1300.0), ".3g", "1,234 [1,200, 1,300]"),
        (Interval(0.754, math.nan, math.nan), "", "0.75"),
        (Interval(0.94, 0.89, 0.9961), "", "0.94 [0.89, 0.996]"),
        (Interval(1.0, 0.99996, 1.0004), "", "1.00 [1.00, 1.0004]"),
    ],
)
def test_the_text_of_an_interval(interval: Interval, spec: str, text: str) -> None:
    assert format(interval, spec) == text
    assert str(interval) == format(interval)


@given(examples.intervals, examples.intervals)
def test_a_quotient_is_wider_than_both_parts_and_can_be_inverted(
    one: Interval, other: Interval
) -> None:
    found = statistics.quotient(one, other)
    width = found.high / found.low
    assert width >= max(one.high / one.low, other.high / other.low) * (1 - 1e-9)
    back = statistics.inverse(statistics.quotient(other, one))
    assert found == pytest.approx(back)


@given(st.lists(examples.intervals, min_size=1, max_size=6))
def test_a_mean_lies_between_its_parts_and_is_not_wider_than_the_widest(
    parts: list[Interval],
) -> None:
    mean = statistics.geometric_mean(parts)
    assert min(part.value for part in parts) * 0.999 <= mean.value
    assert mean.value <= max(part.value for part in parts) * 1.001
    widest = max(math.log(part.high / part.low) for part in parts)
    assert math.log(mean.high / mean.low) <= widest * 1.001


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_a_power_is_a_positive_number(log: float) -> None:
    found = statistics.power(log)
    if math.isnan(log):
        assert math.isnan(found)
        return
    assert 0 < found < math.inf
    assert 0 < found * found < math.inf
    if abs(log) <= statistics.MOST_LOG:
        assert found == math.exp(log)


@given(st.lists(st.floats(1e-30, 1e30), min_size=1, max_size=5))
def test_an_interval_of_any_values_is_a_number(values: list[float]) -> None:
    found = statistics.widened(statistics.geometric_interval(values), 1000.0)
    assert 0 < found.value < math.inf
    if len(values) > 1:
        assert 0 < found.low <= found.value <= found.high < math.inf
        assert statistics.geometric_mean([found, found]).known


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.01234, "0.0123"), (57.66, "57.7"), (999.4, "999"), (999.6, "1,000"), (-1234.0, "-1,234")],
)
def test_three_digits_are_no_power_of_ten(number: float, text: str) -> None:
    assert statistics.formatted(number, ".3g") == text
    assert f"{Interval(number, number, number):.3g}".startswith(f"{text} [")


def test_calls_of_an_accelerator_are_compared_with_those_that_are_waited_for() -> None:
    """A call that is not waited for takes less, and is no sign of a warm-up that went on."""
    launch = msgspec.structs.replace(
        examples.launch(mode=0.010), pairs_s=[(0.010, 0.004)] * 15, latency_s=[(0.012, 0.010)] * 15
    )
    assert statistics.stayed_steady(launch)
    assert statistics.compile_cost_of(launch) == pytest.approx(30.0 - 0.010)
    faster = msgspec.structs.replace(launch, latency_s=[(0.012, 0.004)] * 15)
    assert not statistics.stayed_steady(faster)
    on_a_cpu = msgspec.structs.replace(launch, latency_s=[])
    assert not statistics.stayed_steady(on_a_cpu)

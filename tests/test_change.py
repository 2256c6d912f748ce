"""Two releases compared: what is found, what is not claimed, and which time changed."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite.analysis import change, statistics
from torchcompile_suite.analysis.change import Difference, Side, discovery, quantities
from torchcompile_suite.cell import Cell
from torchcompile_suite.conditions import HostState, Interference
from torchcompile_suite.measurement import OK, Launch, Measurement, Outcome, Status
from torchcompile_suite.presentation import documents, sheets, terminal, wording

from . import examples
from .schemas import validated


def measurement(
    random: np.random.Generator,
    cell: Cell,
    eager_s: float = 0.04,
    mode_s: float = 0.03,
    compile_s: float = 30.0,
    spread: float = 0.01,
    launches: int = 3,
    series: str = "in turns",
) -> Measurement:
    """A measurement whose launches differ by log-normal factors: the rounds of that series."""
    made = []
    for number in range(launches):
        noise = np.exp(random.normal(0, spread, 3))
        pair = (eager_s * noise[0], mode_s * noise[0] * noise[1])
        first_s = (compile_s if number == 0 else compile_s / 4) * noise[2]
        made.append(
            Launch(
                kind="warm" if number else "cold",
                outcome=OK,
                pairs_s=[pair] * 15,
                warm_up_s=[first_s + pair[1], *[pair[1]] * 10],
                steady=True,
                peak_memory_bytes=500_000_000,
                series=series,
                round=number + 1 if series else 0,
            )
        )
    return Measurement(cell, OK, made, "2026-11-21T03:00:00+00:00", 60.0, "precise")


def matrix(random: np.random.Generator, models: int = 10, **changes: Any) -> list[Measurement]:
    """An eager and a default cell of each model; ``changes`` by the name of the model."""
    return [
        measurement(random, Cell(f"model{number}", 1, mode), **changes.get(f"model{number}", {}))
        for number in range(models)
        for mode in ("eager", "default")
    ]


def compare(before: list[Measurement], after: list[Measurement]) -> change.Comparison:
    return change.compare("box", Side("2.4.1", before), Side("2.9.1", after))


def effects(comparison: change.Comparison, workload: str) -> change.Change:
    return next(
        found
        for found in comparison.changes
        if found.cell.workload == workload and found.cell.mode == "default"
    )


def test_a_slower_compiled_model_is_found_and_compiled_is_named() -> None:
    random = np.random.default_rng(1)
    comparison = compare(matrix(random), matrix(random, model3={"mode_s": 0.036}))
    found = effects(comparison, "model3")
    assert found.effects["time ratio"].difference is Difference.WORSE
    assert found.effects["time ratio"].factor.value == pytest.approx(1.2, rel=0.05)
    assert found.effects["compiled"].difference is Difference.WORSE
    assert found.moved == "compiled"
    assert found in comparison.regressions


def test_a_faster_eager_model_makes_the_ratio_worse_and_eager_is_named() -> None:
    random = np.random.default_rng(2)
    comparison = compare(matrix(random), matrix(random, model3={"eager_s": 0.03}))
    found = effects(comparison, "model3")
    assert found.effects["time ratio"].difference is Difference.WORSE
    assert found.effects["eager"].difference is Difference.BETTER
    assert found.moved == "eager"


def test_dearer_compilation_is_found() -> None:
    random = np.random.default_rng(3)
    comparison = compare(matrix(random), matrix(random, model3={"compile_s": 40.0}))
    assert effects(comparison, "model3").effects["warm compile"].difference is Difference.WORSE
    assert effects(comparison, "model4").effects["warm compile"].difference is not Difference.WORSE


def with_launches(measured: Measurement, **start: object) -> Measurement:
    launches = [msgspec.structs.replace(one, **start) for one in measured.launches]
    return msgspec.structs.replace(measured, launches=launches)


def test_only_processes_that_started_alike_are_compared() -> None:
    """A forked process has part of the compiler imported, and uses less memory."""
    random = np.random.default_rng(5)
    # Records from before schema 5 do not name the imported libraries; later ones do.
    before = [with_launches(one, process="forked") for one in matrix(random)]
    alike = [with_launches(one, process="forked", preloaded=["timm"]) for one in matrix(random)]
    assert not compare(before, alike).unlike
    after = [
        with_launches(one, process="forked", preloaded=[]) if one.cell.workload == "model3" else one
        for one in alike
    ]
    comparison = compare(before, after)
    assert {cell.workload for cell in comparison.unlike} == {"model3"}
    assert set(effects(comparison, "model3").effects) == {"time ratio", "eager", "compiled"}
    assert "memory" in effects(comparison, "model4").effects
    assert "Left out are compile costs and memory of 2 cells" in wording.judgement(comparison)
    assert len(json.loads(documents.comparison_json(comparison))["unlike"]) == 2
    # In some cells the time ratio of a fork is another one.
    later = [
        with_launches(one, process="fresh") if one.cell.workload == "model3" else one
        for one in alike
    ]
    comparison = compare(before, later)
    assert effects(comparison, "model3").gap.startswith("measured in forks and in fresh processes")
    assert not effects(comparison, "model3").effects
    assert comparison.compared == 18
    assert not comparison.unlike


def test_times_of_two_methods_are_never_compared() -> None:
    random = np.random.default_rng(6)
    before = matrix(random)
    after = [
        with_launches(one, method=2) if one.cell.workload == "model3" else one
        for one in matrix(random)
    ]
    comparison = compare(before, after)
    assert not effects(comparison, "model3").effects
    assert "timed by different methods" in effects(comparison, "model3").gap
    assert effects(comparison, "model4").effects


def test_what_a_neighbour_slowed_is_not_compared() -> None:
    """On a shared core the ratio itself changes."""
    random = np.random.default_rng(7)
    before = [with_launches(one, calibration_s=1.0e-4) for one in matrix(random)]
    after = [
        with_launches(one, calibration_s=1.4e-4 if one.cell.workload == "model3" else 1.1e-4)
        for one in matrix(random)
    ]
    comparison = compare(before, after)
    assert effects(comparison, "model3").gap.startswith("after: a neighbour made the processors")
    assert not effects(comparison, "model3").effects
    assert effects(comparison, "model4").effects
    assert effects(compare(after, before), "model3").gap.startswith("before: ")
    # If one side has no calibration time, the cells are compared.
    assert not any(one.gap for one in compare(matrix(random), after).changes)


def at(measured: Measurement, handoff_ns: int) -> Measurement:
    host = HostState([handoff_ns], 1.0, 40.0, counted_ns=handoff_ns, place="near")
    return with_launches(measured, interference=Interference(0.0, 0.0, host=host))


def test_what_the_host_ran_at_another_place_is_not_compared() -> None:
    random = np.random.default_rng(7)
    before = [at(one, 120) for one in matrix(random)]
    after = [at(one, 520 if one.cell.workload == "model3" else 150) for one in matrix(random)]
    comparison = compare(before, after)
    assert effects(comparison, "model3").gap == (
        "after: the host ran the processors far from each other (520 ns between them, and 120 in "
        "the other); measure both in turns"
    )
    assert effects(comparison, "model4").effects


def test_rounds_are_of_launches_that_count() -> None:
    made = at(measurement(np.random.default_rng(7), Cell("model", 1, "default"), launches=4), 120)
    launches = [
        msgspec.structs.replace(launch, series="turns", round=number)
        for number, launch in enumerate(made.launches, 1)
    ]
    host = HostState([520], 1.0, 40.0, counted_ns=520, place="near")
    far = Interference(0.0, 0.0, host=host)
    launches[2] = msgspec.structs.replace(launches[2], interference=far)
    rounds = quantities.by_round("eager", launches)
    assert [number for _, number in rounds] == [1, 2, 4]


def test_nothing_is_found_where_nothing_changed() -> None:
    """100 comparisons of a machine with itself: at most 1 % of the cells may be flagged."""
    random = np.random.default_rng(4)
    flagged = cells = 0
    for _ in range(100):
        comparison = compare(matrix(random), matrix(random))
        for found in comparison.changes:
            cells += 1
            flagged += found.changed
    assert flagged <= 0.01 * cells


def test_drift_of_the_whole_machine_is_not_a_change() -> None:
    """The machine has another speed at each measurement: only ratios can show a change."""
    random = np.random.default_rng(5)

    def drifting(mode_s: float) -> list[Measurement]:
        found = []
        for number in range(10):
            for mode in ("eager", "default", "reduce-overhead"):
                drift = math.exp(random.normal(0, 0.15))
                cell = Cell(f"model{number}", 1, mode)
                times = 0.04 * drift, mode_s * drift, 30 * drift
                found.append(measurement(random, cell, *times, series=""))
        return found

    comparison = compare(drifting(0.03), drifting(0.033))
    ratios = [
        found.effects["time ratio"].difference
        for found in comparison.changes
        if "time ratio" in found.effects
    ]
    assert ratios.count(Difference.WORSE) >= 0.9 * len(ratios)
    assert comparison.means.keys() == {"time ratio", "memory"}


def test_times_of_two_runs_are_not_compared() -> None:
    """All of the second run is slower by 6 %: nothing in either run shows that."""
    random = np.random.default_rng(6)
    sides = [
        [
            measurement(random, Cell(f"model{number}", 1, mode), *times, series="")
            for number in range(10)
            for mode in ("eager", "default")
        ]
        for times in ((0.0400, 0.030, 30.0), (0.0424, 0.0318, 31.8))
    ]
    for found in compare(*sides).changes:
        assert found.effects.keys() <= {"time ratio", "memory"}
        assert not found.changed


def test_times_are_compared_only_if_most_launches_have_a_partner() -> None:
    random = np.random.default_rng(8)
    cell = Cell("model", 1, "default")
    before, after = (measurement(random, cell, launches=4) for _ in range(2))
    for alone, names in ((1, {"time ratio", "eager", "compiled"}), (3, {"time ratio"})):
        launches = [
            msgspec.structs.replace(one, series="another") if number < alone else one
            for number, one in enumerate(after.launches)
        ]
        later = msgspec.structs.replace(after, launches=launches)
        (found,) = compare([before], [later]).changes
        times = found.effects.keys() & {"time ratio", "eager", "compiled"}
        assert times == names


def test_loops_of_two_pythons_tell_nothing_of_a_neighbour() -> None:
    """Each Python has its own zlib."""
    random = np.random.default_rng(9)
    before, after = (measurement(random, Cell("model", 1, "default")) for _ in range(2))
    other = measurement(random, Cell("other", 1, "default"))
    for python, gap in (("3.11.7", True), ("3.12.1", False)):
        known = msgspec.structs.replace(examples.environment("2.9.1"), python=python)
        slow = with_launches(after, calibration_s=1.4e-4, environment=known)
        quick = with_launches(
            before, calibration_s=1.0e-4, environment=examples.environment("2.4.1")
        )
        comparison = compare([quick, other], [slow, other])
        assert bool(effects(comparison, "model").gap) is gap


def test_the_drift_is_what_times_differ_by_beyond_their_launches() -> None:
    """Two exact times of the same work that differ by a fifth: t with one degree of freedom."""
    random = np.random.default_rng(10)
    side = Side(
        "2.4.1",
        [
            measurement(random, Cell("model", 1, mode), eager_s=eager_s, spread=0.0)
            for mode, eager_s in (("default", 0.04), ("reduce-overhead", 0.048))
        ],
    )
    half_width = statistics.t_quantile(0.975, 1) * math.log(1.2) / math.sqrt(2)
    assert quantities.drift_between([side]) == pytest.approx(half_width)


def test_releases_with_other_settings_are_not_compared() -> None:
    random = np.random.default_rng(7)
    before, after = matrix(random), matrix(random)

    def on(measured: Measurement, **settings: object) -> Measurement:
        known = examples.environment("2.9.1")
        return with_launches(measured, environment=msgspec.structs.replace(known, **settings))

    before = [on(one, variables={"CUDA_MODULE_LOADING": "LAZY"}) for one in before]
    assert compare(before, [on(one) for one in after]).compared == 20, "torch itself sets it"
    one_thread = [on(one, threads=1) for one in after[:-1]]
    comparison = compare(before, [*one_thread, on(after[-1])])
    assert {found.gap for found in comparison.changes if found.gap} == {
        "measured with other settings: threads 2, then 1; measure both alike"
    }
    variable = [on(one, variables={"TORCHINDUCTOR_FREEZING": "1"}) for one in after[:-1]]
    comparison = compare(before, [*variable, on(after[-1])])
    assert "TORCHINDUCTOR_FREEZING not set, then 1" in comparison.changes[0].gap


def test_the_mean_of_one_cell_is_as_sure_as_the_cell() -> None:
    one = discovery.LogChange(0.05, 0.02, 2, paired=True)
    key = (Cell("a", 1, "default"), "time ratio")
    effect = discovery.effects({key: one})[key]
    assert discovery.mean_factor([one]) == pytest.approx(effect.factor)


def test_the_cohort_is_what_both_sides_measured_and_gaps_say_why() -> None:
    random = np.random.default_rng(6)
    before, after = matrix(random), matrix(random)
    failed = Outcome(Status.COMPILE_ERROR, "no lowering")
    after[1] = Measurement(
        after[1].cell, failed, [Launch("cold", failed)], "2026-11-21T03:00:00+00:00", 1.0
    )
    comparison = compare(before[:-1], after)
    assert comparison.compared == 18
    gaps = {found.gap for found in comparison.changes if found.gap}
    assert gaps == {"after: compile-error: no lowering", "not measured before"}
    assert [found.cell for found in comparison.broken] == [after[1].cell]
    busy = [Launch("cold", Outcome(Status.UNSETTLED, "this machine is too busy to say"))]
    after[1] = msgspec.structs.replace(after[1], outcome=busy[0].outcome, launches=busy)
    assert not compare(before[:-1], after).broken
    assert not compare(after[2:], before[2:]).broken


def test_geometric_mean_is_of_the_cohort_and_not_clipped() -> None:
    random = np.random.default_rng(7)
    slow: dict[str, Any] = {f"model{number}": {"mode_s": 0.03 * 4} for number in range(5)}
    mean = compare(matrix(random), matrix(random, **slow)).means["time ratio"]
    assert mean.value == pytest.approx(2.0, rel=0.02)
    assert mean.low < mean.value < mean.high


@given(st.lists(st.floats(0, 1), min_size=1, max_size=400))
def test_rates_of_false_discovery_are_those_of_scipy(p_values: list[float]) -> None:
    from scipy import stats

    found = discovery._false_discovery_rates(np.array(p_values))
    assert np.array_equal(found, stats.false_discovery_control(p_values))


def test_nothing_in_common_is_one_clear_line() -> None:
    random = np.random.default_rng(8)
    with pytest.raises(change.ChangeError, match="nothing can be compared between"):
        compare([measurement(random, Cell("a", 1, "eager"))], [])


def test_noise_floor_is_the_distance_of_eager_from_itself() -> None:
    random = np.random.default_rng(9)
    cells = [
        measurement(random, Cell(f"m{n}", 1, "eager"), 0.04, 0.04, spread=0.02) for n in range(200)
    ]
    assert change.noise_floor(cells) == pytest.approx(0.02, rel=0.15)
    assert change.noise_floor([]) is None


@given(st.floats(1e-5, 1e-2), st.floats(3, 50), st.integers(0, 2**32 - 1))
def test_prior_spread_is_recovered(variance: float, degrees: float, seed: int) -> None:
    """Cells whose variances are scaled inverse chi-squared, as in the model."""
    random = np.random.default_rng(seed)
    true = variance * degrees / random.chisquare(degrees, 4000)
    seen = true * random.chisquare(2, 4000) / 2
    prior = statistics.prior_spread(list(seen), [2] * 4000)
    assert prior is not None
    assert prior.variance == pytest.approx(variance, rel=0.25)


def test_a_single_launch_is_judged_by_the_whole_machine() -> None:
    prior = statistics.Prior(0.04, 6.0)
    assert statistics.moderated(math.nan, 0, prior) == (0.04, 6.0)
    variance, degrees = statistics.moderated(0.01, 2, prior)
    assert variance == pytest.approx(0.0325)
    assert degrees == 8.0
    assert statistics.moderated(0.01, 2, None) == (0.01, 2)


def test_json_has_all_effects_and_markdown_is_escaped() -> None:
    random = np.random.default_rng(10)
    comparison = compare(matrix(random), matrix(random, model3={"mode_s": 0.06}))
    found = validated("report-releases", documents.comparison_json(comparison))
    assert found["compared"] == 20
    worst = max(
        (cell for cell in found["changes"] if "time ratio" in cell["effects"]),
        key=lambda cell: cell["effects"]["time ratio"]["factor"][0],
    )
    assert worst["cell"]["workload"] == "model3"
    assert worst["effects"]["time ratio"]["verdict"] == "worse"
    text = terminal.markdown(sheets.Sheet(["a"], frozenset(), [["<b>|x|</b>\n[y](z)"]]))
    assert text.splitlines()[-1].count("|") - text.splitlines()[-1].count("\\|") == 2
    assert "<b>" not in text.replace("\\<", "")


def test_one_cold_start_a_side_is_judged_by_the_spread_of_warm_starts() -> None:
    random = np.random.default_rng(11)
    found = compare(matrix(random), matrix(random, model3={"compile_s": 60.0}))
    differences = {
        change.cell.workload: change.effects["cold compile"].difference
        for change in found.changes
        if change.cell.mode != "eager"
    }
    assert differences.pop("model3") is Difference.WORSE
    assert len(differences) == 9
    assert not any(difference.changed for difference in differences.values())


def test_what_shows_alike_in_many_cells_is_one_finding() -> None:
    random = np.random.default_rng(3)
    slower: dict[str, Any] = {f"model{number}": {"compile_s": 60.0} for number in range(6)}
    slower["model8"] = {"mode_s": 0.06}
    slower["model9"] = {"mode_s": 0.04}
    comparison = compare(matrix(random), matrix(random, **slower))
    first, second, *others = change.findings(comparison)
    assert {first.name, second.name} == {"cold compile", "warm compile"}
    for one in (first, second):
        cells = {of.cell.workload for of, _ in one.of}
        assert {f"model{number}" for number in range(6)} <= cells
        assert one.difference is Difference.WORSE
        assert one.measured == 10
    # A cell stands once, with the change that is surest, and the largest comes first.
    assert [one.of[0][0].cell.workload for one in others][:2] == ["model8", "model9"]
    assert len({one.of[0][0].cell for one in others}) == len(others)
    drawn = sheets.findings([first, *others]).lines
    assert drawn[0][2].startswith("worse in ")
    assert "model8, batch 1" in [line[2] for line in drawn]


def test_the_whole_counts_each_judgement() -> None:
    random = np.random.default_rng(4)
    comparison = compare(matrix(random), matrix(random, model3={"mode_s": 0.06}))
    sheet = sheets.means(comparison)
    for line in sheet.lines:
        # The counts are of all cells, the means of models.
        columns = [name.removeprefix("all cells: ") for name in sheet.columns]
        shown = dict(zip(columns, line, strict=True))
        counted = sum(int(shown[one.value]) for one in Difference)
        assert counted == sum(shown["figure"] in one.effects for one in comparison.changes)
    assert dict(zip(sheet.columns, sheet.lines[0], strict=True))["all cells: worse"] == "1"


@pytest.mark.parametrize(
    ("mean", "found"),
    [
        ((1.0, 0.96, 1.04), Difference.SAME),
        ((1.0, 0.94, 1.06), Difference.UNKNOWN),
        ((1.05, 1.02, 1.08), Difference.WORSE),
        # A small change is one if it is sure, of a mean as of a cell.
        ((1.041, 1.035, 1.046), Difference.WORSE),
        ((0.97, 0.96, 0.98), Difference.BETTER),
        ((1.005, 1.004, 1.006), Difference.SAME),
        ((1.0, math.nan, math.nan), Difference.UNKNOWN),
    ],
)
def test_what_a_mean_says(mean: tuple[float, float, float], found: Difference) -> None:
    assert discovery.mean_difference("time ratio", statistics.Interval(*mean)) is found


@pytest.mark.parametrize(
    ("name", "mean", "found"),
    [
        # The heap grows in steps, so less than 5 % more is no change.
        ("memory", (1.03, 1.02, 1.04), Difference.SAME),
        # A cell has one cold start, which may be off by 10 %. The mean of many is not.
        ("cold compile", (1.08, 1.07, 1.09), Difference.WORSE),
        ("cold compile", (1.04, 1.03, 1.049), Difference.SAME),
    ],
)
def test_what_a_mean_of_another_figure_says(
    name: str, mean: tuple[float, float, float], found: Difference
) -> None:
    assert discovery.mean_difference(name, statistics.Interval(*mean)) is found


def test_samples_without_a_second_value_have_no_variance_in_common() -> None:
    variance, degrees = statistics.pooled([(math.nan, 0)])
    assert math.isnan(variance)
    assert degrees == 0
    assert statistics.pooled([(math.nan, 0), (2.0, 1), (5.0, 2)]) == (4.0, 3)


def test_a_mean_is_one_of_models_as_users_run_them() -> None:
    """Small programs, and models with another heap, have twice the time with the newer release."""
    random = np.random.default_rng(8)
    others = [Cell("small_1x1", 1, "default"), Cell("model0", 1, "default", allocator="default")]
    comparison = compare(
        [*matrix(random), *(measurement(random, cell) for cell in others)],
        [*matrix(random), *(measurement(random, cell, mode_s=0.06) for cell in others)],
    )
    assert comparison.means["compiled"].value == pytest.approx(1.0, abs=0.02)
    assert comparison.in_means == {Cell(f"model{number}", 1, "default") for number in range(10)}
    # The models were not measured in turns: their times have no mean, and the others are counted.
    model = measurement(random, Cell("model0", 1, "default"), series="")
    apart = compare(
        [model, measurement(random, others[0])],
        [model, measurement(random, others[0], mode_s=0.06)],
    )
    line = next(line for line in sheets.means(apart).lines if line[0] == "compiled")
    assert line[1:4] == ["-", "0", "1"]
    programs = compare(
        [measurement(random, others[0])], [measurement(random, others[0], mode_s=0.06)]
    )
    assert programs.means["compiled"].value == pytest.approx(2.0, rel=0.05)


def test_another_package_that_differs_is_named() -> None:
    """An int8 model came with another torchao: what changed may be torchao's."""
    random = np.random.default_rng(9)
    cell = Cell("model0", 1, "eager", dtype="int8-dynamic", baseline="eager-float32")
    before, after = (
        with_launches(
            measurement(random, cell, mode_s=mode_s),
            environment=examples.environment(torchao=version),
        )
        for mode_s, version in ((0.03, "0.15.0"), (0.3, "0.18.0"))
    )
    comparison = compare([before], [after])
    (change,) = comparison.changes
    assert change.moved == "mode"
    assert change.effects.keys() == {"time ratio", "eager", "compiled", "memory"}, (
        "nothing is compiled: the first calls of eager are no compile cost"
    )
    assert comparison.packages == {"torchao 0.15.0, then 0.18.0": [cell]}
    assert "another package differs, too (torchao 0.15.0, then 0.18.0)" in wording.judgement(
        comparison
    )


def test_what_was_measured_in_both_is_counted_though_nothing_of_it_is_compared() -> None:
    """An eager cell of two runs has no ratio, and here no memory."""
    random = np.random.default_rng(10)
    eager = [
        with_launches(
            measurement(random, Cell("model0", 1, "eager"), series=""), peak_memory_bytes=None
        )
        for _ in range(2)
    ]
    comparison = compare(eager[:1], eager[1:])
    assert comparison.compared == 1
    assert comparison.means == {}
    assert "1 of 1 cells can be compared. They were measured one run" in (
        wording.judgement(comparison)
    )


def test_a_mean_of_small_programs_is_not_called_one_of_models() -> None:
    random = np.random.default_rng(11)
    program, model = Cell("small_1x1", 1, "default"), Cell("model0", 1, "default")
    for cells, noun in (([program], "cells"), ([program, model], "models")):
        before, after = ([measurement(random, cell) for cell in cells] for _ in range(2))
        sheet = sheets.means(compare(before, after))
        assert sheet.columns[1:3] == [f"mean of {noun} [95 %]", "cells"]
        assert all(line[2] == "1" for line in sheet.lines)

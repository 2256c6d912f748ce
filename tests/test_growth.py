"""Memory over time: the slope, the verdict, the answer, and real processes."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite import matrix
from torchcompile_suite.analysis import growth
from torchcompile_suite.analysis.growth import NOTICEABLE_BYTES, Grows
from torchcompile_suite.analysis.statistics import Interval, mean_interval
from torchcompile_suite.cell import DEFAULT_HEAP, Cell
from torchcompile_suite.host import heap
from torchcompile_suite.measurement import OK, Growth, Launch, Measurement, Outcome, Status
from torchcompile_suite.presentation.answers.common import NOTHING
from torchcompile_suite.presentation.answers.processes import memory as answer
from torchcompile_suite.request import Plan, Request
from torchcompile_suite.results.records import Record
from torchcompile_suite.site import cells
from torchcompile_suite.trial import plan
from torchcompile_suite.trial.outline import Outline
from torchcompile_suite.trial.plan import Trial

from .conftest import ReleaseEnvironment, releases

CALLS = [200 * number for number in range(51)]
CELL = matrix.MEMORY_OVER_TIME.cell("softmax_matmul", "recompile")


def sampled(slope: float, start: int = 300 << 20, **more: Any) -> Growth:
    """A resident set that grows by that many bytes a call."""
    resident = [round(start + slope * calls) for calls in CALLS]
    return Growth(CALLS, resident, [one // 2 for one in resident], resident, **more)


def measured(*slopes: float, eager: float = 0.0, cell: Cell = CELL, **more: Any) -> Measurement:
    """One launch for each slope of the compiled process."""
    launches = [
        Launch(
            "cold",
            OK,
            pairs_s=[(1.0, 1.0)],
            warm_up_s=[1.0],
            growth=sampled(slope, **more),
            eager_growth=sampled(eager),
        )
        for slope in slopes
    ]
    return Measurement(cell, OK, launches, "2026-11-23T00:00:00+00:00", 60.0, "fixed")


def record(measurement: Measurement) -> Record:
    return Record("box", "12345678", "env", measurement, "2.9.1")


@given(st.floats(-1e6, 1e6), st.integers(0, 2**40), st.integers(2, 60))
def test_the_slope_of_a_line_is_its_slope(slope: float, start: int, samples: int) -> None:
    calls = [7 * number for number in range(samples)]
    values = [start + slope * one for one in calls]
    found = growth.slope(calls, values)
    if samples < 3:
        # Only one sample is left after the warm-up.
        assert math.isnan(found)
    else:
        assert found == pytest.approx(slope, rel=1e-3, abs=1e-2)


@given(st.integers(1, 50), st.integers(1, 1 << 30))
def test_one_step_of_the_heap_is_no_growth(place: int, step: int) -> None:
    values = [100 << 20] * place + [(100 << 20) + step] * (len(CALLS) - place)
    assert growth.slope(CALLS, values) == 0


def test_the_warm_up_does_not_count() -> None:
    values = [(300 << 20) - max(0, 14 - number) * (5 << 20) for number in range(51)]
    assert growth.slope(CALLS, values) == 0


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        (Interval(200.0, 150.0, 250.0), Grows.YES),
        (Interval(0.0, -5.0, 5.0), Grows.NO),
        (Interval(-300.0, -400.0, -200.0), Grows.NO),
        (Interval(70.0, 10.0, 130.0), Grows.UNKNOWN),
        (Interval(500.0, math.nan, math.nan), Grows.UNKNOWN),
        (Interval(math.nan, math.nan, math.nan), Grows.UNKNOWN),
    ],
)
def test_a_verdict_needs_the_whole_interval(interval: Interval, verdict: Grows) -> None:
    assert growth.verdict(interval) is verdict


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12))
def test_the_interval_is_around_the_mean(values: list[float]) -> None:
    interval = mean_interval(values)
    assert interval.low <= interval.value <= interval.high
    assert interval.value == pytest.approx(math.fsum(values) / len(values), abs=1e-6)
    negated = mean_interval([-value for value in values])
    assert negated.low == pytest.approx(-interval.high, abs=1e-6)


def test_without_a_second_launch_nothing_can_be_told() -> None:
    known = growth.growing(measured(5000.0).launches, "mode", "cpu")
    assert known is not None
    assert known.grows is Grows.UNKNOWN
    assert math.isnan(mean_interval([]).value)


def test_disturbed_launches_do_not_count() -> None:
    launches = measured(1000.0, 1010.0, 990.0, 0.0).launches
    launches[3] = msgspec.structs.replace(launches[3], disturbed="by others")
    known = growth.growing(launches, "mode", "cpu")
    assert known is not None
    assert known.judged.value == pytest.approx(1000, rel=0.01)
    assert known.allocated is not None
    assert known.allocated.value == pytest.approx(500, rel=0.01)
    assert known.grows is Grows.YES
    eager = growth.growing(launches, "eager", "cpu")
    assert eager is not None
    assert eager.grows is Grows.NO


def with_allocated(launch: Launch, allocated_bytes: list[int]) -> Launch:
    assert launch.growth is not None
    known = msgspec.structs.replace(launch.growth, allocated_bytes=allocated_bytes)
    return msgspec.structs.replace(launch, growth=known)


def test_on_an_accelerator_the_host_does_not_decide() -> None:
    """A host that grows by 1000 bytes a call, while the device grows by 500: and the reverse."""
    launches = measured(1000.0, 1010.0, 990.0).launches
    on_device = growth.growing(launches, "mode", "cuda")
    assert on_device is not None
    assert on_device.judged.value == pytest.approx(500, rel=0.01)
    assert on_device.first_bytes == 150 << 20
    host_grows = [with_allocated(one, [5 << 20] * len(CALLS)) for one in launches]
    stays = growth.growing(host_grows, "mode", "cuda")
    assert stays is not None
    assert (stays.grows, growth.growing(host_grows, "mode", "cpu").grows) == (Grows.NO, Grows.YES)  # type: ignore[union-attr]
    unknown = [with_allocated(one, []) for one in launches]
    untold = growth.growing(unknown, "mode", "cuda")
    assert untold is not None
    assert untold.grows is Grows.UNKNOWN


def test_the_answer_names_the_memory_that_decides() -> None:
    made = measured(1000.0, 1010.0, 990.0, cell=msgspec.structs.replace(CELL, device="cuda"))
    found = answer([record(made)])
    assert "the device memory of a compiled model grows in 1" in found.sentence
    assert "device MiB: first" in found.sheet.columns


@pytest.mark.parametrize(
    "strange",
    [
        Growth([], []),
        Growth([0, 1, 2], [5]),
        Growth([0, 1], [5, 5], allocated_bytes=[1]),
    ],
)
def test_samples_of_a_stranger_that_do_not_fit_are_none(strange: Growth) -> None:
    launch = Launch("cold", OK, growth=strange)
    assert growth.of_side(launch, "mode") is None
    assert growth.growing([launch], "mode", "cpu") is None


@given(st.lists(st.integers(0, 2**53), max_size=30), st.lists(st.integers(0, 2**53), max_size=30))
def test_no_samples_of_a_stranger_break_the_answer(calls: list[int], resident: list[int]) -> None:
    made = measured(0.0, 0.0, 0.0)
    launches = [
        msgspec.structs.replace(one, growth=Growth(calls, resident)) for one in made.launches
    ]
    strange = msgspec.structs.replace(made, launches=launches)
    sheet = answer([record(strange)]).sheet
    assert all(len(line) == len(sheet.columns) for line in sheet.lines)


def test_more_samples_than_anybody_compares_are_refused() -> None:
    many = msgspec.json.encode({"calls": [1] * 201, "resident_bytes": [1] * 201})
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(many, type=Growth)


def test_the_answer_says_what_grows_by_how_much() -> None:
    hit = "torch._dynamo hit config.recompile_limit (8)"
    grows = measured(1000.0, 1010.0, 990.0, shapes=12, graphs=8, limit=8, at_limit=hit)
    fixed = matrix.MEMORY_OVER_TIME.cell("softmax_matmul", "static")
    stays = measured(0.0, 1.0, 0.5, cell=fixed)
    missing = Measurement(
        matrix.MEMORY_OVER_TIME.cell("gpt_decode", "recompile"),
        Outcome(Status.UNSUPPORTED, "no stream of shapes"),
        [],
        "2026-11-23T00:00:00+00:00",
        1.0,
    )
    found = answer([record(one) for one in (grows, stays, missing)])
    assert "over up to 10,000 calls" in found.sentence.lower()
    assert "grows in 1 (softmax_matmul with changing shapes (recompile): 1,000 [" in found.sentence
    assert "does not grow in 1 (softmax_matmul with fixed shapes: 0.5 [" in found.sentence
    assert "8 graphs for 12 shapes" in found.sentence
    both = msgspec.structs.replace(stays, cell=grows.cell)
    alike = answer([record(one) for one in (both, stays)]).sentence
    assert "does not grow in any of 2 cells: softmax_matmul with" in alike
    sheet = found.sheet
    assert all(len(line) == len(sheet.columns) for line in sheet.lines)
    verdicts = [line[sheet.columns.index("verdict")] for line in sheet.lines]
    assert verdicts == ["does not grow", "grows", "does not grow", "does not grow", ""]
    assert "unsupported: no stream of shapes" in sheet.lines[-1]
    assert hit in sheet.lines[1]


def test_without_a_number_the_answer_says_so() -> None:
    assert answer([]).sentence == NOTHING
    failed = Measurement(CELL, Outcome(Status.CRASH, "killed"), [], "", 1.0)
    assert answer([record(failed)]).sentence == "No cell has a number: crash: killed."
    unsampled = measured(0.0)
    bare = [msgspec.structs.replace(one, growth=None) for one in unsampled.launches]
    found = answer([record(msgspec.structs.replace(unsampled, launches=bare))])
    assert found.sentence


def test_the_cells_of_a_users_model() -> None:
    trial = Trial("mine", batch_sizes=(4, 8), modes=("default",), dynamic=True)
    starts = plan.QUESTIONS["starts"](msgspec.structs.replace(trial, batch_sizes=(4,)), Outline())
    assert [cell.start for cell in starts] == matrix.STARTS
    assert {cell.batch_size for cell in starts} == {4}
    assert {cells.question(cell) for cell in starts} == {"cold starts"}
    memory = plan.QUESTIONS["memory"](trial, Outline())
    assert [cell.shapes for cell in memory] == matrix.CHANGING
    assert {cell.allocator for cell in memory} == {DEFAULT_HEAP}
    assert {cells.question(cell) for cell in memory} == {"memory over time"}
    plain = plan.QUESTIONS["memory"](Trial("mine"), Outline(batch_size=16, scales=False))
    assert [(cell.shapes, cell.batch_size) for cell in plain] == [("static", 16)]


def test_malloc_tells_what_it_has_handed_out() -> None:
    before = heap.held()
    if before is None:
        pytest.skip("the C library does not tell")
    block = bytearray(64 << 20)
    after = heap.held()
    assert after is not None
    assert after[0] - before[0] >= len(block)
    assert all(allocated <= reserved for allocated, reserved in (before, after))


# --- with a real release -----------------------------------------------------------------------

WORKLOADS = Path(__file__).with_name("workloads_that_fail.py")


def real(
    environment: ReleaseEnvironment, folder: Path, workload: str, calls: int, **cell: str
) -> Launch:
    of = Cell(
        workload,
        1,
        "default",
        allocator=DEFAULT_HEAP,
        protocol="many-calls",
        **cell,  # type: ignore[arg-type]
    )
    plan = Plan(min_pairs=3, min_timed_s=0.1, max_timed_s=100.0, error=1, calls=calls)
    launch = environment.launch(Request(of, "cold", str(folder / "cache"), plan), WORKLOADS)
    assert launch.outcome.ok, launch.outcome
    return launch


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_model_that_leaks_grows_and_its_compiled_form_does_not(
    newest: ReleaseEnvironment, tmp_path: Path
) -> None:
    launch = real(newest, tmp_path, "leaking", 3000)
    eager, compiled = launch.eager_growth, launch.growth
    assert eager is not None
    assert compiled is not None
    assert eager.calls[0] == 0
    assert eager.calls[-1] == 3000
    assert eager.calls == [60 * number for number in range(51)]
    # 16 KiB for the tensor, and the objects around it.
    assert 16_384 <= growth.resident_slope(eager) < 20_000
    allocated = growth.allocated_slope(eager)
    assert allocated is not None
    assert 16_384 <= allocated < 20_000
    assert growth.resident_slope(compiled) < NOTICEABLE_BYTES
    assert (eager.graphs, eager.limit) == (None, None)
    assert (compiled.graphs, compiled.shapes, compiled.at_limit) == (1, 1, "")
    assert len(launch.pairs_s) >= 3, "it is timed, too"


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("release", releases("v2.4"))
def test_more_shapes_than_dynamo_keeps(
    make_environment: Callable[[str], ReleaseEnvironment], tmp_path: Path, release: str
) -> None:
    launch = real(make_environment(release), tmp_path, "shapes", 600, shapes="recompile")
    compiled = launch.growth
    assert compiled is not None
    assert (compiled.shapes, compiled.limit) == (12, 8)
    assert compiled.calls[-1] == 600, "calls of the module, not passes over the stream"
    assert compiled.graphs is not None
    assert compiled.graphs >= 8
    assert "_limit (8)" in compiled.at_limit
    assert launch.eager_growth is not None
    assert launch.eager_growth.shapes == 12

"""The answers about freezing, regional compilation and shapes say what the measurements say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite.cell import DEFAULT_HEAP, Cell, Shapes, Way
from torchcompile_suite.compiled import Compiled
from torchcompile_suite.measurement import OK, Measurement, Outcome, Status
from torchcompile_suite.presentation.answers import Answer
from torchcompile_suite.presentation.answers.common import NOTHING
from torchcompile_suite.presentation.answers.ways import dynamic_shapes, freezing, regional
from torchcompile_suite.results.records import Record

from . import examples

ANSWERS = (freezing, regional, dynamic_shapes)
FAILED = Outcome(Status.COMPILE_ERROR, "while in compile: [red]no[/red]")


def measured(
    workload: str,
    ratio: float,
    cold_s: float = 30.0,
    compiled: Compiled | None = None,
    outcome: Outcome = OK,
    **axes: Any,
) -> Measurement:
    """Three launches near that ratio; eager takes 40 ms."""
    made = examples.measurement(workload, outcome=outcome)
    launches = [
        msgspec.structs.replace(
            one,
            pairs_s=[(0.04, 0.04 * ratio * wobble)] * 15,
            warm_up_s=[(cold_s if one.kind == "cold" else cold_s / 4)] + [0.04 * ratio] * 10,
            compiled=compiled if one.kind == "cold" else None,
        )
        if outcome.ok
        else one
        for one, wobble in zip(made.launches, (1.0, 1.001, 0.999), strict=False)
    ]
    return msgspec.structs.replace(
        made, cell=Cell(workload, 1, "default", **axes), launches=launches
    )


def asked(
    answer: Callable[[Sequence[Record]], Answer], *measurements: Measurement
) -> tuple[str, dict[str, list[str]]]:
    """The sentence, and the lines by model and mode."""
    sentence, sheet = answer(
        [Record("box", "01234567", "env", one, "2.15.0") for one in measurements]
    )
    assert all(len(line) == len(sheet.columns) for line in sheet.lines)
    assert sheet.numbers <= set(sheet.columns)
    return sentence, {f"{line[0]}, {line[2]}": line for line in sheet.lines}


def test_without_measurements_the_sentence_says_so() -> None:
    for answer in ANSWERS:
        sentence, lines = asked(answer, examples.measurement())
        assert sentence == NOTHING
        assert lines == {}


def test_a_failed_cell_is_a_line_with_its_reason_and_no_figure() -> None:
    for answer, failed in (
        (freezing, measured("m", 1, outcome=FAILED, way="freezing")),
        (regional, measured("m", 1, outcome=FAILED, way="nested-region")),
        (dynamic_shapes, measured("m", 1, outcome=FAILED, shapes="unbacked")),
    ):
        sentence, lines = asked(answer, failed)
        assert "no figures here: 1 cell ended as compile-error" in sentence
        (line,) = lines.values()
        assert line[3] == f"compile-error: {FAILED.reason}"
        assert set(line[4:]) == {""}


def test_a_cell_without_what_it_is_compared_with_says_so() -> None:
    sentence, _ = asked(freezing, measured("m", 0.5, way="freezing"))
    assert "no figures here: what 1 cell would be compared with has none" in sentence


def test_freezing_is_compared_with_plain_compiling() -> None:
    sentence, lines = asked(
        freezing,
        measured("good", 0.8, 20.0),
        measured("good", 0.4, 40.0, way="freezing"),
        measured("bad", 0.5, 20.0),
        measured("bad", 1.5, 40.0, way="freezing"),
        measured("other", 0.7),
    )
    assert "a call of 2 models takes 1.22 [" in sentence  # the root of 0.5 times 3
    assert "faster for good (0.50 [0.50, 0.50])" in sentence
    assert "slower for bad (3.00 [" in sentence
    assert "a cold compile 2.0" in sentence
    assert set(lines) == {
        "good, default",
        "good, default: freezing",
        "bad, default",
        "bad, default: freezing",
    }
    assert lines["bad, default: freezing"][6].startswith("3.00 [")
    assert lines["bad, default"][6] == "-"


def test_the_two_means_of_freezing_are_over_the_same_models() -> None:
    one_launch = measured("b", 0.5, 20.0)
    one_launch = msgspec.structs.replace(one_launch, launches=one_launch.launches[:1])
    sentence, _ = asked(
        freezing,
        measured("a", 0.8, 20.0),
        measured("a", 0.4, 40.0, way="freezing"),
        one_launch,
        measured("b", 0.1, 40.0, way="freezing"),
    )
    assert "a call of 2 models takes 0.50 [0.50, 0.50] of its time" in sentence
    assert "(geometric mean of 1), and 0.40 [0.40, 0.40] of eager's time" in sentence


def test_memory_is_that_of_the_default_heap() -> None:
    twins = [
        measured("m", ratio, allocator=DEFAULT_HEAP, way=way)
        for ratio, way in ((0.8, "whole"), (0.8, "freezing"))
    ]
    frozen = [
        msgspec.structs.replace(one, peak_memory_bytes=750_000_000) for one in twins[1].launches
    ]
    sentence, lines = asked(
        freezing,
        measured("m", 0.8),
        measured("m", 0.4, way="freezing"),
        twins[0],
        msgspec.structs.replace(twins[1], launches=frozen),
    )
    assert "the peak memory 1.50 [1.50, 1.50] times as much" in sentence
    assert len(lines) == 4


def blocks(count: int, ratio: float, cold_s: float, way: Way) -> Measurement:
    compiled = Compiled(graphs=1, kernels=5, blocks=0 if way == "whole" else count)
    return measured(f"m{count}", ratio, cold_s, compiled, way=way)


def test_regional_compilation_begins_to_pay_at_a_number_of_blocks() -> None:
    sentence, lines = asked(
        regional,
        *(blocks(count, 0.5, 2.0 + count, "whole") for count in (2, 6, 12, 24)),
        *(blocks(count, 0.55, 7.0, "regional") for count in (2, 6, 12, 24)),
    )
    assert sentence.startswith("With 24 equal blocks (m24), compiling only the repeated block")
    assert "takes 7.0 s from a cold start and not 26.0 s (0.27)" in sentence
    assert "a call takes 1.10 [1." in sentence
    # 19 s are saved, and a call of 20 ms takes 2 ms longer.
    assert "uses up the shorter start after 9,5" in sentence
    # With 6 blocks it takes 7 s instead of 8 s, with 2 blocks instead of 4 s.
    assert "from 6 blocks on" in sentence
    assert [line[3] for line in lines.values()] == ["12", "12", "2", "2", "24", "24", "6", "6"]
    assert lines["m2, default: regional"][-1] == "-"


def test_a_difference_of_one_cold_start_within_the_margin_is_not_claimed() -> None:
    sentence, _ = asked(
        regional,
        *(blocks(count, 0.5, 20.0, "whole") for count in (6, 24)),
        *(blocks(count, 0.5, 18.5, "nested-region") for count in (6, 24)),
    )
    assert "does not shorten the cold start" in sentence
    assert "uses up" not in sentence
    # Nor where calls are slower: there is nothing to use up.
    slower, _ = asked(
        regional,
        *(blocks(count, 0.5, 20.0, "whole") for count in (6, 24)),
        *(blocks(count, 0.7, 18.5, "nested-region") for count in (6, 24)),
    )
    assert "does not shorten the cold start" in slower
    assert "uses up" not in slower


def stream(ratio: float, first_s: float, shapes: Shapes, again: int, new: int) -> Measurement:
    compiled = Compiled(graphs=2, recaptures={"tail": again, "new shapes": new})
    return measured("m", ratio, first_s, compiled, shapes=shapes)


def test_the_best_policy_is_named_with_those_that_cannot_be_told_from_it() -> None:
    sentence, lines = asked(
        dynamic_shapes,
        stream(0.70, 60.0, "recompile", 0, 6),
        stream(0.6999, 20.0, "dynamic", 0, 0),
        stream(1.30, 30.0, "buckets", 1, 2),
        measured("m", 1.0, outcome=FAILED, shapes="unbacked"),
        measured("m", 0.5),
        measured("m", 0.1, shapes="recompile", protocol="many-calls", allocator=DEFAULT_HEAP),
    )
    assert "the fastest policy for shapes is dynamic, a pass takes 0.70 [" in sentence
    assert "cannot be told from recompile (0.70 [" in sentence
    assert "20.0 s with dynamic, and 60.0 s with recompile" in sentence
    assert "requests in a second pass with buckets (1)" in sentence
    assert "requests for another batch size with recompile (6) and buckets (2)" in sentence
    assert len(lines) == 4, "calls whose memory is watched are another question"
    assert lines["m, default: unbacked"][3].startswith("compile-error")


def test_where_no_policy_gains_the_nearest_is_named() -> None:
    sentence, _ = asked(dynamic_shapes, stream(1.4, 9.0, "marked", 0, 0))
    assert "no policy for shapes is surely faster than eager; the nearest is marked" in sentence
    assert "no policy recompiles for another batch size" in sentence


anything = st.builds(
    measured,
    workload=st.sampled_from(["a", "b"]),
    ratio=st.floats(1e-3, 1e3),
    cold_s=st.floats(0.5, 1e4),
    compiled=st.none() | st.builds(Compiled, blocks=st.integers(0, 40)),
    outcome=st.sampled_from([OK, FAILED]),
    way=st.sampled_from(get_args(Way)),
    shapes=st.sampled_from(get_args(Shapes)),
    allocator=st.sampled_from(["system", DEFAULT_HEAP]),
)


@pytest.mark.parametrize("answer", ANSWERS)
@given(measurements=st.lists(anything, max_size=8, unique_by=lambda one: one.cell))
def test_any_measurements_have_an_answer(
    answer: Callable[[Sequence[Record]], Answer], measurements: list[Measurement]
) -> None:
    """One sentence or more, and a line for each cell of the question."""
    sentence, lines = asked(answer, *measurements)
    assert sentence.endswith(".")
    assert "nan" not in sentence
    assert len(lines) <= len(measurements)

"""Answers about overhead, attention, int8 and graph breaks, from invented records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite import matrix, workloads
from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import QUANTISATIONS, Cell
from torchcompile_suite.compiled import Compiled, GraphBreak
from torchcompile_suite.generated import Code, Generated
from torchcompile_suite.measurement import Accuracy, Measurement, Outcome, Status
from torchcompile_suite.presentation.answers import Answer
from torchcompile_suite.presentation.answers.generated import graph_breaks
from torchcompile_suite.presentation.answers.pays import inference
from torchcompile_suite.presentation.answers.variants import (
    attention,
    overhead,
    quantisation,
    ways_of_attention,
)
from torchcompile_suite.results.records import Record
from torchcompile_suite.site import cells
from torchcompile_suite.trial import plan
from torchcompile_suite.trial.outline import Outline
from torchcompile_suite.trial.plan import Trial

from . import examples

WOBBLE = (1.0, 1.004, 0.996)


def timed(
    cell: Cell,
    eager: float,
    mode: float,
    compiled: Compiled | None = None,
    accuracy: Accuracy | None = None,
) -> Record:
    """A record of three launches around those seconds a call."""
    made = examples.measurement()
    launches = [
        msgspec.structs.replace(one, pairs_s=[(eager * wobble, mode * wobble**2)] * 15)
        for one, wobble in zip(made.launches, WOBBLE, strict=True)
    ]
    if compiled:
        launches[0] = msgspec.structs.replace(launches[0], compiled=compiled)
    if accuracy:
        launches = [msgspec.structs.replace(one, accuracy=accuracy) for one in launches]
    return record(msgspec.structs.replace(made, cell=cell, launches=launches))


def record(measurement: Measurement) -> Record:
    return Record("box", "a" * 8, "env", measurement, "2.9.1")


def failed(cell: Cell, status: Status, reason: str) -> Record:
    made = examples.measurement(outcome=Outcome(status, reason))
    return record(msgspec.structs.replace(made, cell=cell))


def small(operators: int, inputs: int, eager: float, mode: float) -> Record:
    compiled = Compiled(guards=7, guard_check_s=1.5e-6, launches=1)
    return timed(Cell(f"small_{operators}x{inputs}", 1, "default"), eager, mode, compiled)


def test_the_smallest_graph_that_gains_is_the_first_whose_interval_lies_below_1() -> None:
    """1 operator is slower, 10 do not tell, 100 gain, and 1000 gain more."""
    found = overhead(
        [
            small(1000, 1, 900e-6, 90e-6),
            small(1, 1, 2e-6, 12e-6),
            small(10, 1, 10e-6, 10e-6),
            small(100, 1, 90e-6, 30e-6),
            small(100, 100, 100e-6, 200e-6),
        ]
    )
    measured = "of those with 1 input (operators measured: 1, 10, 100, 1,000)"
    assert f"{measured} the smallest that gains has 100 operators (0.33 [" in found.sentence
    assert "of those with 100 inputs (operators measured: 100) none surely gains" in found.sentence
    assert "A compiled call of 1 operator with 1 input costs 12 [" in found.sentence
    assert "of 1000 operators with 1 input costs 90" not in found.sentence
    assert "of 1000 operators with 1 input 90 [" in found.sentence
    assert "1.5 us of it check guards" in found.sentence
    # No work was timed twice, so the drift between the two cells is not known.
    assert (
        "with 100 inputs instead of 1, a call of 100 operators takes 6.67 times" in found.sentence
    )
    assert [line[:2] for line in found.sheet.lines] == [
        ["1", "1"], ["10", "1"], ["100", "1"], ["1,000", "1"], ["100", "100"]
    ]  # fmt: skip
    assert found.sheet.lines[0][3:] == ["2", "12", "6.00 [5.92, 6.08]", "7", "1.5", "1"]


def test_a_single_graph_is_an_answer_too() -> None:
    found = overhead([small(1, 1, 2e-6, 12e-6)])
    assert "of those with 1 input (operators measured: 1) none surely gains" in found.sentence
    assert "instead of" not in found.sentence


def test_a_graph_without_numbers_is_in_the_table_with_its_reason() -> None:
    cell = Cell("small_1000x1", 1, "default")
    found = overhead([small(1, 1, 2e-6, 12e-6), failed(cell, Status.TIMEOUT, "took over 300 s")])
    assert found.sentence.endswith("1 cell has no number: the table has the reasons.")
    assert "timeout: took over 300 s" in found.sheet.lines[1]
    assert len({len(line) for line in (*found.sheet.lines, found.sheet.columns)}) == 1


def test_other_cells_of_the_same_workloads_are_not_asked() -> None:
    other = Cell("small_1x1", 1, "default", allocator="libc")
    foreign = Cell("small_2x1", 1, "default")
    assert not overhead([timed(other, 1, 1), timed(foreign, 1, 1)]).measured


def test_ways_are_compared_with_sdpa_of_the_same_mask_in_eager() -> None:
    way = "attention_{}_512".format
    found = attention(
        [
            timed(Cell(way("sdpa"), 1, "default"), 4e-3, 4.4e-3),
            timed(Cell(way("sdpa_causal"), 1, "default"), 2e-3, 2e-3),
            timed(Cell(way("flex"), 1, "default"), 80e-3, 6e-3),
            timed(Cell(way("flex_causal"), 1, "default"), 80e-3, 5e-3),
            failed(Cell(way("spelled_out"), 1, "default"), Status.CRASH, "no luck"),
        ]
    )
    # No work was timed twice, so the drift between two cells is not known.
    assert "FlexAttention 1.50 at" in found.sentence
    assert "FlexAttention with a causal mask 2.50 at" in found.sentence
    assert "; SDPA 1.10 [" in f"; {found.sentence.partition(': ')[2]}"
    assert "spelled out" not in found.sentence
    assert found.sentence.endswith("1 cell has no number: the table has the reasons.")
    assert [line[1] for line in found.sheet.lines] == [
        "attention spelled out", "SDPA", "FlexAttention", "SDPA with a causal mask",
        "FlexAttention with a causal mask",
    ]  # fmt: skip
    assert "crash: no luck" in found.sheet.lines[0]


def test_a_way_without_its_reference_has_no_comparison() -> None:
    found = attention([timed(Cell("attention_flex_128", 1, "default"), 80e-3, 6e-3)])
    assert found.sheet.lines[0][6] == "-"
    assert found.measured


def test_the_interval_of_a_quotient_has_the_drift_of_the_machine() -> None:
    """Eager SDPA was measured twice, in two modes, and differs by a fifth."""
    way = "attention_{}_512".format
    calm = [
        timed(Cell(way("sdpa"), 1, "default"), 4e-3, 4.4e-3),
        timed(Cell(way("sdpa"), 1, "max-autotune"), 4e-3, 4.4e-3),
        timed(Cell(way("flex"), 1, "default"), 80e-3, 6e-3),
    ]
    moved = [*calm[:1], timed(Cell(way("sdpa"), 1, "max-autotune"), 4.8e-3, 5e-3), calm[2]]

    def width(records: list[Record]) -> float:
        found = ways_of_attention(records)
        one = next(one for one in found if one.cell.workload == way("flex"))
        assert one.over_beside is not None
        return statistics.half_width(one.over_beside)

    assert width(moved) > 5 * width(calm)


def int8(workload: str, dtype: str, mode: str, eager: float, time: float) -> Record:
    accuracy = Accuracy("same-dtype", 0.0, 1e-4, 1e-2, float32_error=0.012)
    cell = Cell(workload, 1, mode, dtype=dtype, baseline="eager-float32")
    return timed(cell, eager, time, accuracy=accuracy)


def test_int8_is_compared_with_float32_in_eager_and_in_the_same_mode() -> None:
    dynamic, weights = QUANTISATIONS
    found = quantisation(
        [
            int8("linear_4096", weights, "default", 8e-3, 2e-3),
            int8("linear_4096", weights, "eager", 8e-3, 16e-3),
            int8("gpt_decode", weights, "default", 1e-3, 1.5e-3),
            int8("linear_4096", dynamic, "default", 8e-3, 4e-3),
            timed(Cell("linear_4096", 1, "default"), 8e-3, 4e-3),
            failed(
                Cell("gpt_decode", 1, "default", dtype=dynamic, baseline="eager-float32"),
                Status.UNSUPPORTED,
                "no torchao",
            ),
        ]
    )
    assert f"{weights}, of the time of float32 in eager: alone faster in 0 of 1 model" in (
        found.sentence
    )
    assert "compiled (mode default) faster in 1 of 2 models, on average 0.61 [" in found.sentence
    assert "and 0.50 [" in found.sentence
    assert "The least time over float32 in eager: 0.25 [" in found.sentence
    assert "(linear_4096, int8-weight-only, mode default)" in found.sentence
    by_name = {tuple(line[i] for i in (0, 2, 3)): line[4:] for line in found.sheet.lines}
    assert by_name["linear_4096", weights, "default"][3].startswith("0.50 [")
    assert by_name["linear_4096", weights, "eager"][2:4][0].startswith("2.0")
    assert by_name["gpt_decode", weights, "default"][3:] == ["-", "0.012"]
    assert by_name["gpt_decode", dynamic, "default"][0] == "unsupported: no torchao"


def test_what_is_not_quantised_still_has_an_answer_for_float32() -> None:
    reason = "torchao quantised nothing: the module has no nn.Linear with floating-point weights"
    refused = [
        failed(
            Cell("mine", 1, mode, dtype=dtype, baseline="eager-float32"), Status.UNSUPPORTED, reason
        )
        for dtype in QUANTISATIONS
        for mode in ("eager", "default")
    ]
    found = quantisation([*refused, timed(Cell("mine", 1, "default"), 8e-3, 4e-3)])
    assert found.sentence.startswith(f"None of 4 cells has a number: unsupported: {reason}. ")
    assert "Float32 compiled, of its time in eager: mode default 0.50 [" in found.sentence
    assert not found.sheet.lines


def generated(workload: str, breaks: int) -> Record:
    code = Code(1, 1, 0, 0, 1, 1, 8, 8, None, None, 10, "0" * 64)
    listed = [GraphBreak("a reason", f"x.py:{number}") for number in range(breaks)]
    made = Generated(breaks + 1, 10, code, graph_breaks=listed)
    launch = msgspec.structs.replace(examples.launch(), pairs_s=[], warm_up_s=[], generated=made)
    cell = Cell(workload, 1, "default", target="cuda:sm90")
    return record(msgspec.structs.replace(examples.measurement(), cell=cell, launches=[launch]))


def test_graph_breaks_stand_beside_pytorchs(break_lines: Path) -> None:
    same, other = generated("mobilenetv2_100", 0), generated("ghostnet_100", 2)
    found = graph_breaks([same, same, other, generated("resnet18", 0)])
    assert [line[0] for line in found.sheet.lines] == ["ghostnet_100", "mobilenetv2_100"]
    assert found.sentence.startswith(
        "2 models of PyTorch's tables. With graph breaks if the table lists some"
    )
    assert found.sentence.endswith("; others: ghostnet_100.")
    lines = [dict(zip(found.sheet.columns, line, strict=True)) for line in found.sheet.lines]
    first, second = lines
    assert (first["graph breaks"], first["PyTorch's number"], first["equal"]) == ("2", "0", "no")
    assert "here x.py:1: a reason" in first["why"]
    assert (second["graphs"], second["equal"], second["why"]) == ("1", "yes", "")


def test_their_cells_have_titles_of_their_own() -> None:
    assert cells.question(Cell("small_1x1", 1, "default")) == "overhead"
    assert cells.question(Cell("attention_flex_512", 1, "max-autotune")) == "attention"
    assert cells.question(Cell("attention_spelled_out", 1, "default")) == "fusion"
    assert cells.question(Cell("resnet18", 8, "max-autotune")) == "inference"
    assert cells.question(Cell("somebody-elses", 1, "default")) == "inference"
    assert {workloads.get(name).family for name in workloads.names()} >= workloads.MADE_FOR.keys()
    assert cells.ABOUT.keys() >= set(workloads.MADE_FOR.values())
    assert cells.question(Cell("small_1x1", 1, "default", allocator="libc")) == "allocator"
    for question in (matrix.OVERHEAD, matrix.ATTENTION, matrix.QUANTISATION):
        for point in question.points:
            title = cells.question(question.cell(*point))
            assert title == question.name.partition(".")[0]
            assert title in cells.ABOUT
    bfloat = Cell("gpt_decode", 1, "default", dtype="bfloat16", baseline="eager-float32")
    assert cells.question(bfloat) == "precision"


def test_what_is_no_model_is_left_out_of_the_mean_over_models() -> None:
    model = timed(Cell("resnet18", 1, "default"), 1.0, 0.5)
    others = [small(1, 1, 1.0, 5.0), timed(Cell("attention_sdpa_512", 1, "default"), 1.0, 5.0)]
    assert inference([model, *others]) == inference([model])


def test_a_users_model_is_quantised_in_both_ways_and_compiled_without() -> None:
    made = plan.QUESTIONS["quantisation"](
        Trial("mine", batch_sizes=(8,), modes=("default",)), Outline()
    )
    assert {(cell.dtype, cell.mode, cell.baseline) for cell in made} == {
        ("float32", "default", "eager"),
        *(
            (dtype, mode, "eager-float32")
            for dtype in QUANTISATIONS
            for mode in ("eager", "default")
        ),
    }
    assert {cell.batch_size for cell in made} == {8}
    found = quantisation([timed(cell, 2e-3, 1e-3) for cell in made])
    assert len(found.sheet.lines) == 4


@given(
    st.dictionaries(
        st.sampled_from(list(matrix.OVERHEAD.by_cell)),
        st.tuples(st.floats(1e-7, 10), st.floats(1e-7, 10)),
        min_size=1,
    )
)
def test_any_times_give_a_sentence_and_a_line_for_each_cell(
    times: dict[Cell, tuple[float, float]],
) -> None:
    found = overhead([timed(cell, *seconds) for cell, seconds in times.items()])
    assert len(found.sheet.lines) == len(times)
    assert "nan" not in found.sentence


@pytest.mark.parametrize("answer", [overhead, attention, quantisation, graph_breaks])
def test_records_that_nobody_asked_for_give_no_line(
    answer: Callable[[Sequence[Record]], Answer],
) -> None:
    others = [
        timed(Cell("resnet18", 1, "default"), 1, 1),
        timed(Cell("resnet18", 1, "eager"), 1, 1),
    ]
    assert not answer(others).measured

"""Answers: every question has one for any records, and its figures are those of the report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite import matrix
from torchcompile_suite.analysis import statistics, summaries, summary
from torchcompile_suite.cell import DEFAULT_HEAP, Cell, Protocol, Shapes, Start, Way
from torchcompile_suite.cli import app
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.measurement import OK, Launch, Measurement, Outcome, Status
from torchcompile_suite.modes import EAGER, MODES
from torchcompile_suite.presentation import answers
from torchcompile_suite.presentation.answers import Answer
from torchcompile_suite.presentation.wording import plural
from torchcompile_suite.results import cached, records
from torchcompile_suite.results.parsing import decode
from torchcompile_suite.results.records import Record

from . import examples
from .schemas import validated

NAMES = answers.names()
COMMITS = {"2.9.1": "a" * 40, "2.15.0": "b" * 40}


def measured(cell: Cell, times: float, release: str = "2.15.0") -> Measurement:
    """The cell in a mode that takes so many times eager's time."""
    launches = [
        msgspec.structs.replace(
            examples.launch(kind, mode=0.040 * times * wobble),
            environment=examples.environment(f"{release}+cpu"),
        )
        for kind, wobble in (("cold", 1.0), ("warm", 1.003), ("warm", 0.997))
    ]
    return msgspec.structs.replace(examples.measurement(), cell=cell, launches=launches)


def alone(measured: Measurement) -> Measurement:
    """The same with one launch, which gives no interval."""
    return msgspec.structs.replace(measured, launches=measured.launches[:1])


def failed(cell: Cell, reason: str = "no compiler") -> Measurement:
    outcome = Outcome(Status.COMPILE_ERROR, reason)
    return msgspec.structs.replace(examples.measurement(outcome=outcome), cell=cell)


def of(*measurements: Measurement, release: str = "2.15.0") -> list[Record]:
    return [
        Record("box", "01234567", "env", summaries.condensed(one), release) for one in measurements
    ]


def answered(name: str, *measurements: Measurement) -> Answer:
    return answers.get(name).answer(of(*measurements))


def mean(*measurements: Measurement) -> str:
    rows = summary.rows(of(*measurements))
    return str(statistics.geometric_mean([row.ratio for row in rows if row.ratio]))


# Every question


def test_the_questions_are_in_the_order_of_the_benchmarks() -> None:
    benchmarks = list(dict.fromkeys(name.partition(".")[0] for name in matrix.QUESTIONS))
    asked_by_benchmarks = [name for name in benchmarks if name in NAMES]
    assert asked_by_benchmarks == NAMES[: len(asked_by_benchmarks)]
    assert NAMES[len(asked_by_benchmarks) :] == ["graph_breaks"]
    assert len(set(NAMES)) == len(NAMES)
    for asked in answers.QUESTIONS:
        assert asked.title.endswith("?")
        assert len(asked.title) <= 80
        assert asked.name == asked.name.lower()
    with pytest.raises(SuiteError, match=r"there are: .*training") as error:
        answers.get("unasked")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_measured_is_an_answer_without_a_line(name: str) -> None:
    found = answers.get(name).answer([])
    assert not found.measured
    assert found.sentence.endswith(".")
    assert found.sheet.columns
    assert found.sheet.numbers <= set(found.sheet.columns)
    assert found.sheet.lines == []


_times = st.floats(1e-12, 1e7)
_ok_launches = st.builds(
    Launch,
    kind=st.sampled_from(["cold", "warm"]),
    outcome=st.just(OK),
    pairs_s=st.lists(st.tuples(_times, _times), min_size=1, max_size=3),
    warm_up_s=st.lists(st.floats(0, 1e7), min_size=1, max_size=4),
)
_cells = st.builds(
    Cell,
    workload=st.sampled_from(["resnet18", "gpt_decode", "somebody-elses"]),
    batch_size=st.integers(1, 3),
    mode=st.sampled_from([*MODES, "somebody-elses"]),
    phase=st.sampled_from(["inference", "training"]),
    dtype=st.sampled_from(["float32", "bfloat16", "int8-dynamic"]),
    shapes=st.sampled_from(get_args(Shapes)),
    backend=st.sampled_from(["inductor", "aot_eager"]),
    allocator=st.sampled_from(["system", "libc", DEFAULT_HEAP]),
    protocol=st.sampled_from([one for one in get_args(Protocol) if one != "divided"]),
    baseline=st.sampled_from([EAGER, "eager-float32"]),
    accumulation=st.integers(1, 2),
    way=st.sampled_from(get_args(Way)),
    start=st.sampled_from(get_args(Start)),
)
_measurements = st.builds(
    Measurement,
    cell=_cells,
    outcome=st.just(OK),
    launches=st.lists(_ok_launches, min_size=1, max_size=3),
    started_at=st.just("2026-11-21T03:00:00+00:00"),
    duration_s=_times,
) | st.builds(failed, _cells, st.text(max_size=50))


@pytest.mark.parametrize(
    "name",
    [one.name for one in answers.QUESTIONS if not (one.of_targets or one.of_parts)],
)
@given(found=st.lists(_measurements, max_size=8))
def test_any_records_have_an_answer(name: str, found: list[Measurement]) -> None:
    """Records of strangers have any axes, any times, and any text in their reasons."""
    for one in found:
        assert decode(msgspec.json.encode(one))
    sentence, sheet = answered(name, *found)
    assert sentence
    assert {len(line) for line in sheet.lines} <= {len(sheet.columns)}
    assert all(isinstance(text, str) for line in sheet.lines for text in line)


# What the answers say


def test_inference_counts_what_pays_and_names_the_mean_of_each_mode() -> None:
    gain = measured(Cell("resnet18", 1, "default"), 0.5)
    loss = measured(Cell("gpt_prefill", 1, "default"), 1.6)
    tuned = measured(Cell("resnet18", 1, "max-autotune"), 0.4)
    others = [
        measured(Cell("resnet18", 1, EAGER), 1.0),
        measured(Cell("resnet18", 1, "default", backend="aot_eager"), 1.1),
        measured(Cell("resnet18", 4, "default", phase="training"), 0.6),
    ]
    broken = failed(Cell("gpt_decode", 1, "default"), "no compiler")
    sentence, sheet = answered("inference", gain, loss, tuned, broken, *others)
    assert "faster in 2 of 3 cells, slower in 1" in sentence
    apart = f"mode default {mean(gain, loss)} (2 cells), mode max-autotune {mean(tuned)} (1 cell)"
    assert f"a call takes, of eager's time: {apart}; of the cells that all" in sentence
    alike = f"mode default {mean(gain)} (1 cell), mode max-autotune {mean(tuned)} (1 cell)."
    assert f"these modes have: {alike}" in sentence
    assert "1 cell has no number" in sentence
    assert len(sheet.lines) == 4
    assert "compile-error: no compiler" in str(sheet.lines)


def test_cells_that_all_failed_have_no_figures() -> None:
    broken = failed(Cell("resnet18", 1, "default"))
    sentence, sheet = answered("inference", broken)
    assert sentence == "None of 1 cell has a number; the table has the reasons."
    assert len(sheet.lines) == 1


def test_training_is_of_steps_in_any_precision() -> None:
    steps = [
        measured(Cell("resnet18", 4, "default", phase="training"), 0.6),
        measured(Cell("resnet18", 4, "default", phase="training", dtype="bfloat16"), 0.7),
    ]
    heap = Cell("resnet18", 4, "default", phase="training", allocator=DEFAULT_HEAP)
    sentence, sheet = answered("training", *steps, measured(heap, 0.1))
    means = f"mode default {mean(steps[0])} (1 cell), mode default: bfloat16 {mean(steps[1])}"
    assert f"an optimizer step takes, of eager's time: {means} (1 cell)." in sentence
    assert [line[2] for line in sheet.lines] == ["default: training", "default: training, bfloat16"]
    other = Cell("relevance_information", 4, "default", phase="training")
    more, _ = answered("training", *steps, measured(other, 2.0))
    twice = f"mode default {mean(measured(other, 2.0))} (1 cell)"
    assert more == f"{sentence} Made for other questions: {twice}."
    more, _ = answered("training", *steps, failed(other, "no luck"))
    assert "other questions" not in more
    alone, _ = answered("training", measured(other, 2.0))
    assert alone.startswith("No step of a model was measured here. Made for other questions: ")


def test_precision_is_against_eager_in_float32() -> None:
    both = {"dtype": "bfloat16", "baseline": "eager-float32"}
    eager = measured(Cell("resnet18", 1, EAGER, **both), 1.5)  # type: ignore[arg-type]
    compiled = measured(Cell("resnet18", 1, "default", **both), 0.5)  # type: ignore[arg-type]
    sentence, sheet = answered("precision", eager, compiled)
    assert f"mode eager {mean(eager)} (1 cell), mode default {mean(compiled)} (1 cell)" in sentence
    assert len(sheet.lines) == 2
    other = {"dtype": "int8-dynamic", "baseline": "eager-float32"}
    assert not answered("precision", measured(Cell("m", 1, EAGER, **other), 1.0)).measured  # type: ignore[arg-type]


def test_backends_are_compared_over_the_same_cells() -> None:
    plain = [measured(Cell(name, 1, "default"), 0.5) for name in ("a", "b", "c")]
    partial = [measured(Cell(name, 1, "default", backend="aot_eager"), 1.1) for name in ("a", "b")]
    none = failed(Cell("a", 1, "default", backend="cudagraphs"))
    sentence, sheet = answered("backends", *plain, *partial, none)
    assert "In 2 cells with a number for each of these backends" in sentence
    assert "no number for cudagraphs" in sentence
    assert f"aot_eager {mean(*partial)}, inductor {mean(*plain[:2])}" in sentence
    assert len(sheet.lines) == 5, "c has no other backend"
    once, _ = answered("backends", *plain, partial[0], alone(partial[1]))
    assert "In 1 cell with" in once
    assert f"aot_eager {mean(partial[0])}, inductor {mean(plain[0])}" in once
    refused = failed(Cell("a", 1, "default", backend="aot_eager"))
    apart = answered("backends", plain[0], refused, partial[1])
    assert "No model has a number with each" in apart.sentence


def test_malloc_is_compared_with_the_settled_heap_of_the_same_cells() -> None:
    plain = [measured(Cell(name, 1, "default"), 0.8) for name in ("a", "b")]
    loose = measured(Cell("a", 1, "default", allocator=DEFAULT_HEAP), 0.5)
    unpaired = measured(Cell("c", 1, "default", allocator=DEFAULT_HEAP), 0.1)
    watched = Cell("d", 1, "default", allocator=DEFAULT_HEAP, protocol="many-calls")
    sentence, sheet = answered("allocator", *plain, loose, unpaired, measured(watched, 0.1))
    assert f"{DEFAULT_HEAP} {mean(loose)}, and with a settled heap {mean(plain[0])}" in sentence
    assert sorted(line[0] for line in sheet.lines) == ["a", "a", "c"]
    assert "both with another malloc" in answered("allocator", unpaired).sentence
    second = measured(Cell("b", 1, "default", allocator=DEFAULT_HEAP), 0.2)
    once, _ = answered("allocator", *plain, loose, alone(second))
    assert f"{mean(loose)}, and with a settled heap {mean(plain[0])} (1 cell)" in once
    # A step with another heap is no plain call: it is not in the mean.
    step = {"phase": "training"}
    steps = [
        measured(Cell("a", 1, "default", **step), 0.9),  # type: ignore[arg-type]
        measured(Cell("a", 1, "default", allocator=DEFAULT_HEAP, **step), 0.1),  # type: ignore[arg-type]
    ]
    assert answered("allocator", *plain, loose, *steps).sentence == sentence.replace(
        " 1 cell has no number: the table has the reasons.", ""
    )


def test_the_memory_of_a_gpu_is_no_heap() -> None:
    plain = measured(Cell("a", 1, "default", device="cuda"), 0.8)
    loose = failed(Cell("a", 1, "default", device="cuda", allocator=DEFAULT_HEAP))
    sentence, sheet = answered("allocator", plain, loose)
    assert "settled" not in sentence
    assert "torch's own allocator" in sentence
    assert not sheet.lines


def test_generated_code_is_counted_by_target_phase_and_mode() -> None:
    graphs = examples.code(cuda_graphs=1, outside_launches=0)
    found = [
        examples.generated(forward=examples.code(triton=3, library=2)),
        examples.generated("vit16x6x384", forward=examples.code(triton=40, library=30)),
        examples.generated(mode="reduce-overhead", forward=graphs),
        examples.generated("gpt_decode", outcome=Outcome(Status.UNSUPPORTED, "asks the device")),
    ]
    sentence, sheet = answered("codegen", *found)
    assert sentence.startswith("There is code of 3 of 4 cells; nothing was timed.")
    assert "cuda:sm90, inference, mode default: 5 to 70, median 5 (2 cells)" in sentence
    assert "mode reduce-overhead, a CUDA graph as one: 1 to 1, median 1 (1 cell)" in sentence
    assert "unsupported: asks the device" in str(sheet.lines)


# Which release


def test_the_newest_release_with_a_cell_of_the_question_answers() -> None:
    cell = Cell("resnet18", 1, "default")
    step = Cell("resnet18", 4, "default", phase="training")
    found = [
        *of(measured(cell, 0.5), measured(step, 0.6), release="2.9.1"),
        *of(measured(cell, 0.7), release="2.15.0"),
    ]
    releases = ["2.9.1", "2.15.0"]

    def release(name: str, among: Sequence[str] = releases) -> str:
        return answers.newest(answers.get(name), "box", found, among).release

    assert release("inference") == "2.15.0"
    assert release("training") == "2.9.1"
    assert release("training", ["2.15.0"]) == "2.15.0"
    assert release("backends") == "2.15.0"
    assert release("backends", []) == ""


def test_the_newest_measurement_of_a_cell_answers() -> None:
    cell = Cell("resnet18", 1, "default")
    old, new = measured(cell, 0.5), measured(cell, 0.9)
    new = msgspec.structs.replace(new, started_at="2026-11-22T03:00:00+00:00")
    # As records are read: the newest one last.
    found = answers.newest(answers.get("inference"), "box", of(old, new), ["2.15.0"])
    assert len(found.answer.sheet.lines) == 1
    assert mean(new) in found.answer.sentence


# The command


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cached, "folder", lambda: tmp_path / "cache")
    folder = tmp_path / "results" / "box"
    folder.mkdir(parents=True)
    cell = Cell("resnet18", 1, "default")
    for release, times in (("2.9.1", 0.5), ("2.15.0", 0.7)):
        file = records.path(folder, COMMITS[release], "env-py3.11")
        records.append(file, measured(cell, times, release))
        records.append(file, examples.generated(release=release))
    step = Cell("resnet18", 4, "default", phase="training")
    file = records.path(folder, COMMITS["2.9.1"], "env-py3.11")
    records.append(file, measured(step, 0.6, "2.9.1"))
    records.append(file, failed(Cell("gpt_decode", 1, "default"), "<img src=x> | \x1b[2J"))
    return folder


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app.app, ["answers", *arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def test_the_command_answers_every_question(results: Path) -> None:
    status, out, err = run("--format", "json")
    assert status == 0, err
    found = {one["question"]: one for one in validated("answers", out)}
    assert list(found) == NAMES
    inference, training, code = (found[name] for name in ("inference", "training", "codegen"))
    assert (inference["machine"], inference["release"]) == ("box", "2.15.0")
    assert training["release"] == "2.9.1", "the newest that has one of its cells"
    assert (code["machine"], code["release"]) == (None, "2.15.0")
    assert len(inference["rows"]) == 1
    assert len(inference["rows"][0]) == len(inference["columns"])
    assert "0.70 [" in inference["sentence"]
    assert found["backends"]["rows"] == []


def test_one_question_of_one_release_of_one_machine(results: Path) -> None:
    status, out, _ = run("inference", "--release", "v2.9", "--machine", "box")
    assert status == 0
    assert "Does compiling a model for inference pay? (inference; PyTorch 2.9.1 on box)" in out
    assert "0.50 [" in out
    assert "training" not in out
    assert "\x1b" not in out
    status, out, _ = run("codegen", "--release", "v2.9")
    assert status == 0
    assert "cuda:sm90" in out


def test_markdown_has_no_markup_of_a_result(results: Path) -> None:
    status, out, _ = run("inference", "--release", "v2.9", "--format", "markdown")
    assert status == 0
    assert out.startswith("## Does compiling a model for inference pay?\n")
    assert r"\<img src=x\> \|" in out
    assert out.count("<") == out.count(r"\<")
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("unasked",), "no question 'unasked'; there are: "),
        (("inference", "--release", "v9.9"), "PyTorch 9.9 is not in the catalogue"),
        (("inference", "--machine", "nobody"), "no results of machine 'nobody'"),
        (("inference", "--release", "v2.4"), "asv run v2.4.1^!"),
    ],
)
def test_what_cannot_be_answered_is_one_line(
    results: Path, arguments: tuple[str, ...], words: str
) -> None:
    status, out, err = run(*arguments)
    assert status == 1
    assert out == ""
    (line,) = err.splitlines()
    assert words in line


def test_the_plural_of_a_count() -> None:
    assert [plural(number, "launch") for number in (1, 2)] == ["1 launch", "2 launches"]
    assert [plural(number, "cell") for number in (0, 1)] == ["0 cells", "1 cell"]


def test_results_with_generated_code_only_answer_what_they_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = records.path(tmp_path / "results" / "box", COMMITS["2.15.0"], "env-py3.11")
    records.append(file, examples.generated(release="2.15.0"))
    status, out, err = run("--format", "json")
    assert status == 0
    assert {one["question"] for one in json.loads(out)} == {"codegen", "graph_breaks"}
    assert err.startswith("only code for targets is answered: nothing was measured yet")
    assert run("inference")[0] == 1

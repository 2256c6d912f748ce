"""`torchcompile-suite try`: how it reads a target, what it prints, and that it measures targets."""

from __future__ import annotations

import importlib
import json
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import torchcompile_suite
from torchcompile_suite import matrix, workloads
from torchcompile_suite.analysis import advice, ends, remedies, summary
from torchcompile_suite.analysis.ends import REMEDY
from torchcompile_suite.analysis.statistics import Interval
from torchcompile_suite.cell import DEFAULT_HEAP, MOST_BATCH, Cell
from torchcompile_suite.cli import recorded, trying
from torchcompile_suite.cli.app import app
from torchcompile_suite.compiled import Compiled, GraphBreak
from torchcompile_suite.engine import processes, rounds
from torchcompile_suite.engine.journal import Journal
from torchcompile_suite.engine.series import Series
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.measurement import Accuracy, Measurement, Outcome, Status
from torchcompile_suite.presentation import answers
from torchcompile_suite.results import records
from torchcompile_suite.trial import outline as outlines
from torchcompile_suite.trial import plan, target, view
from torchcompile_suite.trial.api import compare
from torchcompile_suite.trial.outline import Outline
from torchcompile_suite.trial.plan import Trial, TrialError
from torchcompile_suite.trial.run import GIVEN, TrialResult, run, target_variables
from torchcompile_suite.trial.target import Target
from torchcompile_suite.workloads import VARIABLE, WorkloadError

from . import examples
from .conftest import QUICK, ROOT, ReleaseEnvironment
from .examples import twin
from .schemas import validated

TARGETS = ROOT / "tests" / "targets.py"


def place(code: str) -> str:
    """Where that code is in the file of the models, as an answer names it."""
    (line,) = (n for n, text in enumerate(TARGETS.read_text().splitlines(), 1) if text == code)
    return f"{TARGETS.name}:{line}"


MODULE = "a module, as far as pickle cares"
BRANCH = "        if x.sum() > 0:"
UNSHAPED = "        return unshaped(x + 1)"

# Targets


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        (f"{TARGETS}:branching", "file", "targets.branching"),
        ("some_package.nets:Net.make", "module", "some_package.nets.Net.make"),
        ("resnet10t", "timm", "resnet10t"),
    ],
)
def test_a_target_is_what_its_text_looks_like(text: str, kind: str, name: str) -> None:
    parsed = target.parse(text)
    assert isinstance(parsed, target.Target)
    assert (parsed.kind, parsed.name) == (kind, name)
    msgspec.convert({"workload": parsed.name, "batch_size": 1, "mode": "eager"}, Cell)


def test_the_suites_own_workloads_are_no_targets() -> None:
    assert target.parse("resnet18") == "resnet18"
    with pytest.raises(WorkloadError, match="leave --input out"):
        target.parse("resnet18", ["1x3x224x224"])


@pytest.mark.parametrize("text", ["hf:gpt2", "hf:openai-community/gpt2"])
def test_a_checkpoint_is_the_workload_with_its_configuration(text: str) -> None:
    assert target.parse(text) == "GPT2LMHeadModel"


def test_a_saved_configuration_is_a_target(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    parsed = target.parse(f"hf:{tmp_path}", ["input_ids=Bx8:int64:99"])
    assert isinstance(parsed, target.Target)
    assert (parsed.kind, parsed.where) == ("hf", str(tmp_path))
    assert parsed.name == f"hf.{tmp_path.name}"
    assert parsed.libraries == ("transformers",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hf:somebody/her-model", "the suite downloads nothing. Save its configuration"),
        ("model.py", "name its factory"),
        ("nowhere.py:make", "there is no file nowhere.py"),
        ("a model", "names no model"),
        ("pack-age:make", "names no model"),
        (f"{TARGETS}:a b", "names no model"),
    ],
)
def test_what_names_no_model_is_refused_in_one_line(text: str, words: str) -> None:
    with pytest.raises(WorkloadError, match=words) as error:
        target.parse(text)
    assert "\n" not in str(error.value)


def test_inputs_have_sizes_dtypes_bounds_and_names() -> None:
    assert target.shapes(["8x3x224x224"]) == [("", (8, 3, 224, 224), "float32", 2)]
    ids, mask = target.shapes(["ids=Bx128:int64:50257", "mask=Bx128:bool"])
    assert ids.scales
    assert ids == ("ids", (None, 128), "int64", 50257)
    assert mask.name == "mask"


@pytest.mark.parametrize("text", ["", "3x", "8x3:float99", "x8", "8,3", "8x3:float32:abc", "C"])
def test_an_input_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(WorkloadError, match="write"):
        target.shapes([text])


def test_inputs_are_all_named_or_none_is() -> None:
    with pytest.raises(WorkloadError, match="all inputs a name"):
        target.shapes(["x=8x3", "8x3"])


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=5), st.sampled_from(target.DTYPES))
def test_any_shape_is_read_back(sizes: list[int], dtype: str) -> None:
    (shape,) = target.shapes(["x".join(map(str, sizes)) + f":{dtype}"])
    assert shape.sizes == tuple(sizes)
    assert shape.dtype == dtype


# Cells of a trial

FIXED = Outline(batch_size=4, scales=False)
FREE = Outline(batch_size=1, scales=True)


def test_every_combination_is_a_cell_and_modes_are_inductors() -> None:
    asked = Trial("resnet18", batch_sizes=(1, 8), modes=("default", "max-autotune"))
    assert len(plan.cells(asked, FREE)) == 8, "each at both ends of the heap"
    asked = Trial(
        "resnet18",
        modes=("default", "max-autotune"),
        backends=("inductor", "aot_eager"),
        allocators=("system",),
    )
    cells = [(cell.backend, cell.mode) for cell in plan.cells(asked, FREE)]
    assert cells == [
        ("inductor", "default"),
        ("inductor", "max-autotune"),
        ("aot_eager", "default"),
    ]
    # Eager in front is no reason to compile nothing.
    asked = msgspec.structs.replace(asked, modes=("eager", "default"), backends=("aot_eager",))
    assert [(cell.backend, cell.mode) for cell in plan.cells(asked, FREE)] == [
        ("aot_eager", "eager"),
        ("aot_eager", "default"),
    ]


@pytest.mark.parametrize(
    ("asked", "allocators"),
    [
        (Trial("m"), ["system", DEFAULT_HEAP]),
        (Trial("m", allocators=("tcmalloc",)), ["tcmalloc"]),
        (Trial("m", device="cuda"), ["system"]),
    ],
)
def test_a_cpu_shows_both_ends_of_the_heap(asked: Trial, allocators: list[str]) -> None:
    cells = plan.cells(asked, FREE)
    assert [cell.allocator for cell in cells] == allocators


def test_a_model_with_a_batch_of_its_own_is_measured_with_it() -> None:
    (cell,) = plan.cells(Trial("model", allocators=("system",)), FIXED)
    assert cell.batch_size == 4
    with pytest.raises(TrialError, match="decides its batch size"):
        plan.cells(Trial("model", batch_sizes=(8,)), FIXED)


def test_the_first_dimension_of_a_long_vector_is_no_batch() -> None:
    outline = Outline(batch_size=MOST_BATCH + 1, scales=False)
    for question in ("", "starts", "memory"):
        assert {one.batch_size for one in plan.cells(Trial("m", question=question), outline)} == {1}


def test_a_stream_needs_sizes() -> None:
    asked = Trial("m", target=Target("m", "file", "m.py", "make"), dynamic=True)
    with pytest.raises(TrialError, match="at least two"):
        plan.cells(asked, FREE)
    cells = plan.cells(msgspec.structs.replace(asked, batch_sizes=(1, 2)), FREE)
    assert [cell.shapes for cell in cells] == ["recompile", "automatic", "dynamic"]


def test_every_question_has_an_answer_of_its_name() -> None:
    assert plan.QUESTIONS.keys() <= set(answers.names())
    for name in plan.QUESTIONS:
        plan.check(name, answers.names())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("codegen", "is not asked about one model; see: torchcompile-suite answers codegen"),
        ("unasked", "no question 'unasked'; about a model there are: "),
    ],
)
def test_a_question_that_cannot_be_asked_is_one_line(name: str, words: str) -> None:
    with pytest.raises(TrialError, match=re.escape(words)) as error:
        plan.check(name, answers.names())
    assert "\n" not in str(error.value)


# Those whose cells suit any model; others are in tests of their own.
ANY_MODEL = ("training", "precision", "backends", "allocator")


@pytest.mark.parametrize("name", ANY_MODEL)
def test_the_cells_of_a_question_are_those_that_its_answer_wants(name: str) -> None:
    for sizes, outline, batch in (((), FIXED, {4}), ((2, 3), FREE, {2, 3})):
        asked = Trial("model", batch_sizes=sizes, question=name)
        cells = plan.cells(asked, outline)
        assert len(cells) == len(set(cells)) > 1
        assert {cell.batch_size for cell in cells} == batch
        measured = [
            msgspec.structs.replace(examples.measurement("model"), cell=cell) for cell in cells
        ]
        told = view.answered(asked, TrialResult(outline, measured, interrupted=False))
        assert told is not None
        question, found = told
        assert question.name == name
        assert len(found.sheet.lines) == len(cells)
        assert "0.75 [" in found.sentence
    assert plan.cells(Trial("model"), FREE) == plan.combinations(Trial("model"), FREE)


def test_training_has_the_batch_size_of_the_suite_if_the_model_has_none() -> None:
    cells = plan.cells(Trial("model", question="training"), FREE)
    assert {cell.batch_size for cell in cells} == {matrix.TRAINING_BATCH}
    assert {cell.phase for cell in cells} == {"training"}


def test_a_question_about_a_cpu_is_not_asked_of_a_gpu() -> None:
    asked = Trial("model", device="cuda", question="allocator")
    with pytest.raises(TrialError, match="add --device cpu"):
        plan.cells(asked, FREE)


def test_what_a_release_does_not_support_is_an_answer() -> None:
    missing = msgspec.structs.replace(
        examples.measurement("model", outcome=Outcome(Status.UNSUPPORTED, "since 2.9")),
        cell=Cell("model", 1, "default", backend="cudagraphs"),
    )
    answer = TrialResult(FREE, [examples.measurement("model"), missing], interrupted=False)
    assert not view.failed(Trial("model", question="backends"), answer)
    assert view.failed(Trial("model"), answer)
    crashed = msgspec.structs.replace(missing, outcome=Outcome(Status.CRASH, "killed"))
    answer = TrialResult(FREE, [crashed], interrupted=False)
    assert view.failed(Trial("model", question="backends"), answer)


def test_the_json_of_a_question_has_its_answer() -> None:
    other = msgspec.structs.replace(
        examples.measurement("model"), cell=Cell("model", 1, "default", backend="aot_eager")
    )
    answer = TrialResult(FREE, [examples.measurement("model"), other], interrupted=False)
    content = validated("try", view.as_json(Trial("model", question="backends"), answer))
    assert content["question"]["name"] == "backends"
    assert content["sentences"] == [content["question"]["sentence"]]
    assert len(content["question"]["rows"]) == 2
    assert validated("try", view.as_json(Trial("model"), answer))["question"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--question", "unasked"), "no question 'unasked'"),
        (("--question", "codegen"), "torchcompile-suite answers codegen"),
        (
            ("--question", "backends", "--backend", "eager", "--training"),
            "leave --backend, --training out",
        ),
        (("--question", "backends", "--target", "cuda:sm90"), "leave --question out"),
        (
            ("--target", "cuda:sm90", "--allocator", "tcmalloc", "--save"),
            "leave --allocator, --save out",
        ),
        (("--target", "cuda:sm90", "--device", "cpu"), "leave --device out"),
        (("--registers",), "leave --registers out"),
        (("--dynamic", "--training", "--batch-size", "1"), "trains nothing"),
    ],
)
def test_options_that_do_not_fit_a_question_are_refused(
    options: tuple[str, ...], words: str
) -> None:
    done = CliRunner().invoke(app, ["try", "resnet18", *options])
    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert words in line


def test_eager_of_each_precision_has_a_name_of_its_own() -> None:
    asked = Trial("model", question="training")
    measured = [
        msgspec.structs.replace(examples.measurement("model"), cell=cell)
        for cell in plan.cells(asked, FREE)
    ]
    sheet = view.table(TrialResult(FREE, measured, interrupted=False))
    names = [line[1] for line in sheet.lines]
    assert [name for name in names if name.startswith("eager")] == ["eager", "eager: bfloat16"]


def test_the_budget_of_all_cells_is_no_part_of_the_question() -> None:
    one, other = (
        Trial("m", total_s=total_s).digest("python", "", FREE) for total_s in (None, 60.0)
    )
    assert one == other
    assert one != Trial("m", question="training").digest("python", "", FREE)


def test_the_same_question_is_kept_in_the_same_place() -> None:
    asked = Trial("m", target=Target("m", "file", "m.py", "make"))
    longer = msgspec.structs.replace(asked, precision=0.01, budget_s=600)
    before = asked.digest("python", "", FREE)
    assert before == longer.digest("python", "", FREE)
    assert before != asked.digest("python", "one thread", FREE)
    for changed in ({"code": "other"}, {"torch": "2.15.1"}):
        other = msgspec.structs.replace(FREE, **changed)
        assert asked.digest("python", "", other) != before, "launches of other code do not count"


def test_a_mode_of_another_backend_is_refused() -> None:
    plan.check_values(Trial("m", modes=("eager", "default"), backends=("aot_eager",)))
    with pytest.raises(TrialError, match="only Inductor has the mode max-autotune"):
        plan.check_values(Trial("m", modes=("max-autotune",), backends=("aot_eager",)))


def test_the_code_of_a_model_is_the_files_that_it_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = tmp_path / "helper_of_the_model.py"
    helper.write_text("SIZE = 1")
    monkeypatch.syspath_prepend(tmp_path)
    without = outlines._code()
    importlib.import_module(helper.stem)
    before = outlines._code()
    assert before != without
    assert before == outlines._code()
    helper.write_text("SIZE = 2")
    assert outlines._code() != before
    del sys.modules[helper.stem]
    assert outlines._code() == without


# Messages


def row(mode: str, *ratio: float, cold: float = 20.0) -> summary.Row:
    interval = Interval(*ratio)
    return summary.Row(
        "",
        "2.15.0",
        Cell("model", 1, mode),
        Outcome(Status.OK),
        Interval(0.01, 0.01, 0.01),
        Interval(0.01 * ratio[0], 0.01, 0.01),
        interval,
        cold_compile_s=cold,
        break_even_calls=cold / (0.01 * (1 - ratio[0])) if ratio[0] < 1 else math.inf,
    )


def test_a_gain_names_the_mode_and_when_it_is_paid_back() -> None:
    rows = [row("default", 0.8, 0.78, 0.82), row("max-autotune", 0.7, 0.69, 0.71)]
    text = advice.sentence(rows, "again")
    assert text.startswith("Compile it, mode max-autotune: a call takes 0.70 [0.69, 0.71]")
    assert "after 6,000 to 7,400 calls (about " in text


def test_modes_that_are_alike_are_both_named() -> None:
    rows = [row("default", 0.71, 0.69, 0.73), row("max-autotune", 0.7, 0.68, 0.72)]
    assert "(mode default: no clear difference)" in advice.sentence(rows, "again")


def test_no_gain_is_not_the_same_as_not_knowing() -> None:
    assert advice.sentence([row("default", 1.0, 0.98, 1.02)], "again").startswith("Do not compile")
    assert advice.sentence([row("default", 1.3, 1.2, 1.4)], "again").startswith("Do not compile")
    unsure = advice.sentence([row("default", 0.95, 0.85, 1.05)], "measure on")
    assert unsure.startswith("Cannot tell yet")
    assert unsure.endswith("measure on")
    assert "Cannot tell" in advice.sentence([row("default", 0.9, math.nan, math.nan)], "again")
    # Each launch was disturbed.
    assert advice.sentence([row("default", math.nan, math.nan, math.nan)], "measure on") == (
        "Cannot tell yet: no launch of mode default counts; measure on"
    )


def test_a_failure_is_an_answer() -> None:
    failed = summary.Row(
        "", "", Cell("m", 1, "default"), Outcome(Status.COMPILE_ERROR, "no compiler")
    )
    text = advice.sentence([failed], "again")
    assert text == "Do not compile it as it is: compile-error: no compiler"


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("generic_jump TensorVariable()", "torch.where"),
        ("Data-dependent branching", "torch.where"),
        ("Unsupported Tensor.item() call with capture_scalar_outputs=False", "capture_scalar"),
        ("call_function BuiltinVariable(print) [ConstantVariable()] {}", "printing"),
        ("dynamic shape operator: aten.nonzero.default", "mask of fixed shape"),
        ("Attempted to call function marked as skipped", "custom_op"),
        ("'skip function graph_break in file .../torch/_dynamo/decorators.py'", "code asks for it"),
        ("something that nobody has seen", "fullgraph=True"),
    ],
)
def test_a_break_has_a_remedy_in_any_releases_words(reason: str, remedy: str) -> None:
    assert remedy in remedies.remedy("graph-break", reason)


def measured(**changes: object) -> object:
    measurement = examples.measurement("model", mode="default")
    cold, *warm = measurement.launches
    return msgspec.structs.replace(
        measurement, launches=[msgspec.structs.replace(cold, **changes), *warm]
    )


def test_everything_worth_a_change_is_printed_once() -> None:
    compiled = Compiled(
        graph_breaks=[GraphBreak("Data-dependent branching", "model.py:3")] * 2,
        recompile_reasons=[GraphBreak("0/0: tensor 'x' size mismatch at index 0", "model.py:1")],
        cudagraph_skips=["skipping cudagraphs due to cpu device (x)"],
    )
    measurement = measured(
        compiled=compiled,
        accuracy=Accuracy("float64", 1e-7, 5e-5, 1e-4),
    )
    ends = [twin("settled", 0.02, 0.01, (0, 0)), twin("default", 0.03, 0.01, (5000, 0))]
    remarks = advice.advice([measurement, measurement, *ends], came_training=True, varying=False)  # type: ignore[list-item]
    kinds = [remark.what.partition(":")[0] for remark in remarks[:3]]
    assert kinds == ["graph break", "recompiled", "no CUDA graph"]
    assert remarks[0].where == "model.py:3"
    assert any("larger error against float64" in remark.what for remark in remarks)
    assert any("--allocator" in remark.remedy for remark in remarks)
    assert any("model.eval()" in remark.remedy for remark in remarks)
    assert len(remarks) == len(set(remarks))
    quiet = advice.advice([measured()], came_training=False, varying=False)  # type: ignore[list-item]
    assert not [remark for remark in quiet if "break" in remark.what]


def test_an_old_release_asks_the_cpu_in_each_process() -> None:
    def remarks(release: str, **cell: str) -> list[advice.Advice]:
        measurement = examples.measurement("model", mode="default")
        launches = [
            msgspec.structs.replace(launch, environment=examples.environment(release))
            for launch in measurement.launches
        ]
        changed = msgspec.structs.replace(measurement.cell, **cell)
        old = msgspec.structs.replace(measurement, cell=changed, launches=launches)
        found = advice.advice([old], came_training=False, varying=False)
        return [remark for remark in found if "vector instructions" in remark.what]

    (asked,) = remarks("2.12.1+cpu")
    assert asked.what.startswith("a warm start takes 7.5 s")
    assert "TORCHINDUCTOR_VEC_ISA_OK=1" in asked.remedy
    assert not remarks("2.13.0+cpu")
    assert not remarks("2.12.1+cu130", device="cuda")
    assert not remarks("2.12.1+cpu", mode="eager")


def test_a_warm_launch_that_failed_asks_nothing() -> None:
    """Its times are missing, and those of the launches before it are no advice."""
    measurement = examples.measurement("model", mode="default")
    cold, warm, *_ = measurement.launches
    outcome = Outcome(Status.UNSETTLED, "launch 2: 11 page faults a call")
    bare = msgspec.structs.replace(warm, outcome=outcome, pairs_s=[], warm_up_s=[])
    failed = msgspec.structs.replace(measurement, outcome=outcome, launches=[cold, bare])
    assert advice.advice([failed], came_training=False, varying=False) == []


def test_a_stream_recompiles_on_purpose() -> None:
    compiled = Compiled(recompile_reasons=[GraphBreak("size mismatch", "model.py:1")])
    measurement = measured(compiled=compiled)
    remarks = advice.advice([measurement], came_training=False, varying=True)  # type: ignore[list-item]
    assert not [remark for remark in remarks if remark.what.startswith("recompiled")]


@pytest.mark.parametrize(
    ("outcome", "sentence"),
    [
        (
            Outcome(Status.OUT_OF_MEMORY, "while in eager: no memory"),
            "It does not run here, compiled or not: out-of-memory: while in eager: no memory",
        ),
        (
            Outcome(Status.CRASH, "compiled, while eager runs: killed by SIGABRT: free()"),
            "Do not compile it as it is: its compiled code ends the process: crash: compiled, "
            "while eager runs: killed by SIGABRT: free()",
        ),
        (
            Outcome(Status.CRASH, "compiled, while eager runs: killed by SIGKILL (memory)"),
            "This machine or the model ended it: crash: compiled, while eager runs: killed by "
            "SIGKILL (memory)",
        ),
        (
            Outcome(Status.CRASH, "compiled, while eager runs: killed by SIGTERM: 1"),
            "Somebody ended the process, so this says nothing about the model; run it again: "
            "crash: compiled, while eager runs: killed by SIGTERM: 1",
        ),
    ],
)
def test_the_sentence_says_who_failed(outcome: Outcome, sentence: str) -> None:
    failed = summary.Row("", "", Cell("m", 1, "default"), outcome)
    assert advice.sentence([failed], "again") == sentence


def test_a_mode_that_failed_beside_others_says_why() -> None:
    good = examples.measurement("model", mode="default")
    bad = msgspec.structs.replace(
        examples.measurement("model", mode="max-autotune"),
        outcome=Outcome(Status.COMPILE_ERROR, "no template"),
        launches=[],
    )
    answer = TrialResult(Outline(torch="2.15.0"), [good, bad], interrupted=False)
    assert view.failures(answer) == [
        "Failed at batch 1, mode max-autotune: compile-error: no template"
    ]
    assert view.failures(TrialResult(Outline(torch="2.15.0"), [bad], interrupted=False)) == []


def test_notes_about_the_accuracy_check_stand_once_or_with_their_cell() -> None:
    everywhere, once = "outputs of type Foo: accuracy not checked", "3 of 64 values are NaN"

    def with_notes(mode: str, *notes: str) -> Measurement:
        made = examples.measurement("model", mode=mode)
        accuracy = Accuracy("float64", None, None, 1e-4, list(notes), compared=False)
        launches = [msgspec.structs.replace(each, accuracy=accuracy) for each in made.launches]
        return msgspec.structs.replace(made, launches=launches)

    made = [with_notes("default", everywhere), with_notes("max-autotune", everywhere, once)]
    answer = TrialResult(Outline(torch="2.15.0"), made, interrupted=False)
    assert view.notes(answer) == [everywhere, f"mode max-autotune at batch 1: {once}"]
    assert validated("try", view.as_json(Trial("model"), answer))["notes"] == view.notes(answer)
    plain = TrialResult(Outline(torch="2.15.0"), [examples.measurement("model")], interrupted=False)
    assert view.notes(plain) == []


class Pair(NamedTuple):
    one: int
    other: int


@pytest.mark.parametrize("inputs", [(1,), Pair(1, 2), "a text", {"x": 1}])
def test_compare_leaves_no_file_behind_and_the_inputs_as_they_are(
    inputs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that builds the module arranges them, as those of a factory."""
    made = examples.measurement("model")
    kept: list[Path] = []

    def measure(
        series: Series, make: object, journal: Journal, *_: object
    ) -> dict[str, Measurement]:
        for launch in made.launches:
            journal.add("", launch, 1.0)
        kept.extend(tmp_path.rglob("launches.jsonl"))
        (pickled,) = tmp_path.rglob("module.pkl")
        assert pickle.loads(pickled.read_bytes()) == (MODULE, inputs)
        assert type(pickle.loads(pickled.read_bytes())[1]) is type(inputs)
        return {"": made}

    noted = msgspec.structs.replace(FREE, notes=["compiled already: forward"])
    monkeypatch.setattr(processes, "asked", lambda *_: noted)
    monkeypatch.setattr(rounds, "measure", measure)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    measurement = torchcompile_suite.compare(MODULE, inputs)
    assert measurement.launches[1:] == made.launches[1:]
    assert measurement.notes == ["compiled already: forward", *made.notes]
    assert isinstance(measurement, torchcompile_suite.Measurement)
    assert isinstance(torchcompile_suite.figures(measurement), torchcompile_suite.Row)
    assert len(kept) == 1
    assert not list(tmp_path.iterdir())


def test_a_long_message_of_a_model_s_process_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise SuiteError(f"no workload {name}; there are: {'name, ' * 2000}")

    monkeypatch.setattr(workloads, "get", missing)
    made = outlines.outline(outlines.Order("net", 1))
    assert msgspec.json.decode(msgspec.json.encode(made), type=Outline) == made
    assert made.error.startswith("no workload net; there are: name, ")


def test_the_page_of_a_question_says_how_its_starts_were_measured() -> None:
    start = msgspec.structs.replace(
        examples.measurement(), cell=Cell("resnet18", 1, "default", start="disk-cache")
    )
    trial = Trial("resnet18", question="starts")
    page = view.as_html(trial, TrialResult(FREE, [start], interrupted=False), "try").decode()
    assert f"<h1>resnet18: {answers.get('starts').title}</h1>" in page
    assert "each from its start to its first result" in page
    assert "Outputs were compared with eager" in page
    first, *others = start.launches
    first = msgspec.structs.replace(
        first, accuracy=Accuracy("float64", None, None, 1e-4, compared=False)
    )
    start = msgspec.structs.replace(start, launches=[first, *others])
    result = TrialResult(FREE, [start], interrupted=False)
    assert "Outputs were compared" not in view.as_html(trial, result, "try").decode()
    assert "ms a start [95 %]" in page
    assert "eager: disk-cache" in page


def test_compare_of_a_module_that_cannot_be_copied_says_so() -> None:
    with pytest.raises(torchcompile_suite.TrialError, match="generator cannot be copied"):
        torchcompile_suite.compare((_ for _ in ()), (1,))


def test_the_table_has_eager_once() -> None:
    measurements = [
        examples.measurement("model", mode=mode) for mode in ("default", "max-autotune")
    ]
    sheet = view.table(TrialResult(Outline(torch="2.15.0"), measurements, interrupted=False))
    assert [line[1] for line in sheet.lines].count("eager") == 1
    assert {len(line) for line in sheet.lines} == {len(sheet.columns)}


# The real thing


class Command:
    """`torchcompile-suite try` with the environment of the tests, and a cache of its own."""

    def __init__(self, environment: ReleaseEnvironment, cache: Path) -> None:
        self.environment = environment
        self.cache = cache

    def __call__(
        self, *arguments: str, budget: str = "1", allocators: tuple[str, ...] = ("system",)
    ) -> tuple[int, str, str]:
        """Exit status, stdout, stderr. One end of the heap, unless ``allocators`` is empty."""
        named = [argument for name in allocators for argument in ("--allocator", name)]
        options = ["--release", self.environment.version, "--budget", budget]
        done = CliRunner().invoke(
            app,
            ["try", *arguments, *named, *options],
            env={"XDG_CACHE_HOME": str(self.cache), "NO_COLOR": "1", **QUICK},
        )
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def try_(newest: ReleaseEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    for name, value in newest.lie_in(tmp_path / "environments").items():
        monkeypatch.setenv(name, value)
    return Command(newest, tmp_path / "cache")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_inputs_by_name_and_a_dict_of_outputs(try_: Command, tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    # Backend eager: Dynamo captures the graph, and nothing is compiled.
    arguments = (f"{TARGETS}:keywords", "--batch-size", "3", "--backend", "eager")
    status, out, err = try_(*arguments, "--json", str(file), "-q")
    assert status == 0, err
    assert err == ""
    answer = validated("try", file.read_bytes())
    assert answer["outline"]["inputs"] == ["float32 3x64", "bool 3x8"]
    assert answer["measurements"][0]["launches"][0]["compiled"]["graphs"] == 1
    assert answer["rows"][0]["ratio"][0] > 0
    assert answer["sentences"][0] in out


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_question_is_answered_and_goes_on_with_resume(try_: Command, tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    arguments = [f"{TARGETS}:keywords", "--question", "backends", "--json", str(file), "-q"]
    arguments += ["--precision", "1"]
    status, out, err = try_(*arguments, allocators=())
    assert status == 0, out + err
    answer = validated("try", file.read_bytes())
    question = answer["question"]
    assert out.index(answers.get("backends").title) < out.index(question["sentence"])
    measured = {one["cell"]["backend"]: one for one in answer["measurements"]}
    assert list(measured) == matrix.BACKENDS
    for backend, one in measured.items():
        wanted = ("ok", "unsupported") if backend == "cudagraphs" else ("ok",)
        assert one["outcome"]["status"] in wanted
        # Each that has a number is part of the answer.
        assert (f"{backend} " in question["sentence"]) == (one["outcome"]["status"] == "ok")
    status, out, err = try_(*arguments, "--resume", allocators=())
    assert status == 0, out + err
    for one in json.loads(file.read_text())["measurements"]:
        before = measured[one["cell"]["backend"]]
        # Where the host moves the processors, the budget may end before it is precise.
        if before["stopped"] == "precise":
            assert one["launches"] == before["launches"], "nothing was measured again"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_outputs_of_any_type_are_compared_or_named(
    try_: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an allocator each launch is a fresh process; all of them read the user's own files."""
    own, readers = tmp_path / "own.py", tmp_path / "readers"
    own.write_text(f"import os; open({str(readers)!r}, 'a').write(f'{{os.getpid()}}\\n')")
    monkeypatch.setenv("TORCHCOMPILE_SUITE_WORKLOADS", str(own))
    file = tmp_path / "answer.json"
    arguments = (f"{TARGETS}:several_outputs", "--backend", "eager")
    status, out, err = try_(*arguments, "--json", str(file), "-q", allocators=("libc",))
    assert status == 0, out + err
    notes = [
        "outputs of type Opaque: accuracy not checked",
        "8 of 24 values of eager's output are NaN or infinite",
    ]
    for note in notes:
        assert note in out
        assert note in " ".join(json.loads(file.read_text())["notes"])
    assert "accuracy not checked" not in out.replace(notes[0], "")
    launches = json.loads(file.read_text())["measurements"][0]["launches"]
    assert {launch["process"] for launch in launches} == {"fresh"}
    assert len(set(readers.read_text().split())) > len(launches), "the outline, and each launch"


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_both_ends_of_the_heap_are_measured_with_one_cold_start(
    try_: Command, tmp_path: Path
) -> None:
    file = tmp_path / "answer.json"
    arguments = (f"{TARGETS}:large", "--backend", "eager", "--json", str(file), "-q")
    status, out, err = try_(*arguments, allocators=())
    assert status == 0, out + err
    made = json.loads(file.read_text())["measurements"]
    settled, default = msgspec.convert(made, list[Measurement])
    assert settled.launches[0].kind == "cold"
    assert {launch.kind for launch in default.launches} == {"warm"}
    assert {launch.heap for launch in settled.launches} == {"settled"}
    assert {launch.heap for launch in default.launches} == {"default"}
    assert "Alone, with the C library's defaults, compiled takes" in out
    # On a restless host the two ends may overlap: then nothing is said about malloc.
    (both,) = ends.both_ends([settled, default])
    decided = max(both.eager_share or 0.0, both.mode_share or 0.0) >= advice.MALLOC_SHARE
    assert (REMEDY in out, "--allocator tcmalloc" in out) == (decided, decided)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_cannot_be_compiled_says_why(try_: Command) -> None:
    status, out, _ = try_(f"{TARGETS}:uncompilable")
    assert status == 1
    assert "Do not compile it as it is: compile-error" in out
    assert "this operator has no shape to give" in out
    assert f"({place(UNSHAPED)})" in out


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_too_much_memory_says_so(try_: Command) -> None:
    status, out, _ = try_(f"{TARGETS}:greedy")
    assert status == 1
    assert "out-of-memory" in out


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_target_that_is_none_is_one_line(try_: Command) -> None:
    status, out, err = try_("resnet18_of_nobody")
    assert status == 1
    assert out == ""
    assert "did you mean" in err.splitlines()[-1]
    assert err.splitlines()[-1].startswith("torchcompile-suite: ")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("factory", "sizes", "words"),
    [
        ("wrong", (), "must return a torch.nn.Module"),
        ("bare", (), "give its inputs"),
        ("needing", (), "must take no argument, or batch_size; it needs width"),
        ("nothing", (), "has no nothing"),
        ("branching", (8,), "decides its batch size (4) itself"),
    ],
)
def test_a_factory_that_does_not_fit_says_what_to_change(
    newest: ReleaseEnvironment, factory: str, sizes: tuple[int, ...], words: str
) -> None:
    parsed = target.parse(f"{TARGETS}:{factory}")
    assert isinstance(parsed, target.Target)
    trial = Trial(parsed.name, parsed, batch_sizes=sizes)
    with pytest.raises(TrialError, match=re.escape(words)):
        run(trial, newest.python, lambda _: None)


class Code:
    """Text that is evaluated where this is copied to: torch is missing here."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, (self.text,)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("lambda x: x", "compare measures a torch.nn.Module, and not a function"),
        (
            "__import__('torch').nn.Linear(2, 2)",
            "compare needs the inputs of one call: compare(module, inputs)",
        ),
    ],
)
def test_compare_says_what_it_needs(
    newest: ReleaseEnvironment, tmp_path: Path, module: str, words: str
) -> None:
    (tmp_path / "module.pkl").write_bytes(pickle.dumps((Code(module), None)))
    trial = Trial("m", Target("m", "pickle", str(tmp_path / "module.pkl")))
    with pytest.raises(TrialError, match=f"^{re.escape(words)}$"):
        run(trial, newest.python, lambda _: None)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ctrl_c_keeps_what_was_measured_and_resume_goes_on(
    try_: Command, newest: ReleaseEnvironment
) -> None:
    code = "from torchcompile_suite.cli.app import app; app()"
    arguments = [f"{TARGETS}:branching", "--allocator", "system", "--budget", "300"]
    arguments += ["--release", newest.version]
    process = subprocess.Popen(
        [sys.executable, "-c", code, "try", *arguments, "--precision", "0.001"],
        env={**os.environ, "XDG_CACHE_HOME": str(try_.cache), **QUICK},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said = [process.stderr.readline()]
    assert "Branching" in said[0]
    for line in process.stderr:
        said.append(line)
        if "launch 2:" in line and "of eager's time" in line:
            process.send_signal(signal.SIGINT)
            break
    out, err = process.communicate(timeout=600)
    assert process.returncode == 130, "".join([*said, err, out])
    assert "--resume" in err
    assert "│ default" in out
    status, out, err = try_(f"{TARGETS}:branching", "--resume")
    assert status == 0, err
    assert "launch 3" not in err, "three are enough, and two were kept"
    assert f"{place(BRANCH)}: graph break" in out
    assert "torch.where" in out


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_break_fails_a_projects_test_with_its_place(newest: ReleaseEnvironment) -> None:
    here = os.pathsep.join([str(ROOT / "src"), sysconfig.get_path("purelib"), str(ROOT / "tests")])
    code = (
        "import targets; from torchcompile_suite import assert_no_graph_breaks;"
        "assert_no_graph_breaks(*targets.branching())"
    )
    done = newest.run("-c", code, env=newest.variables(PYTHONPATH=here))
    assert done.returncode == 1
    assert "AssertionError: graph breaks: 1" in done.stderr
    assert place(BRANCH) in done.stderr
    assert "remedy: a branch on a tensor's value" in done.stderr
    # Of these, no graph that reaches a backend has a break.
    for model, said in (
        ("looping", "graph breaks: 1"),
        ("disabled", ""),
        ("scripted", "a part is TorchScript"),
    ):
        code = (
            "import strangers; from torchcompile_suite import assert_no_graph_breaks;"
            f"assert_no_graph_breaks(*strangers.{model}())"
        )
        done = newest.run("-c", code, env=newest.variables(PYTHONPATH=here))
        assert "AssertionError: " in done.stderr, model
        assert said in done.stderr, done.stderr
    code = (
        "import strangers, torch; from torchcompile_suite import assert_no_graph_breaks;"
        "assert_no_graph_breaks(torch.nn.Linear(4, 4), torch.ones(2, 4));"
        # One argument, also of a function.
        "assert_no_graph_breaks(*strangers.a_named_tuple());"
        "module, batch = strangers.a_dict(); assert_no_graph_breaks(module, batch);"
        "assert_no_graph_breaks(lambda batch: module(batch) * 2, batch);"
        "assert_no_graph_breaks(lambda x, y: x + y, batch)"
    )
    done = newest.run("-c", code, env=newest.variables(PYTHONPATH=here))
    assert done.returncode == 0, done.stderr


def test_another_python_gets_the_workloads_of_packages_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "somebodys-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[torchcompile_suite.workloads]\nmine = somebodys\n")
    (tmp_path / "somebodys.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "own.py")
    files = [str(tmp_path / name) for name in ("own.py", "somebodys.py")]
    of_target = Trial("m", Target("m", "timm", "m"))
    for variables, expected in (
        (target_variables(Trial("mine")), files),
        (target_variables(of_target), [str(GIVEN), *files]),
        (processes.of_release(Path(sys.executable)).variables, files),
    ):
        assert variables[VARIABLE].split(os.pathsep) == expected


def test_a_question_is_a_list_of_cells_of_the_model() -> None:
    asked = Trial("m", modes=("eager", "default"), device="cpu")
    frozen = plan.QUESTIONS["freezing"](asked, FREE)
    assert Counter((cell.mode, cell.allocator, cell.way) for cell in frozen) == Counter(
        (mode, allocator, way)
        for allocator in ("system", DEFAULT_HEAP)
        for mode, way in (("eager", "whole"), ("default", "whole"), ("default", "freezing"))
    )
    ways = [(cell.mode, cell.way) for cell in plan.QUESTIONS["regional"](asked, FREE)]
    assert ways == [("eager", "whole"), *(("default", way) for way in matrix.REGIONAL_WAYS)]
    stream = msgspec.structs.replace(
        asked, modes=("default",), batch_sizes=(1, 8), target=Target("m", "timm", "m")
    )
    shapes = [cell.shapes for cell in plan.QUESTIONS["dynamic_shapes"](stream, FREE)]
    assert shapes == matrix.POLICIES
    one = msgspec.structs.replace(stream, batch_sizes=(8,))
    with pytest.raises(TrialError, match="at least two"):
        plan.QUESTIONS["dynamic_shapes"](one, FREE)


def test_compare_measures_one_cell_of_a_module_that_compiles_a_part_of_itself() -> None:
    compiled = msgspec.structs.replace(FREE, compiled=True)
    for kind, ways in (("pickle", ["whole"]), ("file", ["whole", "as-given"])):
        asked = Trial("m", target=Target("m", kind, "m"), allocators=("system",))  # type: ignore[arg-type]
        assert [cell.way for cell in plan.cells(asked, compiled)] == ways


def test_a_question_about_shapes_has_the_batch_sizes_as_requests() -> None:
    for question in ("dynamic_shapes", "memory"):
        given = Trial("", question=question, batch_sizes=(1, 8))
        asked = plan.asked("resnet18x", [], given, [])
        assert asked.target is not None
        assert asked.target.stream == (1, 8)
        assert {cell.shapes for cell in plan.cells(asked, FREE)} > {"automatic", "recompile"}
    alone = plan.cells(Trial("resnet18", question="memory", batch_sizes=(8,)), FREE)
    assert [(cell.shapes, cell.batch_size) for cell in alone] == [("static", 8)]


def test_a_workload_of_the_suite_takes_the_batch_sizes_as_requests() -> None:
    for one in (Trial("", dynamic=True), Trial("", question="dynamic_shapes")):
        asking = msgspec.structs.replace(one, batch_sizes=(1, 8))
        asked = plan.asked("resnet18", [], asking, [])
        assert asked.target == Target("resnet18", "workload", "resnet18", stream=(1, 8))
        assert asked.target.libraries == ("timm",)
        assert {cell.shapes for cell in plan.cells(asked, FREE)} > {"automatic", "recompile"}
    assert plan.asked("resnet18", [], Trial("", batch_sizes=(1, 8)), []).target is None
    with pytest.raises(TrialError, match="at least two"):
        plan.cells(plan.asked("resnet18", [], Trial("", dynamic=True, batch_sizes=(8,)), []), FREE)


def test_a_workload_with_a_stream_of_its_own_takes_one_batch_size() -> None:
    for one in (Trial("", dynamic=True), Trial("", question="memory")):
        asked = plan.asked("gpt_prefill", [], one, [])
        assert asked.target is None
        assert {cell.shapes for cell in plan.cells(asked, FREE)} > {"automatic", "recompile"}
        several = msgspec.structs.replace(one, batch_sizes=(1, 8))
        with pytest.raises(TrialError, match="a stream of shapes of its own"):
            plan.asked("gpt_prefill", [], several, [])


@pytest.mark.parametrize("question", ["", "training", "starts", "memory"])
def test_a_batch_size_that_the_model_cannot_have_is_refused(question: str) -> None:
    fixed = msgspec.structs.replace(FREE, scales=False, batch_size=4)
    asked = Trial("resnet18", question=question, batch_sizes=(8,))
    with pytest.raises(TrialError, match=r"decides its batch size \(4\) itself"):
        plan.cells(asked, fixed)


@pytest.mark.parametrize("wrong", [{"mode": "fast"}, {"dtype": "bf16"}, {"device": "gpu"}])
def test_compare_refuses_what_does_not_exist(wrong: dict[str, str]) -> None:
    with pytest.raises(TrialError, match=f"no {next(iter(wrong))} {next(iter(wrong.values()))}"):
        compare(object(), (), **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (Trial("m", question="starts", batch_sizes=(1, 8)), "give one --batch-size"),
        (Trial("m", question="starts", modes=("default", "max-autotune")), "give one --mode"),
        (Trial("m", question="memory", modes=("default", "max-autotune")), "give one --mode"),
    ],
)
def test_what_a_question_would_leave_out_is_refused(asked: Trial, reason: str) -> None:
    with pytest.raises(TrialError, match=reason):
        plan.cells(asked, FREE)


def test_what_is_saved_does_not_depend_on_a_cell_that_ended_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launch that was killed knows no torch. All cells are of one torch."""
    monkeypatch.chdir(tmp_path)
    killed = examples.measurement(outcome=Outcome(Status.TIMEOUT, "killed"), mode="max-autotune")
    launches = [msgspec.structs.replace(one, environment=None) for one in killed.launches]
    killed = msgspec.structs.replace(killed, launches=launches)
    assert recorded.save([killed, examples.measurement()])[0].startswith("saved to ")
    found = records.read(tmp_path / "results").records
    assert {(one.measurement.cell.mode, one.release) for one in found} == {
        ("max-autotune", "2.9.1"),
        ("default", "2.9.1"),
    }
    with pytest.raises(SuiteError, match="of a failed cell is not a release"):
        recorded.save([killed])


def test_the_command_to_repeat_writes_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["--mode", "max autotune", "--html", "a.html", "--json=b.json", "--html=c.html"]
    monkeypatch.setattr(sys, "argv", ["x", "try", "my.py:make", *options, "--training"])
    assert trying._typed() == ("torchcompile-suite try my.py:make --mode 'max autotune' --training")

"""Models of strangers: their files are programs, and their modules do what ours never do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from torchcompile_suite.analysis import advice, remedies, summary
from torchcompile_suite.analysis.statistics import Interval
from torchcompile_suite.cell import Cell
from torchcompile_suite.compiled import Compiled, GraphBreak
from torchcompile_suite.measurement import (
    NOT_CHECKED,
    TOO_BUSY,
    Accuracy,
    Measurement,
    Outcome,
    Status,
)
from torchcompile_suite.trial import target, view
from torchcompile_suite.trial.outline import Outline
from torchcompile_suite.trial.run import TrialResult

from . import examples
from .conftest import NEWEST, ROOT, ReleaseEnvironment, releases

# Files that are programs


def loaded(path: Path, then: str = "") -> str:
    """What a new process prints that loads the file as a trial does."""
    code = (
        "from pathlib import Path; from torchcompile_suite.trial import target;"
        f"module = target.load(Path({str(path)!r})); {then}"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--an", "argument"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT / "src"), "PYTHONSAFEPATH": "1"},
        cwd=path.parent,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_file_sees_a_script_without_arguments(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text("import argparse, sys; argparse.ArgumentParser().parse_args(); print(sys.argv)")
    assert loaded(file) == str([str(file)])


def test_a_file_is_imported_once_and_beside_its_siblings(tmp_path: Path) -> None:
    (tmp_path / "sibling.py").write_text("name = 'beside'")
    file = tmp_path / "net.py"
    file.write_text("import sibling; print('imported', __name__, sibling.name)")
    again = f"target.load(Path({str(file)!r})); import net; assert net is module"
    assert loaded(file, again) == "imported net beside"


def test_a_file_may_have_a_name_of_the_standard_library(tmp_path: Path) -> None:
    file = tmp_path / "profile.py"
    file.write_text("print(__name__)")
    assert loaded(file, "import cProfile; print(module.__file__)") == f"profile_py\n{file}"


def test_a_file_of_a_package_may_import_relatively(tmp_path: Path) -> None:
    package = tmp_path / "outer" / "inner"
    package.mkdir(parents=True)
    (tmp_path / "outer" / "__init__.py").touch()
    (package / "__init__.py").touch()
    (tmp_path / "outer" / "parts.py").write_text("size = 3")
    file = package / "net.py"
    file.write_text("from ..parts import size; print(__name__, size)")
    assert loaded(file) == "outer.inner.net 3"


def test_a_folder_that_no_import_can_name_is_no_package(tmp_path: Path) -> None:
    package = tmp_path / "net-1.2"
    package.mkdir()
    (package / "__init__.py").touch()
    file = package / "model.py"
    file.write_text("print(__name__)")
    assert loaded(file) == "model"


def test_a_package_may_have_a_module_of_its_own_name(tmp_path: Path) -> None:
    package = tmp_path / "encoder"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "parts.py").write_text("size = 3")
    file = package / "encoder.py"
    file.write_text("from .parts import size; import parts; print(__name__, size)")
    assert loaded(file) == "encoder.encoder 3"


def test_a_module_of_a_package_hides_none_of_python(tmp_path: Path) -> None:
    package = tmp_path / "nets"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "profile.py").write_text("size = 3")
    file = package / "net.py"
    file.write_text("from .profile import size; print(size)")
    assert loaded(file, "import cProfile, profile; print(hasattr(profile, 'run'))") == "3\nTrue"


def test_what_the_file_has_pickled_as_a_script_is_found(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(
        "import pickle\nfrom pathlib import Path\nclass Net: size = 3\n"
        "file = Path(__file__).with_name('net.pkl')\n"
        "def make(): return pickle.loads(file.read_bytes())\n"
        "if __name__ == '__main__': file.write_bytes(pickle.dumps(Net()))\n"
    )
    subprocess.run([sys.executable, str(file)], check=True)
    assert loaded(file, "print(module.make().size)") == "3"


def test_a_file_of_the_current_folder_hides_no_module_before_it_is_imported(
    tmp_path: Path,
) -> None:
    variables = target.variables()
    assert variables["PYTHONSAFEPATH"] == "1"
    assert str(Path.cwd()) not in variables["PYTHONPATH"].split(":")[:1]
    (tmp_path / "profile.py").write_text("raise SystemExit('the wrong profile')")
    code = "import torchcompile_suite, cProfile"
    path = {**variables, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, "-c", code], env=path, cwd=tmp_path, check=True)


# What a launch finds out


# "helped" comes first: the first model of a file takes out all compiled functions of the file.
STRANGERS = (
    *("helped", "wrapped", "in_place", "in_parts", "decorated", "assigned", "hidden", "disabled"),
    *(
        "shrinking",
        "wearing",
        "with_targets",
        "drawn",
        "remembering",
        "a_dict",
        "a_list",
        "a_user_dict",
        "a_dataclass",
        "a_named_tuple",
        "a_none",
    ),
    *("both", "nothing", "no_rows", "meta", "lazy", "complex_numbers", "sparse", "nested"),
    *("slope", "log", "recent", "slowing", "on_a_slowed_machine", "renewed", "refilled", "zeroed"),
    *("limited", "own_cache", "scripted", "talking", "looping", "images", "labelled"),
    *("driven", "driven_before", "conditional", "lazily"),
    *("a_generator", "three", "with_loss", "with_function"),
)


@pytest.fixture(scope="module", params=releases("v2.4"))
def learned(
    request: pytest.FixtureRequest,
    make_environment: Callable[[str], ReleaseEnvironment],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    """By factory of tests/strangers.py: what tests/learn.py prints of it."""
    folder = tmp_path_factory.mktemp("learned")
    learn = ROOT / "tests" / "learn.py"
    done = make_environment(request.param).run(str(learn), str(folder), *STRANGERS)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads((folder / "answer.json").read_text())
    return {**answer, "cache": str(folder), "newest": request.param == NEWEST}


slow = pytest.mark.slow
patient = pytest.mark.timeout(900)


@slow
@patient
@pytest.mark.parametrize("name", ["wrapped", "in_place", "in_parts", "decorated", "assigned"])
def test_what_is_compiled_already_becomes_the_original(learned: dict[str, Any], name: str) -> None:
    (note,) = learned[name]["notes"]
    assert note.startswith("compiled already: ")
    assert "measured is the original" in note


@slow
@patient
def test_compiled_functions_around_a_model_become_the_original(learned: dict[str, Any]) -> None:
    (note,) = learned["helped"]["notes"]
    assert "strangers.doubled" in note
    # Other models of the file do not use it.
    assert "doubled" not in "".join(learned["decorated"]["notes"])


@slow
@patient
def test_what_compiles_where_nobody_finds_it_is_refused(learned: dict[str, Any]) -> None:
    assert "the module compiles a part of itself (<lambda>, strangers.py:" in learned["hidden"]
    for name in ("driven", "driven_before"):
        assert "the module compiles a part of itself (Sequential), and" in learned[name]
    assert learned["conditional"]["notes"] == [], "torch compiles this one"


FIRST_COMPILED_IN_FORWARD = """
import torch
class Late(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.fast = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU()), None
    def forward(self, x):
        if self.fast is None:
            self.fast = torch.compile(self.net, backend="eager")
        return self.fast(x)
def make():
    return Late(), torch.randn(4, 8)
"""


@slow
@patient
def test_what_compiles_at_its_first_call_only_is_refused(
    newest: ReleaseEnvironment, tmp_path: Path
) -> None:
    """In a process of its own: a file that compiles when it is imported imports Dynamo."""
    file = tmp_path / "late.py"
    file.write_text(FIRST_COMPILED_IN_FORWARD)
    code = (
        "import sys; from torchcompile_suite.cell import Cell;"
        "from torchcompile_suite.launch import build as subjects, foreign;"
        "from torchcompile_suite.trial import build, target;"
        f"build.register(target.parse({f'{file}:make'!r}));"
        "subject = subjects.build(Cell('late.make', 1, 'default'));"
        "assert 'torch._dynamo' not in sys.modules; foreign.learn(subject)"
    )
    done = newest.run("-c", code)
    assert "WorkloadError: the module compiles a part of itself (Sequential), and" in done.stderr


@slow
@patient
@pytest.mark.parametrize("name", ["shrinking", "wearing", "labelled"])
def test_inputs_stay_as_the_user_gave_them(learned: dict[str, Any], name: str) -> None:
    (note,) = learned[name]["notes"]
    assert note.startswith("each call changes its inputs")
    assert learned[name]["same"]


@slow
@patient
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *[(name, "tuple") for name in ("a_dict", "a_list", "a_user_dict", "a_dataclass")],
        *[(name, "tuple") for name in ("a_named_tuple", "a_none", "nothing", "lazy", "sparse")],
        *[(name, "tuple") for name in ("with_targets", "drawn")],
        *[(name, "tuple") for name in ("nested", "recent")],
        ("both", "dict"),
        ("complex_numbers", "tuple"),
    ],
)
def test_inputs_of_all_kinds_reach_the_model(learned: dict[str, Any], name: str, kind: str) -> None:
    assert learned[name]["notes"] == []
    assert learned[name]["inputs"] == kind


@slow
@patient
def test_lazy_parts_get_their_sizes(learned: dict[str, Any]) -> None:
    """Those that only training uses, too, if the model can be called so."""
    assert (learned["lazily"]["lazy"], learned["with_targets"]["lazy"]) == (False, True)


@slow
@patient
def test_a_list_of_images_is_a_batch(learned: dict[str, Any]) -> None:
    assert (learned["images"]["batch"], learned["a_list"]["batch"]) == (2, 4)


@slow
@patient
def test_what_has_no_numbers_is_refused_in_one_line(learned: dict[str, Any]) -> None:
    for name, words in (("no_rows", "at least one row"), ("meta", "make them real")):
        assert words in learned[name]
        assert "\n" not in learned[name]


@slow
@patient
def test_inputs_that_no_call_can_get_again_are_refused(learned: dict[str, Any]) -> None:
    assert learned["a_generator"].startswith(
        "WorkloadError: the inputs cannot be copied (TypeError: cannot pickle 'generator' object)"
    )


@slow
@patient
@pytest.mark.parametrize("name", ["three", "with_loss", "with_function"])
def test_three_values_that_are_no_form_are_told_the_forms(
    learned: dict[str, Any], name: str
) -> None:
    assert "it returns tuple; return (model, inputs): a tuple by position" in learned[name]


@slow
@patient
def test_a_model_that_needs_gradients_gets_them(learned: dict[str, Any]) -> None:
    # What the failed call has kept is forgotten.
    assert learned["remembering"]["context"] == "no-grad"
    if learned["newest"]:  # in 2.4 compiling it fails
        assert learned["slope"]["context"] == "no-grad"
        (note,) = learned["slope"]["notes"]
        assert note.startswith("called under torch.no_grad(): ")


@slow
@patient
def test_eager_and_the_mode_are_built_alike(learned: dict[str, Any]) -> None:
    """In a launch by two processes; the factory draws from Python's and NumPy's generators."""
    assert learned["drawn"]["repeated"]


@slow
@patient
def test_a_model_that_keeps_something_of_each_call_has_no_steady_state(
    learned: dict[str, Any],
) -> None:
    said = "each call keeps 128 bytes more in log (strangers.py:"
    assert said in learned["log"]
    assert "there is no steady state" in learned["log"]
    line = int(learned["log"].partition(said)[2].partition(")")[0])
    assert "self.log.append" in (ROOT / "tests" / "strangers.py").read_text().splitlines()[line - 1]


@slow
@patient
def test_a_model_that_slows_down_has_no_steady_state(learned: dict[str, Any]) -> None:
    assert "each call takes longer than the last (" in learned["slowing"]
    assert "in seen (strangers.py:" in learned["slowing"]
    assert learned["on_a_slowed_machine"]["notes"] == []


@slow
@patient
def test_a_factory_may_give_each_call_a_fresh_state(learned: dict[str, Any]) -> None:
    for name in ("renewed", "refilled", "zeroed"):
        (note,) = learned[name]["notes"]
        assert note.startswith("the factory's reset was called after each call")


@slow
@patient
@pytest.mark.parametrize("name", ["wrapped", "in_place", "in_parts", "decorated", "assigned"])
def test_what_the_user_compiles_is_compared_too(learned: dict[str, Any], name: str) -> None:
    given = learned[name]["given"]
    assert given["original"] == 0, "taken out, nothing compiles"
    assert given["graphs"] > 0
    assert given["same"]
    assert given["after"] == 0, "taken out again after a call of a check"


@slow
@patient
def test_a_model_that_fails_after_some_calls_is_not_blamed_on_compiling(
    learned: dict[str, Any],
) -> None:
    assert learned["limited"].startswith(
        "the module itself fails at call 7, in eager, too: IndexError: the table is full"
    )


@slow
@patient
def test_a_cache_of_the_models_own_is_replaced(learned: dict[str, Any]) -> None:
    (note,) = learned["own_cache"]["notes"]
    assert "TORCHINDUCTOR_CACHE_DIR" in note
    assert learned["own_cache"]["cache"] == learned["cache"]


@slow
@patient
def test_what_dynamo_leaves_to_eager_has_a_reason(learned: dict[str, Any]) -> None:
    for name, words in (("disabled", "isabled"), ("scripted", "Script")):
        assert learned[name]["graphs"] == 0
        assert learned[name]["share"] == 0.0
        assert words in learned[name]["reasons"][0]["reason"]
    assert 0 < learned["talking"]["share"] < 1
    assert learned["talking"]["reasons"][0]["where"].startswith("strangers.py:")
    # In 2.4 to 2.10 no counter says that the function with the loop was left to eager.
    (left,) = learned["looping"]["reasons"]
    assert "print" in left["reason"]
    assert left["where"].startswith("strangers.py:")
    assert learned["wrapped"]["share"] == 1.0


# Words


def row(*ratio: float) -> summary.Row:
    interval = Interval(*ratio)
    return summary.Row(
        "", "", Cell("m", 1, "default"), Outcome(Status.OK), interval, interval, interval
    )


def test_an_interval_that_says_nothing_is_no_figure() -> None:
    assert advice.sentence([row(15.93, 0.0, 85027.87)], "measure on") == (
        "Cannot tell, mode default: too few launches agree: the interval spans a factor of more "
        "than 100; measure on"
    )
    assert "spans a factor of 16" in advice.sentence([row(0.5, 0.1, 1.6)], "measure on")
    assert advice.sentence([row(0.5, 0.4, 0.6)], "measure on").startswith("Compile it")


def compiled(**fields: Any) -> Measurement:
    made = examples.measurement("model", mode="default")
    first = msgspec.structs.replace(made.launches[0], compiled=Compiled(**fields))
    return msgspec.structs.replace(made, launches=[first, *made.launches[1:]])


def shown(measurement: Measurement) -> TrialResult:
    return TrialResult(Outline(torch="2.15.0"), [measurement], interrupted=False)


def test_no_graphs_are_no_verdict_on_compiling() -> None:
    reason = "nothing of it was compiled: 0 graphs, because of scripted modules (GB4695)"
    failed = msgspec.structs.replace(
        compiled(graphs=0), outcome=Outcome(Status.UNSUPPORTED, reason), launches=[]
    )
    (sentence,) = view.sentences(shown(failed))
    assert sentence == f"N{reason[1:]}"
    assert not view.failures(shown(failed)), "it is said once"


def test_a_verdict_says_what_was_not_checked() -> None:
    made = compiled(graphs=1)
    checked = Accuracy("same-dtype", None, None, 1e-4, [f"{NOT_CHECKED}: a clock"], compared=False)
    first = msgspec.structs.replace(made.launches[0], accuracy=checked)
    sentence = view.sentences(shown(msgspec.structs.replace(made, launches=[first])))[0]
    assert sentence.endswith(". Accuracy not checked: a clock.")


def test_the_share_of_operators_in_graphs_is_always_told() -> None:
    sentences = view.sentences(shown(compiled(graphs=2, captured_share=0.44)))
    assert "44 % of its operators are in 2 graphs." in sentences
    assert advice.in_graphs(compiled(graphs=3, captured_share=0.999)).startswith("99 %")
    assert advice.in_graphs(compiled(graphs=1, captured_share=1.0)) == (
        "All of its operators are in one graph."
    )


def test_a_guard_that_fails_again_and_again_is_one_advice() -> None:
    again = [
        GraphBreak(f"0/{count}: self.seen == {count}  # at m.py", "m.py:3") for count in range(1, 9)
    ]
    other = GraphBreak("1/1: size mismatch at index 0", "m.py:9")
    told = advice.advice(
        [compiled(recompile_reasons=[*again, other])], came_training=False, varying=False
    )
    first, second = [each for each in told if "recompiled" in each.what]
    assert first.what == (
        "recompiled 8 times: self.seen == 1; Dynamo's limit is 8, and more run in eager"
    )
    assert second.what == "recompiled: size mismatch at index 0"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("the module itself fails at call 7, in eager, too: IndexError", "It cannot be timed: "),
        ("launch 2: each call keeps 128 bytes more", "It cannot be timed: "),
        ("each call takes longer than the last (3 us)", "It cannot be timed: "),
        ("its Python did not import torch within 300 s", "This machine or its torch cannot"),
        ("the calibration loop did not answer within 60 s", "This machine or its torch cannot"),
        (
            "/env/bin/python cannot be started: Input/output error",
            "This machine or its torch cannot",
        ),
        ("while in eager: KeyError: 'x'", "It does not run here, compiled or not: "),
        ("while in turns: KeyError: 'x'", "compiled it fails in a later call: "),
        (
            "while in warm-up: BackendCompilerFailed: backend='inductor' raised: AttributeError: "
            "type object 'TensorReferenceAnalysis' has no attribute 'python_mod'",
            "write t - n * (t // n)",
        ),
        ("while in reference: KeyError: 'x'", "please report it with the file that --json writes"),
        ("nothing of it was compiled: 0 graphs", "Nothing of it was compiled: 0 graphs"),
        (f"{TOO_BUSY}: launch 1", "This machine is too busy to say: launch 1"),
        ("while in compile: Unsupported", "Do not compile it as it is: crash: while in compile"),
    ],
)
def test_a_failure_says_who_failed(reason: str, words: str) -> None:
    assert words in advice.failed(Outcome(Status.CRASH, reason))


def test_what_cannot_be_asked_says_nothing_about_the_model() -> None:
    outcome = Outcome(Status.UNSUPPORTED, "libtcmalloc_minimal is not installed")
    assert advice.failed(outcome).startswith("It cannot be measured so: unsupported: libtcmalloc")


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("Dynamo does not support RNN, GRU, or LSTM", "allow_rnn"),
        ("Dynamo does not know how to trace builtin operator `print`", "printing"),
        ("torch.jit.script/freeze modules unsupported", "TorchScript"),
        ("using `torch.autograd.grad` with trace_autograd_ops=False", "trace_autograd_ops = True"),
        ("Attempted to wrap sparse Tensor", "dense parts"),
        ("wrapped with `torch.compiler.disable`", "remove torch.compiler.disable"),
    ],
)
def test_the_breaks_of_newer_releases_have_remedies(reason: str, remedy: str) -> None:
    assert remedy in remedies.remedy("graph-break", reason)


@pytest.mark.parametrize(
    ("note", "usual"),
    [("its inputs change", True), ("called under torch.no_grad(): it fails otherwise", False)],
)
def test_what_was_found_out_is_a_note(note: str, usual: bool) -> None:
    """Only a note on the context changes the advice on the context."""
    made = examples.measurement("model", mode="default")
    launches = [msgspec.structs.replace(each, notes=[note]) for each in made.launches]
    outline = Outline(torch="2.15.0", notes=["compiled already"])
    measurement = msgspec.structs.replace(made, launches=launches)
    result = TrialResult(outline, [measurement], interrupted=False)
    assert view.notes(result) == ["compiled already", note]
    remarks = advice.advice([measurement], came_training=True, varying=False)
    assert any("inference_mode" in remark.remedy for remark in remarks) is usual

"""How far a process came that its driver ends: real processes without torch, and the words."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from torchcompile_suite.analysis import advice
from torchcompile_suite.engine import processes, turns
from torchcompile_suite.engine.processes import HERE, import_path
from torchcompile_suite.launch.progress import Look, Whereabouts, phase, read, told
from torchcompile_suite.measurement import Outcome, Status

from .test_launch import wait_until

TORCH = "/x/site-packages/torch"


@pytest.mark.parametrize(
    ("frames", "found"),
    [
        # What 2.15, 2.9 and 2.4 have on the stack, the innermost first.
        (
            ["/x/python3.11/ast.py:visit", "_dynamo/variables/nn_module.py:getattr_helper"],
            "Dynamo's capture",
        ),
        (
            [
                "_dynamo/utils.py:wrap_fake_exception",
                "_functorch/_aot_autograd/collect_metadata_analysis.py:inner",
                "_dynamo/backends/common.py:__call__",
                "_dynamo/output_graph.py:call_user_compiler",
            ],
            "AOTAutograd",
        ),
        (
            ["_inductor/decomposition.py:wrapped", "_functorch/aot_autograd.py:create"],
            "AOTAutograd",
        ),
        (
            ["/x/site-packages/sympy/core/add.py:flatten", "_inductor/ir.py:get_fill_order"],
            "Inductor's lowering",
        ),
        (
            ["_inductor/codegen/cpp.py:gen_loop", "_inductor/graph.py:codegen"],
            "Inductor's scheduling and code generation",
        ),
        (
            ["_inductor/cpp_builder.py:build", "_inductor/codecache.py:load_async"],
            "compiling C++ or Triton",
        ),
        (
            ["/x/python3.11/threading.py:wait", "_inductor/async_compile.py:wait"],
            "compiling C++ or Triton",
        ),
        (
            ["_inductor/cpp_builder.py:build", "_inductor/codecache.py:valid_vec_isa_list"],
            "asking the C++ compiler which instructions the CPU has",
        ),
        (
            ["/tmp/cache/ab/cab.py:call", "_functorch/_aot_autograd/runtime_wrappers.py:run"],
            "the compiled code's first call",
        ),
        (["/home/me/model.py:forward", "_dynamo/eval_frame.py:_fn"], ""),
    ],
)
def test_the_innermost_frame_of_torch_says_what_works(frames: list[str], found: str) -> None:
    places = [frame if frame.startswith("/") else f"{TORCH}/{frame}" for frame in frames]
    assert phase(tuple(place.rsplit(":", 1)) for place in places) == found  # type: ignore[misc]


def at(seconds: float, phase: str, **counts: int) -> Look:
    return Look(seconds, Whereabouts("compile", seconds, phase, **counts))


def test_the_words_say_the_stage_the_phase_and_the_counts() -> None:
    assert told([]) == ""
    assert told([Look(9.0, Whereabouts("eager", 8.6))]) == "the last 9 s in eager"
    looks = [at(450, "AOTAutograd"), at(675, "Inductor's lowering"), at(900, "Inductor's lowering")]
    assert told(looks) == (
        "the last 900 s in compile, at the end in Inductor's lowering (for at least 225 s)"
    )
    looks.append(at(901, "compiling C++ or Triton", graphs=1, operators=800, kernels=400))
    assert told(looks).endswith(
        "in compiling C++ or Triton; so far 1 finished graph, 800 operators, 400 kernels"
    )


def test_a_stack_without_our_frames_belongs_to_the_last_known_stage() -> None:
    dump = f'Current thread 0x1:\n  File "{TORCH}/_inductor/ir.py", line 7 in realize\n'
    seen = read(dump, at(450, "AOTAutograd", operators=3))
    assert seen is not None
    assert (seen.stage, seen.phase, seen.operators) == ("compile", "Inductor's lowering", 3)
    seen = read(dump, None)
    assert seen is not None
    assert told([Look(1.0, seen)]) == "the end in native code"
    seen = read(f'{dump}  File "/x/torchcompile_suite/launch/measure.py", line 1 in warm_up', None)
    assert seen is not None
    assert seen.stage == "warm-up"
    check = f'{dump}  File "/x/torchcompile_suite/launch/measure.py", line 1 in _check'
    seen = read(check, Look(9.0, Whereabouts("accuracy", 9.0)))
    assert seen is not None
    assert seen.stage == "accuracy", "a helper is no stage"
    assert read("", None) is None


WAITS = """
import pathlib, sys, time
from torchcompile_suite.launch.progress import Stages, answer
answer()
with Stages("cell")("eager"):
    pathlib.Path(__file__).with_name("begun").touch()
    {work}
"""


@pytest.mark.parametrize(
    ("work", "words"),
    [
        ("time.sleep(100)", r"the last \d+ s in eager"),
        # No handler of Python's runs before it returns.
        ("time.sleep(1); sum(range(10**13))", r"the (end|last \d+ s) in (eager|native code)"),
    ],
)
def test_a_process_says_how_far_it_is_even_in_native_code(
    tmp_path: Path, work: str, words: str
) -> None:
    (tmp_path / "waits.py").write_text(WAITS.format(work=work))
    path = {"PYTHONPATH": import_path(tmp_path)}
    process = processes.spawn(HERE, tmp_path / "log", "waits", path)
    try:
        wait_until((tmp_path / "begun").exists)
        with pytest.raises(turns.TimedOut, match=words):
            process.hear(time.monotonic() + 3)
    finally:
        process.end()


def test_a_process_that_cannot_answer_gets_no_signal(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text("import time; time.sleep(100)")
    process = processes.spawn(
        HERE, tmp_path / "log", "waits", {"PYTHONPATH": import_path(tmp_path)}
    )
    try:
        with pytest.raises(turns.TimedOut) as late:
            process.hear(time.monotonic() + 3)
        assert late.value.args == ("",)
    finally:
        process.end()


@pytest.mark.parametrize(
    ("far", "words"),
    [
        (": the last 9 s in eager", "before anything is compiled"),
        (": the end in traffic", "It compiles, and what follows"),
        (": the last 9 s in compile, at the end in AOTAutograd", "--question regional"),
        ("", "--question regional"),
    ],
)
def test_what_to_try_depends_on_the_stage(far: str, words: str) -> None:
    reason = f"a cold launch took more than 900 s{far}"
    said = advice.failed(Outcome(Status.TIMEOUT, reason))
    assert words in said
    assert "TORCHCOMPILE_SUITE_LAUNCH_LIMIT_S" in said
    assert said.endswith(reason)

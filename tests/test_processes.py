"""Processes of any Python: one that hangs, does not start or fails. Each wait has an end."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from torchcompile_suite.cell import Cell
from torchcompile_suite.engine import launches, processes, turns
from torchcompile_suite.engine.processes import HERE, Environment
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.host import programs
from torchcompile_suite.launch.messages import Order
from torchcompile_suite.measurement import Status
from torchcompile_suite.request import Request

CODE = Order(Cell("softmax_matmul", 1, "default", target="cuda:sm90"))
REQUEST = Request(Cell("resnet18", 1, "default"), "cold", "")


def python(folder: Path, script: str) -> Path:
    file = folder / "python"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize(
    ("limit_s", "imports_s", "reason"),
    [
        (0.5, 100.0, "a cold launch took more than 0 s"),
        (1.5, 0.4, "its Python did not import torch within 0 s"),
    ],
)
def test_a_release_whose_python_hangs_is_a_timeout(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit_s: float,
    imports_s: float,
    reason: str,
) -> None:
    monkeypatch.setattr(turns, "IMPORT_LIMIT_S", imports_s)
    hanging = Environment(python(tmp_path, "exec sleep 100"))
    launch = launches.run(hanging, REQUEST, limit_s)
    assert launch.outcome.status is Status.TIMEOUT
    assert launch.outcome.reason == reason


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo broken; exit 3", "exit status 3 without a result: broken"),
        ("echo free: invalid pointer; kill -6 $$", "killed by SIGABRT: free: invalid pointer"),
        ("kill -40 $$", "killed by signal 40: it printed nothing"),
        ("kill -9 $$", "killed by SIGKILL (by a user, or by the kernel because memory ran out"),
    ],
)
def test_a_python_that_ends_is_a_crash(tmp_path: Path, script: str, reason: str) -> None:
    launch = launches.run(Environment(python(tmp_path, script)), REQUEST, 60)
    assert launch.outcome.status is Status.CRASH
    assert launch.outcome.reason.startswith(reason)


def test_a_python_that_is_not_there_is_a_crash(tmp_path: Path) -> None:
    launch = launches.run(Environment(tmp_path / "python"), REQUEST, 60)
    assert launch.outcome.status is Status.CRASH
    assert (
        launch.outcome.reason == f"{tmp_path}/python cannot be started: No such file or directory"
    )


@pytest.mark.parametrize(
    ("script", "words"),
    [("exec sleep 100", "does not start within 0 s"), ("echo broken >&2; exit 3", "start: broken")],
)
def test_a_python_that_does_not_start_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    monkeypatch.setattr(processes, "START_S", 0.4)
    with pytest.raises(SuiteError, match=words):
        processes.version(python(tmp_path, script))


class Text(msgspec.Struct):
    """An order, or an answer."""

    text: str


ANSWERS = """
import json, multiprocessing, time
from torchcompile_suite.launch.messages import accept

connection = accept()
order = json.loads(connection.recv_bytes())["text"]
if order == "fails":
    raise ValueError("no answer")
if order == "waits":
    time.sleep(60)
multiprocessing.set_start_method("spawn")
print("this is no answer")
connection.send_bytes(json.dumps({"text": f"an answer to {order}"}).encode())
"""


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that answers."""
    (tmp_path / "answers.py").write_text(ANSWERS)
    monkeypatch.chdir(tmp_path)
    return "answers"


def test_a_module_answers_once(answers: str) -> None:
    assert processes.asked(HERE, answers, Text("one"), 60.0, Text) == Text("an answer to one")


@pytest.mark.parametrize(
    ("order", "limit_s", "reason"),
    [
        ("fails", 60.0, "exit status 1 without a result: ValueError: no answer"),
        ("waits", 1.0, "it took more than 1 s"),
    ],
)
def test_there_is_a_reason_why_a_module_does_not_answer(
    answers: str, order: str, limit_s: float, reason: str
) -> None:
    with pytest.raises(SuiteError, match=f"^{reason}$"):
        processes.asked(HERE, answers, Text(order), limit_s, Text)


def test_the_calibration_loop_runs_in_the_measured_python(tmp_path: Path) -> None:
    with launches.RemoteLoop(HERE, tmp_path / "log", 2) as loop:
        loop()
        loop()
        (pid,) = loop.pids
        assert Path(f"/proc/{pid}").exists()
        assert loop.seconds is not None
        assert 1e-5 < loop.seconds < 1e-2
    assert not Path(f"/proc/{pid}").exists()


def test_a_generator_is_kept_for_the_same_python_target_and_libraries(tmp_path: Path) -> None:
    kept = launches._Generators()
    first = kept.of(HERE, "cuda:sm90", ("timm",))
    assert kept.of(HERE, "cuda:sm90", ("timm",)) is first
    # Another set of libraries would meet what the process has imported.
    others = [
        kept.of(HERE, "cuda:sm90", ("transformers",)),
        kept.of(HERE, "cuda:sm80", ("transformers",)),
        kept.of(Environment(tmp_path / "python"), "cuda:sm80", ("transformers",)),
    ]
    assert len({first, *others}) == 4
    kept.close()
    assert kept.of(HERE, "cuda:sm90", ("timm",)) is not first
    kept.close()


def test_after_a_process_that_was_killed_another_one_answers() -> None:
    """This Python has no CUDA build of torch: it says so each time."""
    with closing(launches.Generator(HERE, "cuda:sm90")) as generator:
        outcomes = []
        for _ in range(3):
            outcomes.append(generator.make(CODE).outcome)
            if generator._process is not None:
                os.kill(generator._process.pid, signal.SIGKILL)
        lost = [one for one in outcomes if "killed by SIGKILL" in one.reason]
        assert len(lost) == 1
        assert {one.status for one in outcomes if one not in lost} == {Status.UNSUPPORTED}


def test_a_missing_compiler_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with closing(launches.Generator(HERE, "cuda:sm90")) as generator:
        outcome = generator.make(CODE).outcome
    assert outcome.reason == "no C compiler; install one (on Debian: apt-get install g++)"
    assert not outcome.settled


TERMINATED = """
import os, signal, sys, tempfile
from torchcompile_suite.cli.app import app

@app.command()
def works():
    with tempfile.TemporaryDirectory(dir=sys.argv[1]):
        os.kill(os.getpid(), signal.SIGTERM)

app(["works"])
"""


def test_sigterm_stops_a_command_as_ctrl_c_does(tmp_path: Path) -> None:
    done = programs.run([sys.executable, "-c", TERMINATED, tmp_path])
    assert (done.returncode, done.stderr) == (130, "")
    assert list(tmp_path.iterdir()) == []

"""The terminal shows what is measured, and this costs the measurement nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from torchcompile_suite.cell import Cell
from torchcompile_suite.engine import processes
from torchcompile_suite.engine.processes import import_path
from torchcompile_suite.engine.progress import CellProgress, measurement_line
from torchcompile_suite.launch import progress
from torchcompile_suite.launch.messages import Imported
from torchcompile_suite.measurement import Outcome, Status

from . import examples
from .examples import generated as made


def test_cells_are_shown_with_time_left() -> None:
    shown: list[str] = []
    measured = measurement_line(examples.measurement())
    first, second = Cell("resnet18", 1, "default"), Cell("vit", 1, "default")
    cells = CellProgress(shown.append)
    cells.expect([first, second, second], 1)
    cells.started(first)
    cells.finished(first, measured, 60.0)
    cells.finished(second, f"{measured} (measured before)")
    assert "cell 1 of 3: resnet18, batch 1, default: measuring" in shown[0]
    assert (
        "30 ms a call, 0.75 of eager's time +-11.5% in 3 launches; about 2 minutes left" in shown[1]
    )
    assert "measured before" in shown[2]
    assert "about a minute left" in shown[2]
    cells.finished(second, measured, 60.0)
    assert shown[3].endswith("3 launches")


def test_generated_code_does_not_make_the_time_left_shorter() -> None:
    shown: list[str] = []
    timed, generated = Cell("m", 1, "default"), Cell("m", 1, "default", target="cuda:sm90")
    cells = CellProgress(shown.append)
    cells.expect([generated, generated, timed, timed], 2)
    cells.finished(generated, "5 launches", 2.0)
    assert shown[-1].endswith("5 launches")
    cells.finished(timed, "3 ms", 100.0)
    cells.finished(generated, "5 launches", 2.0)
    assert [line.rpartition("; ")[2] for line in shown[1:]] == ["about 5 minutes left"] * 2


TELLS = """
from torchcompile_suite.launch import messages, progress
connection = messages.accept()
with progress.listening(lambda event: connection.send_bytes(messages.encode(event))):
    with progress.Stages("resnet18, batch 1, default", "eager ")("build"):
        progress.note("learned", "resnet18, batch 1, default", "eager takes 3 ms a call")
connection.send_bytes(messages.encode(messages.Imported()))
"""


def test_events_of_another_process_are_heard(tmp_path: Path) -> None:
    (tmp_path / "tells.py").write_text(TELLS)
    path = {"PYTHONPATH": import_path(tmp_path)}
    heard: list[progress.Event] = []
    process = processes.spawn(processes.HERE, tmp_path / "log", "tells", path)
    try:
        with progress.listening(heard.append):
            assert process.hear(time.monotonic() + 60) == Imported()
    finally:
        process.end()
    assert [(event.kind, event.text) for event in heard] == [
        ("stage", "eager build"),
        ("learned", "eager takes 3 ms a call"),
    ]


def test_generated_code_is_shown_with_its_launches() -> None:
    assert measurement_line(made()) == "5 launches a call, 2 of them of libraries"


def test_a_failure_is_shown_with_its_reason() -> None:
    failed = examples.measurement(outcome=Outcome(Status.COMPILE_ERROR, "no compiler"))
    assert measurement_line(failed) == "compile-error: no compiler"


def test_nobody_listening_is_no_error() -> None:
    progress.note("started", "x")


@pytest.mark.parametrize("fault", [BrokenPipeError(), ValueError("I/O operation on closed file")])
def test_a_broken_terminal_is_no_error(fault: Exception) -> None:
    def broken(_: progress.Event) -> None:
        raise fault

    with progress.listening(broken):
        progress.note("started", "x")

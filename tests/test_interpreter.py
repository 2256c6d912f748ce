"""A Python that hangs or does not start: each wait has an end."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchcompile_suite.cell import Cell, Request, Status
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.measuring import interpreter, launches


def python(folder: Path, script: str) -> Path:
    file = folder / "python"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def test_a_release_whose_python_hangs_is_a_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launches, "OWN_LIMIT_S", 0.5)
    request = Request(Cell("resnet18", 1, "default"), "cold", str(tmp_path))
    hanging = launches.Elsewhere(python(tmp_path, "exec sleep 100"))
    launch = hanging.run(request, tmp_path, 0.5)
    assert launch.outcome.status is Status.TIMEOUT
    assert launch.outcome.reason == "the release's Python gave no answer within 1 s"


@pytest.mark.parametrize(
    ("script", "words"),
    [("exec sleep 100", "does not start within 0 s"), ("echo broken >&2; exit 3", "start: broken")],
)
def test_a_python_that_does_not_start_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    monkeypatch.setattr(interpreter, "START_S", 0.4)
    with pytest.raises(SuiteError, match=words):
        interpreter.need_start(python(tmp_path, script))

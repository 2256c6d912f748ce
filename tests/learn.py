"""Run by a release's Python: what a launch finds out about each model of tests/strangers.py.

Prints one JSON object: factory -> notes, the context, the share in graphs and the reasons; or the
error.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
from torch.nn.parameter import is_lazy

from torchcompile_suite.cell import Cell
from torchcompile_suite.launch import foreign, original
from torchcompile_suite.launch.build import build as subject_of
from torchcompile_suite.launch.subject import Call, Subject
from torchcompile_suite.measurement import Outcome, Status
from torchcompile_suite.trial import build, target

FILE = Path(__file__).with_name("strangers.py")


def learn(name: str) -> dict[str, object]:
    """What is found out about the model of that factory."""
    parsed = target.parse(f"{FILE}:{name}")
    assert isinstance(parsed, target.Target)
    cell = Cell(parsed.name, 1, "default", backend="aot_eager")
    build.register(parsed)
    models: list[build.Model] = []
    make = build.build

    def keep(*arguments: Any) -> build.Model:
        models.append(make(*arguments))
        return models[-1]

    # Built once, as in a launch: what is taken out of a class is not there for a second model.
    with mock.patch.object(build, "build", keep):
        subject = subject_of(cell)
    before = subject.inputs
    notes = [*models[0].notes, *foreign.learn(subject)]
    with subject.context():
        first, again = subject.eager(), subject.eager()
    found: dict[str, object] = {
        "notes": notes,
        "context": subject.gradients,
        "inputs": type(before).__name__,
        "batch": build.batch_size_of(before),
        "same": first.is_nested or bool((first.to_dense() == again.to_dense()).all()),
        "cache": os.environ["TORCHINDUCTOR_CACHE_DIR"],
        "lazy": any(map(is_lazy, subject.module.parameters())),
    }
    if name == "drawn":
        assert isinstance(before, tuple)
        again = subject_of(cell).inputs
        assert isinstance(again, tuple)
        found["repeated"] = bool((again[0] == before[0]).all())
    if original.as_given(subject.module) is not None:
        found["given"] = as_given(cell, subject)
    if name in ("disabled", "scripted", "talking", "looping", "slope", "wrapped"):
        from torchcompile_suite.launch.inspect import capture, dynamo

        dynamo.reset()
        with subject.context(), dynamo.GivenUp() as given_up:
            call, _ = subject.compile()
            for _ in range(3):
                call()
            found["graphs"] = dynamo.captures()
            told = [*dynamo.graph_breaks(), *given_up.frames()]
            found["reasons"] = [msgspec.to_builtins(each) for each in told]
            found["share"] = capture.share(subject)
    return found


def as_given(cell: Cell, subject: Subject) -> dict[str, object]:
    """Graphs in eager, as the user compiles it, and in eager after a call of a check."""
    from torchcompile_suite.launch.inspect import dynamo

    def graphs(call: Call) -> int:
        dynamo.reset()
        call()
        return dynamo.captures()

    given = original.as_given(subject.module)
    assert given is not None
    with subject.context():
        subject.cell = msgspec.structs.replace(cell, way="as-given")
        eager = subject.eager()
        before = graphs(subject.eager)
        call, _ = subject.compile()
        compiled = graphs(call)
        checked = given.only_in(call)
        return {
            "original": before,
            "graphs": compiled,
            "same": bool((checked() == eager).all()),
            "after": graphs(subject.eager),
        }


def fails(name: str) -> str:
    """What is said of a model that has crashed in the turns."""
    parsed = target.parse(f"{FILE}:{name}")
    assert isinstance(parsed, target.Target)
    build.register(parsed)
    crash = Outcome(Status.CRASH, "while in turns")
    return foreign.explained(Cell(parsed.name, 1, "default"), crash, "turns").reason


folder, *factories = sys.argv[1:]  # loading a file takes them away
os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
answer: dict[str, object] = {}
for factory in factories:
    try:
        answer[factory] = fails(factory) if factory == "limited" else learn(factory)
    except Exception as error:
        answer[factory] = f"{type(error).__name__}: {error}"
Path(folder, "answer.json").write_text(json.dumps(answer))

"""The reason of a failed launch: one line that names the fault, not the wrapper around it."""

from __future__ import annotations

import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite.cell import Status
from torchcompile_suite.launch import failures

LOWERING = """backend='inductor' raised:
LoweringException: AttributeError: 'PermuteView' object has no attribute 'freeze_layout'
  target: aten.convolution.default
  args[0]: TensorBox("""

CPP = """backend='inductor' raised:
CppCompileError: C++ compile error

Command:
g++ {tmp}/torchinductor_me/x.cpp -o x.so

Output:
{tmp}/torchinductor_me/x.cpp:3:10: fatal error: omp.h: No such file or directory
compilation terminated."""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            LOWERING,
            "backend='inductor' raised: LoweringException: AttributeError: "
            "'PermuteView' object has no attribute 'freeze_layout'",
        ),
        (
            CPP.format(tmp=tempfile.gettempdir()),
            "backend='inductor' raised: CppCompileError: C++ compile error "
            ".../torchinductor_me/x.cpp:3:10: fatal error: omp.h: No such file or directory",
        ),
        ("one\ntwo", "one"),
        ("", "no message"),
        ("nothing follows:", "nothing follows:"),
    ],
)
def test_the_lines_that_name_the_fault_are_taken(text: str, line: str) -> None:
    assert failures.one_line(text) == line


@given(st.text())
def test_one_line_is_one_bounded_line(text: str) -> None:
    line = failures.one_line(text)
    assert 0 < len(line) <= failures.REASON_LENGTH
    assert len(line.splitlines()) == 1


def test_the_first_cause_decides_the_outcome() -> None:
    error = RuntimeError("backend='inductor' raised:")
    error.__cause__ = MemoryError()
    assert failures.outcome(error, "compile").status is Status.OUT_OF_MEMORY


DYNAMO = """RuntimeError when making fake tensor call
  Explanation: Dynamo failed to run FX node: got RuntimeError('no shape to give')

from user code:
   File "/home/me/model.py", line 60, in forward
    return unshaped(x + 1)
  File "/home/me/env/lib/python3.11/site-packages/torch/_ops.py", line 877, in __call__
    return self._opoverload(*args, **kwargs)
"""


def test_dynamos_error_names_the_cause_and_the_users_line() -> None:
    error = RuntimeError(DYNAMO)
    error.__cause__ = ValueError("no shape to give")
    assert failures.outcome(error, "compile").reason == (
        "while in compile: RuntimeError: RuntimeError when making fake tensor call: "
        "ValueError: no shape to give (model.py:60)"
    )


def test_an_unrelated_earlier_error_is_not_the_cause() -> None:
    error = RuntimeError("it failed")
    error.__context__ = KeyError("a look-up before")
    assert failures.outcome(error, "eager").reason == "while in eager: RuntimeError: it failed"

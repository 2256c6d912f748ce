"""The reason of a failed launch: one line that names the fault, not the wrapper around it."""

from __future__ import annotations

import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite.host import places
from torchcompile_suite.launch import failures
from torchcompile_suite.measurement import Status

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


def test_a_home_folder_that_is_the_root_leaves_paths_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose user has no folder of its own."""
    monkeypatch.setenv("HOME", "/")
    assert places.without("break in torch/nn/x.py", "torch") == "break in .../nn/x.py"


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


@pytest.mark.parametrize(
    ("text", "stage", "status"),
    [
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "eager",
         Status.OUT_OF_MEMORY),
        ("cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "turns", Status.OUT_OF_MEMORY),
        ("CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", "turns", Status.OUT_OF_MEMORY),
        ("cuFFT error: CUFFT_ALLOC_FAILED", "turns", Status.OUT_OF_MEMORY),
        ("MIOpen Error: miopenStatusAllocFailed", "turns", Status.OUT_OF_MEMORY),
        ("HIP error: invalid device function", "eager", Status.UNSUPPORTED),
        ("Adam does not support sparse gradients, please consider SparseAdam instead", "eager",
         Status.UNSUPPORTED),
        ("optimizer got an empty parameter list", "build", Status.UNSUPPORTED),
        ("Triton Error [CUDA]: CUDA_ERROR_OUT_OF_MEMORY", "compile", Status.OUT_OF_MEMORY),
        ("CUDA error: no kernel image is available for execution on the device", "eager",
         Status.UNSUPPORTED),
        ("Found Tesla P100 which is too old to be supported by the triton GPU compiler", "compile",
         Status.UNSUPPORTED),
        ("CUDA error: operation not permitted when stream is capturing", "warm-up",
         Status.COMPILE_ERROR),
        ("CUDA error: operation failed due to a previous error during capture", "turns",
         Status.COMPILE_ERROR),
        ("Cannot call CUDAGeneratorImpl::current_seed during CUDA graph capture", "warm-up",
         Status.COMPILE_ERROR),
        ("Error: accessing tensor output of CUDAGraphs that has been overwritten", "accuracy",
         Status.COMPILE_ERROR),
        ("CUDA error: operation not permitted when stream is capturing", "eager", Status.CRASH),
        ("CUDA error: an illegal memory access was encountered", "turns", Status.CRASH),
    ],
)  # fmt: skip
def test_the_errors_of_a_gpu(text: str, stage: str, status: Status) -> None:
    outcome = failures.outcome(RuntimeError(text), stage)
    assert outcome.status is status
    assert text[:40] in outcome.reason


@pytest.mark.parametrize(
    "text",
    [
        "CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
        "C++ compile error\n model.cpp:3:10: fatal error: cuda_runtime_api.h: No such file or",
        "/usr/bin/ld: cannot find -lcudart: No such file or directory",
    ],
)
def test_a_package_without_the_cuda_toolkit_names_the_remedy(text: str) -> None:
    outcome = failures.outcome(OSError(text), "compile")
    assert outcome.status is Status.COMPILE_ERROR
    assert "set CUDA_HOME" in outcome.reason


def test_no_device_is_not_settled() -> None:
    outcome = failures.outcome(failures.Unusable("finds no usable GPU: no driver"), "prepare")
    assert (outcome.status, outcome.settled) == (Status.CRASH, False)
    assert outcome.reason == "finds no usable GPU: no driver"

"""Turns an error in a launch into an `Outcome` with a reason in one line."""

from __future__ import annotations

import re
import tempfile
import traceback
from pathlib import Path

from ..host.places import in_packages, without
from ..measurement import Outcome, Status
from ..workloads import WorkloadError

REASON_LENGTH = 300
OWN_LENGTH = 1000

# cuBLAS, cuDNN and their like do not say more than the name of their status.
_OUT_OF_MEMORY = re.compile(
    r"out of memory|can't allocate memory|not enough memory|Cannot allocate memory"
    r"|ALLOC(ATION)?_FAILED|StatusAllocFailed|ERROR_OUT_OF_MEMORY",
    re.IGNORECASE,
)
# A CUDA graph is captured by the second or third call, after the stage "compile".
_CAPTURE = re.compile(
    r"\bcapturing\b|\buncaptured\b|\bgraph capture\b|error during capture|StreamCapture"
    r"|tensor output of CUDAGraphs",
    re.IGNORECASE,
)
# In these stages nothing of the compiler runs.
_EAGER = ("prepare", "build", "eager")
_COMPILER_ERROR = re.compile(r":\d+: (fatal )?error: ")


class Unsupported(Exception):
    """This release or device cannot do what the cell asks for. The message says what is missing."""


class Unusable(Exception):
    """There is no device to measure on now. The message says why, in torch's words."""


class WrongResult(Exception):
    """The compiled output differs from eager's. The message says by how much."""


class Unsettled(Exception):
    """The calls have no steady state. The message says what differs from call to call."""


def said(error: BaseException) -> str:
    """What an error says, with its type, in one line (`one_line`)."""
    return one_line(f"{type(error).__name__}: {error}")


def said_where(error: BaseException) -> str:
    """`said`, and the line of the user's code that raised it, if there is one."""
    place = where(error)
    return f"{said(error)} ({place})" if place else said(error)


def one_line(text: str, length: int = REASON_LENGTH) -> str:
    """The first line of a text, without this machine's paths, at most ``length`` characters.

    If a line ends with a colon, as torch's "backend='inductor' raised:" does, the next line belongs
    to it. The first "error:" line of a C++ compiler is added.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    count = 1
    while count < len(lines) and lines[count - 1].endswith(":"):
        count += 1
    kept = lines[:count] + [line for line in lines[count:] if _COMPILER_ERROR.search(line)][:1]
    line = " ".join(kept) or "no message"
    return _shortened(without(line, str(Path.cwd()), tempfile.gettempdir()), length)


def _shortened(line: str, length: int = REASON_LENGTH) -> str:
    return line if len(line) <= length else line[: length - 3] + "..."


# Errors of ours. Their words end with a remedy.
_OWN: dict[type[Exception], Status] = {
    Unsupported: Status.UNSUPPORTED,
    WorkloadError: Status.UNSUPPORTED,
    Unsettled: Status.UNSETTLED,
    WrongResult: Status.WRONG_RESULT,
    # A crash and not unsupported: another driver mends it, so the next run has to try again.
    Unusable: Status.CRASH,
}


# What tells an error, in any case, and its outcome.
_KNOWN = [
    (re.compile(pattern, re.IGNORECASE), status, reason)
    for pattern, status, reason in (
        (
            "No space left on device|Disk quota exceeded",
            Status.CRASH,
            "the disk is full (while in {stage}); free some space and run again",
        ),
        (
            r"InvalidCxxCompiler|No working C\+\+ compiler",
            Status.COMPILE_ERROR,
            "no working C++ compiler; install one (on Debian: apt-get install g++) or set CXX",
        ),
        (
            r"CUDA_HOME environment variable is not set|CUDA was not found on the system"
            r"|cuda(_runtime)?(_api)?\.h: No such file|cannot find -lcuda",
            Status.COMPILE_ERROR,
            "no CUDA toolkit (while in {stage}); install one with nvcc and set CUDA_HOME",
        ),
        # The suite's optimizer, and not the model.
        (
            "optimizer got an empty parameter list|does not support sparse gradients",
            Status.UNSUPPORTED,
            "a training step is AdamW's: {error}",
        ),
        # The device has no code for its architecture, or Triton generates none for it.
        (
            "no kernel image is available|HIP error: invalid device function"
            "|too old to be supported by the triton GPU compiler",
            Status.UNSUPPORTED,
            "while in {stage}: {error}",
        ),
        (
            "0 active drivers",
            Status.UNSUPPORTED,
            "the model has a Triton kernel of its own, which needs a GPU; use --device cuda where "
            "there is one",
        ),
    )
]


def outcome(error: BaseException, stage: str) -> Outcome:
    """The outcome of a launch in which the error was raised.

    ``stage``: the stage of the launch, such as "build" or "eager". In the stage "compile", all
    errors except those about memory, disk and architecture are compile errors.
    """
    links = chain(error)
    text = "\n".join(f"{type(link).__name__}: {link}" for link in links)
    for kind, status in _OWN.items():
        if isinstance(error, kind):
            return Outcome(status, one_line(str(error), OWN_LENGTH))
    if is_out_of_memory(error):
        return Outcome(Status.OUT_OF_MEMORY, one_line(f"while in {stage}: {error}"))
    for pattern, status, reason in _KNOWN:
        if pattern.search(text):
            return Outcome(status, one_line(reason.format(stage=stage, error=error)))
    captured = _CAPTURE.search(text) is not None and stage not in _EAGER
    status = Status.COMPILE_ERROR if stage == "compile" or captured else Status.CRASH
    reason = one_line(f"while in {stage}: {type(error).__name__}: {error}")
    # In newer releases, Dynamo's message begins with the kind of the error. The message of the
    # user's own code follows later.
    cause, cause_line = links[-1], one_line(str(links[-1]))
    if cause_line not in reason and str(cause) in str(error):
        reason = _shortened(f"{reason}: {type(cause).__name__}: {cause_line}")
    place = _user_code(str(error))
    return Outcome(status, f"{reason} ({place})" if place else reason)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the error, or one of its causes, is about memory."""
    return any(
        isinstance(link, MemoryError) or _OUT_OF_MEMORY.search(f"{type(link).__name__}: {link}")
        for link in chain(error)
    )


def _user_code(text: str) -> str:
    """``file.py:line`` of the user's innermost line in Dynamo's message, or an empty string."""
    frames = re.findall(r'File "(.+)", line (\d+)', text.partition("from user code:")[2])
    own = [frame for frame in frames if not in_packages(frame[0])]
    return f"{Path(own[-1][0]).name}:{own[-1][1]}" if own else ""


def where(error: BaseException) -> str:
    """``file.py:line`` of the innermost frame in the user's code, or an empty string."""
    frames = traceback.extract_tb(error.__traceback__)
    own = str(Path(__file__).parents[1])
    for frame in reversed(frames):
        if not in_packages(frame.filename) and not frame.filename.startswith((own, "<")):
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return ""


def chain(error: BaseException | None) -> list[BaseException]:
    """The error and its causes, down to the first one: torch wraps errors of the user's code."""
    errors: list[BaseException] = []
    while error is not None and len(errors) < 10:
        errors.append(error)
        error = error.__cause__ or error.__context__
    return errors

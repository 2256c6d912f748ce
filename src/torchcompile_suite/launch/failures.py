"""Turn whatever a launch raises into an `Outcome` with a reason in one line."""

from __future__ import annotations

import errno
import re
import tempfile
import traceback
from pathlib import Path

from ..cell import Outcome, Status
from ..workloads import WorkloadError

REASON_LENGTH = 300

_OUT_OF_MEMORY = re.compile(
    r"out of memory|can't allocate memory|not enough memory|Cannot allocate memory", re.IGNORECASE
)
_NO_COMPILER = re.compile(r"InvalidCxxCompiler|No working C\+\+ compiler", re.IGNORECASE)
_COMPILER_SAYS = re.compile(r":\d+: (fatal )?error: ")


class Unsupported(Exception):
    """This release or device has no such thing; the message says which lacks what."""


class WrongResult(Exception):
    """The compiled output differs from eager's; the message says by how much."""


def one_line(text: str) -> str:
    """The first telling line of a text, without this machine's paths, at most 300 characters.

    A line that ends in a colon only announces the next one, as torch's "backend='inductor'
    raised:" does: both are taken, and a compiler's first "error:" line where there is one.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = 1
    while told < len(lines) and lines[told - 1].endswith(":"):
        told += 1
    telling = lines[:told] + [line for line in lines[told:] if _COMPILER_SAYS.search(line)][:1]
    line = " ".join(telling) or "no message"
    for place in (str(Path.cwd()), tempfile.gettempdir(), str(Path.home())):
        if len(place) > 1:
            line = line.replace(place, "...")
    return _shortened(line)


def _shortened(line: str) -> str:
    return line if len(line) <= REASON_LENGTH else line[: REASON_LENGTH - 3] + "..."


def outcome(error: BaseException, stage: str) -> Outcome:
    """What an exception raised in that stage of a launch means.

    ``stage`` is one of measure's (import, build, eager, compile, ...): any error while compiling
    that is not about memory is a compile error.
    """
    chain = _chain(error)
    text = "\n".join(f"{type(each).__name__}: {each}" for each in chain)
    if isinstance(error, (Unsupported, WorkloadError)):
        return Outcome(Status.UNSUPPORTED, one_line(str(error)))
    if isinstance(error, WrongResult):
        return Outcome(Status.WRONG_RESULT, one_line(str(error)))
    if any(isinstance(each, MemoryError) for each in chain) or _OUT_OF_MEMORY.search(text):
        return Outcome(Status.OUT_OF_MEMORY, one_line(f"while in {stage}: {error}"))
    if any(map(_disk_full, chain)) or "No space left on device" in text:
        return Outcome(
            Status.CRASH,
            f"the disk is full (while in {stage}); free some space and run again",
        )
    if _NO_COMPILER.search(text):
        return Outcome(
            Status.COMPILE_ERROR,
            "no working C++ compiler; install one (on Debian: apt-get install g++) or set CXX",
        )
    status = Status.COMPILE_ERROR if stage == "compile" else Status.CRASH
    said = one_line(f"while in {stage}: {type(error).__name__}: {error}")
    # Newer releases of Dynamo begin with what kind of error it is; what the user's own code said
    # comes further down in the message.
    cause, told = chain[-1], one_line(str(chain[-1]))
    if told not in said and str(cause) in str(error):
        said = _shortened(f"{said}: {type(cause).__name__}: {told}")
    place = _user_code(str(error))
    return Outcome(status, f"{said} ({place})" if place else said)


def _user_code(text: str) -> str:
    """``file.py:line`` of the innermost of the user's lines that Dynamo's message names, if any."""
    frames = re.findall(r'File "(.+)", line (\d+)', text.partition("from user code:")[2])
    own = [frame for frame in frames if "site-packages" not in frame[0]]
    return f"{Path(own[-1][0]).name}:{own[-1][1]}" if own else ""


def where(error: BaseException) -> str:
    """``file.py:line`` where the error was raised in code that is no library's, or nothing."""
    frames = traceback.extract_tb(error.__traceback__)
    own = str(Path(__file__).parents[1])
    for frame in reversed(frames):
        if "site-packages" not in frame.filename and not frame.filename.startswith((own, "<")):
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return ""


def _disk_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _chain(error: BaseException | None) -> list[BaseException]:
    """The error and what it came from, to the first cause: torch wraps what matters."""
    errors: list[BaseException] = []
    while error is not None and len(errors) < 10:
        errors.append(error)
        error = error.__cause__ or error.__context__
    return errors

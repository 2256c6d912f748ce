"""Turn whatever a launch raises into an `Outcome` with a reason in one line."""

from __future__ import annotations

import errno
import re
import tempfile
from pathlib import Path

from ..cell import Outcome, Status
from ..workloads import WorkloadError

REASON_LENGTH = 300

_OUT_OF_MEMORY = re.compile(
    r"out of memory|can't allocate memory|not enough memory|Cannot allocate memory", re.IGNORECASE
)
_NO_COMPILER = re.compile(r"InvalidCxxCompiler|No working C\+\+ compiler", re.IGNORECASE)


class Unsupported(Exception):
    """This release or device has no such thing; the message says which lacks what."""


class WrongResult(Exception):
    """The compiled output differs from eager's; the message says by how much."""


def one_line(text: str) -> str:
    """The first telling line of a text, without this machine's paths, at most 300 characters."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = lines[0] if lines else "no message"
    for place in (str(Path.cwd()), tempfile.gettempdir(), str(Path.home())):
        if len(place) > 1:
            line = line.replace(place, "...")
    return line if len(line) <= REASON_LENGTH else line[: REASON_LENGTH - 3] + "..."


def outcome(error: BaseException, stage: str) -> Outcome:
    """What an exception raised in that stage of a launch means.

    ``stage`` is one of measure's (import, build, eager, compile, ...): any error while compiling
    that is not about memory is a compile error.
    """
    text = _chain(error)
    if isinstance(error, (Unsupported, WorkloadError)):
        return Outcome(Status.UNSUPPORTED, one_line(str(error)))
    if isinstance(error, WrongResult):
        return Outcome(Status.WRONG_RESULT, one_line(str(error)))
    if isinstance(error, MemoryError) or _OUT_OF_MEMORY.search(text):
        return Outcome(Status.OUT_OF_MEMORY, one_line(f"while in {stage}: {error}"))
    if _disk_full(error) or "No space left on device" in text:
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
    return Outcome(status, one_line(f"while in {stage}: {type(error).__name__}: {error}"))


def _disk_full(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__ or error.__context__
    return False


def _chain(error: BaseException | None) -> str:
    """All messages from the error to its first cause: torch wraps what matters."""
    parts: list[str] = []
    while error is not None and len(parts) < 10:
        parts.append(f"{type(error).__name__}: {error}")
        error = error.__cause__ or error.__context__
    return "\n".join(parts)

"""Runs an ASV command as the user would."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from ..errors import SuiteError


class AsvError(SuiteError):
    """The command failed, or there is no place to run it in."""


def run(*arguments: str, accept: tuple[int, ...] = (0,)) -> None:
    """``asv ARGUMENTS`` in the current folder; raises AsvError on any other exit status.

    Of ``asv run``, 2 means that some cells failed: their outcome is recorded.
    """
    if not Path("asv.conf.json").is_file():
        raise AsvError("no asv.conf.json here; run this in a clone of torchcompile-suite")
    command = [sys.executable, "-m", "asv", *arguments]
    # Who is told to end while ASV works would leave it working.
    before = signal.signal(signal.SIGTERM, _end)
    try:
        status = subprocess.run(command).returncode
    finally:
        signal.signal(signal.SIGTERM, before)
    if status not in accept:
        raise AsvError(f"asv {arguments[0]} ended with status {status}; its own words are above")


def _end(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)

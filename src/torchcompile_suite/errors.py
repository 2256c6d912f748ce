"""The error that the user can fix, and what raises it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping


class SuiteError(Exception):
    """The message is one line with the fault and the remedy. It is shown without a traceback."""


def cannot_write(error: OSError, place: object, remedy: str) -> SuiteError:
    """What to raise for ``error``. ``place`` is named if the error names no file."""
    return SuiteError(f"cannot write {error.filename or place}: {error.strerror}; {remedy}")


def similar(text: str, known: Iterable[str]) -> str:
    """Up to three of the known names that are like the text, to end a message; empty if none is."""
    found = difflib.get_close_matches(text, known, 3, 0.5)
    return f"; similar: {'; '.join(found)}" if found else ""


def refuse(options: Mapping[str, object], why: str) -> None:
    """Raise SuiteError if any of the options, by name, is given: they do not fit the command."""
    if given := ", ".join(name for name, value in options.items() if value):
        raise SuiteError(f"{why}: leave {given} out")

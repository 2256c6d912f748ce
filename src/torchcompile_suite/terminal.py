"""How our commands talk: tables that lose no column, and errors in one line."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from .errors import SuiteError


def console(*, no_color: bool = False) -> Console:
    """Standard output: as wide as the terminal, or wide enough for any table when there is none."""
    made = Console(no_color=no_color or None)
    return made if made.is_terminal else Console(width=140, no_color=no_color or None)


def printable(text: str) -> str:
    """Text of a result file without what a terminal would obey: escapes, bells, line breaks."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def say(out: Console, text: str, style: str = "") -> None:
    """One line as it is: nothing in it is markup, and it is not broken at the screen's edge."""
    out.print(printable(text), style=style, markup=False, highlight=False, soft_wrap=True)


class Progress:
    """Lines on standard error, each after the seconds since the start."""

    def __init__(self, *, quiet: bool = False, no_color: bool | None = None) -> None:
        """The clock starts now."""
        self.console = Console(stderr=True, no_color=no_color, quiet=quiet, highlight=False)
        self._start = time.monotonic()

    def say(self, text: str) -> None:
        """A line that stays."""
        say(self.console, f"{time.monotonic() - self._start:5.0f} s  {text}")


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what users can mend into one line on stderr and exit status 1."""
    try:
        yield
    except SuiteError as error:
        typer.echo(printable(f"torchcompile-suite: {error}"), err=True)
        raise typer.Exit(1) from None

"""How our commands talk: tables that lose no column, and errors in one line."""

from __future__ import annotations

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


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what users can mend into one line on stderr and exit status 1."""
    try:
        yield
    except SuiteError as error:
        typer.echo(printable(f"torchcompile-suite: {error}"), err=True)
        raise typer.Exit(1) from None

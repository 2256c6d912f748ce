"""The commands' output: tables that lose no column, and errors in one line."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..errors import SuiteError
from .sheets import Sheet
from .wording import printable


def console(*, no_color: bool = False) -> Console:
    """Standard output: as wide as the terminal, or wide enough for any table when there is none."""
    made = Console(no_color=no_color or None)
    return made if made.is_terminal else Console(width=140, no_color=no_color or None)


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


def draw(sheet: Sheet) -> Table:
    """For the terminal."""
    made = Table(header_style="bold")
    for name in sheet.columns:
        made.add_column(name, justify="right" if name in sheet.numbers else "left")
    for name, column in zip(sheet.columns, made.columns, strict=True):
        column.no_wrap = name in ("model", "mode")
    for line in sheet.lines:
        made.add_row(*(Text(printable(cell)) for cell in line))
    return made

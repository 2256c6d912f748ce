"""Output of the commands: lines, tables that lose no column, and tables in Markdown."""

from __future__ import annotations

import time

from rich.console import Console
from rich.table import Table
from rich.text import Text
from tabulate import tabulate

from .sheets import Sheet
from .wording import printable


def console(*, no_color: bool = False) -> Console:
    """Standard output: as wide as the terminal, or 140 columns if it is no terminal."""
    out = Console(no_color=no_color or None)
    return out if out.is_terminal else Console(width=140, no_color=no_color or None)


def say(out: Console, text: str, style: str = "") -> None:
    """Print one line unchanged: no markup, no line breaks at the edge of the screen."""
    out.print(printable(text), style=style, markup=False, highlight=False, soft_wrap=True)


class Progress:
    """Lines on standard error, each with the seconds since the start."""

    def __init__(self, *, quiet: bool = False, no_color: bool | None = None) -> None:
        """Start the clock."""
        self.console = Console(stderr=True, no_color=no_color, quiet=quiet, highlight=False)
        self._start = time.monotonic()

    def say(self, text: str) -> None:
        """Print a line."""
        say(self.console, f"{time.monotonic() - self._start:5.0f} s  {text}")


def draw(sheet: Sheet) -> Table:
    """The sheet as a table for the terminal."""
    table = Table(header_style="bold")
    for name in sheet.columns:
        table.add_column(
            name,
            justify="right" if name in sheet.numbers else "left",
            no_wrap=name in ("model", "mode"),
        )
    for line in sheet.lines:
        table.add_row(*(Text(printable(cell)) for cell in line))
    return table


def markdown(sheet: Sheet) -> str:
    """The sheet as a GitHub table."""
    align = ["right" if name in sheet.numbers else "left" for name in sheet.columns]
    return tabulate(
        [[escaped(cell) for cell in line] for line in sheet.lines],
        headers=sheet.columns,
        tablefmt="github",
        colalign=align if sheet.lines else None,
        disable_numparse=True,
    )


def escaped(words: str) -> str:
    """The words with everything escaped that would end a cell or start markup."""
    return "".join("\\" + c if c in r"\`*_{}[]<>|#!" else c for c in printable(words))

"""Output of the commands: lines, tables that lose no column; tables in Markdown and HTML."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

import click

from .sheets import Sheet
from .wording import printable

# Columns that tell which cell a line is of: never broken.
_WHOLE = ("model", "mode")
# The frame of a table for a stream that has no such characters.
_PLAIN = str.maketrans("━─┃│┏┳┓┡╇┩└┴┘", "--||+++++++++")
# A longer word may be broken at the edge of a column.
_LONGEST_WORD = 24


class Output:
    """A stream for lines and tables.

    ``width``: in columns; that of the terminal, or 140 if the stream is none.
    """

    def __init__(self, *, err: bool = False, no_color: bool = False) -> None:
        """Standard output, or standard error. NO_COLOR in the environment forbids colors, too."""
        self._err = err
        self.is_terminal = (sys.stderr if err else sys.stdout).isatty()
        self.width = shutil.get_terminal_size().columns if self.is_terminal else 140
        shows = self.is_terminal and os.environ.get("TERM") != "dumb"
        wanted = shows or bool(os.environ.get("FORCE_COLOR"))
        self._color = wanted and not (no_color or os.environ.get("NO_COLOR"))

    def say(self, text: str = "", *, newline: bool = True, **style: Any) -> None:
        """Print one line, without what would control a terminal. ``style``: see `click.style`."""
        words = printable(text)
        shown = click.style(words, **style) if style else words
        click.echo(shown, nl=newline, err=self._err, color=self._color)

    def draw(self, sheet: Sheet) -> None:
        """Print the sheet as a table."""
        lines = [[printable(cell) for cell in line] for line in sheet.lines]
        widths = _widths(sheet.columns, lines, self.width)
        right = [name in sheet.numbers for name in sheet.columns]
        drawn = [
            _rule(("┏", "┳", "┓"), "━", widths),
            *_row("┃", sheet.columns, widths, right),
            _rule(("┡", "╇", "┩"), "━", widths),
            *(text for line in lines for text in _row("│", line, widths, right)),
            _rule(("└", "┴", "┘"), "─", widths),
        ]
        text = "\n".join(drawn)
        encoding = (sys.stderr if self._err else sys.stdout).encoding or "utf-8"
        if not encoding.lower().startswith("utf"):
            text = text.translate(_PLAIN)
        click.echo(text, err=self._err)


class Progress:
    """Lines on standard error, each with the seconds since the start."""

    def __init__(self, *, quiet: bool = False, no_color: bool = False) -> None:
        """Start the clock."""
        self._out = Output(err=True, no_color=no_color)
        self._quiet = quiet
        self._start = time.monotonic()

    def say(self, text: str) -> None:
        """Print a line."""
        if not self._quiet:
            self.clear()
            self._out.say(f"{time.monotonic() - self._start:5.0f} s  {text}")

    def status(self, text: str) -> None:
        """Show on a terminal what is being done, until the next line."""
        if self._out.is_terminal and not self._quiet:
            self.clear()
            self._out.say(text[: self._out.width - 1], newline=False)

    def clear(self) -> None:
        """Remove what `status` shows."""
        if self._out.is_terminal and not self._quiet:
            click.echo("\r\x1b[K", nl=False, err=True, color=True)


def _widths(columns: list[str], lines: list[list[str]], width: int) -> list[int]:
    """The width of each column: the widest become narrower until the table fits. A heading breaks
    before a value does.
    """
    texts = [[name, *(line[at] for line in lines)] for at, name in enumerate(columns)]
    widths = [max(map(len, cells)) for cells in texts]
    least = [max(len(word) for cell in cells for word in [*cell.split(), ""]) for cells in texts]
    least = [
        own if name in _WHOLE else max(1, min(word, _LONGEST_WORD))
        for name, own, word in zip(columns, widths, least, strict=True)
    ]
    whole = [max(own, *map(len, cells[1:]), 1) for own, cells in zip(least, texts, strict=True)]
    for floor in (whole, least):
        # Between two columns, and at both edges: a line, and a space at either side of each text.
        while sum(widths) + 3 * len(widths) + 1 > width:
            broader = [at for at, own in enumerate(widths) if own > floor[at]]
            if not broader:
                break
            widths[max(broader, key=widths.__getitem__)] -= 1
    return [max(1, own) for own in widths]


def _rule(corners: tuple[str, str, str], line: str, widths: Sequence[int]) -> str:
    left, between, right = corners
    return left + between.join(line * (width + 2) for width in widths) + right


def _row(
    edge: str, cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]
) -> list[str]:
    """The lines of a row, of which each has a part of each cell."""
    broken = [textwrap.wrap(cell, width) or [""] for cell, width in zip(cells, widths, strict=True)]
    return [
        f"{edge} {f' {edge} '.join(_aligned(line, widths, right))} {edge}"
        for line in itertools.zip_longest(*broken, fillvalue="")
    ]


def _aligned(cells: Iterable[str], widths: Iterable[int], right: Iterable[bool]) -> Iterator[str]:
    for cell, width, to_right in zip(cells, widths, right, strict=True):
        yield cell.rjust(width) if to_right else cell.ljust(width)


def markdown(sheet: Sheet) -> str:
    """The sheet as a GitHub table."""
    rows = [[escaped(cell).strip() for cell in line] for line in sheet.lines]
    right = [name in sheet.numbers for name in sheet.columns]
    widths = [
        max(len(name) + 2, *(len(row[at]) for row in rows), 0)
        for at, name in enumerate(sheet.columns)
    ]
    heading, *lines = (" | ".join(_aligned(row, widths, right)) for row in [sheet.columns, *rows])
    rule = "|".join("-" * (width + 2) for width in widths)
    return "\n".join([f"| {heading} |", f"|{rule}|", *(f"| {line} |" for line in lines)])


def html(texts: Iterable[str], sheets: Iterable[Sheet]) -> str:
    """The texts, and the sheets that have lines, as HTML. A wide table scrolls by itself."""
    shown = [f"<p>{escape(printable(text))}</p>" for text in texts]
    for sheet in filter(lambda each: each.lines, sheets):
        lines = "".join(_html_row("td", line, sheet) for line in sheet.lines)
        shown.append(
            '<div class="wide" style="overflow-x: auto" role="region" aria-label="Table" '
            f'tabindex="0"><table><thead>{_html_row("th", sheet.columns, sheet)}</thead>'
            f"<tbody>{lines}</tbody></table></div>"
        )
    # A dollar begins no formula: its markup may have links.
    return f'<div class="tex2jax_ignore mathjax_ignore">{"".join(shown)}</div>'


def _html_row(tag: str, cells: Iterable[str], sheet: Sheet) -> str:
    sides = ("right" if name in sheet.numbers else "left" for name in sheet.columns)
    return "<tr>{}</tr>".format(
        "".join(
            f'<{tag} style="text-align: {side}">{escape(printable(cell))}</{tag}>'
            for cell, side in zip(cells, sides, strict=True)
        )
    )


def escaped(words: str) -> str:
    """The words with everything escaped that would end a cell, start markup or mention somebody.

    GitHub looks for mentions in what is rendered: a space without width ends them.
    """
    text = "".join("\\" + c if c in r"\`*_{}[]<>|#!" else c for c in printable(words))
    return text.replace("@", "@&#8203;")

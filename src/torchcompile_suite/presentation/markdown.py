"""A table as Markdown."""

from __future__ import annotations

from tabulate import tabulate

from .sheets import Sheet
from .wording import printable


def markdown(sheet: Sheet) -> str:
    """The sheet as a GitHub table."""
    align = ["right" if name in sheet.numbers else "left" for name in sheet.columns]
    return tabulate(
        [[text(cell) for cell in line] for line in sheet.lines],
        headers=sheet.columns,
        tablefmt="github",
        colalign=align if sheet.lines else None,
        disable_numparse=True,
    )


def text(words: str) -> str:
    """The words with everything escaped that would end a cell or start markup."""
    return "".join("\\" + c if c in r"\`*_{}[]<>|#!" else c for c in printable(words))

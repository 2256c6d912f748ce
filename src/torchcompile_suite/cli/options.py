"""What commands have in common: how they end, their options, and completion in a shell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..errors import SuiteError
from ..presentation.wording import printable


class Commands(TyperGroup):
    """Commands of which each ends with one line for a fault that the user can mend."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except SuiteError as error:
            typer.echo(printable(f"torchcompile-suite: {error}"), err=True)
            raise typer.Exit(1) from None


class Format(str, Enum):
    """How a report is written."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"


MachineName = Annotated[
    str | None,
    typer.Option(
        "--machine", help="A folder of results/; else this machine, or the most complete one."
    ),
]
Form = Annotated[Format, typer.Option("--format", help="How to write it.")]
Installed = Annotated[
    str | None,
    typer.Option(
        "--release", help="A release to install, such as v2.9. Default: the torch of this Python."
    ),
]
Releases = Annotated[
    list[str] | None,
    typer.Argument(help="Such as v2.4 v2.9; else the newest patch of every minor release."),
]
Rounds = Annotated[
    int | None,
    typer.Option("--rounds", min=1, help="Measure so many rounds, whatever they show."),
]
NoColor = Annotated[bool, typer.Option("--no-color", help="Print no colors, like NO_COLOR=1.")]


def completing(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Shell completion by these names; by none where they cannot be looked up."""

    def complete(incomplete: str) -> list[str]:
        try:
            return [name for name in names() if name.startswith(incomplete)]
        except SuiteError:
            return []

    return complete

"""What commands have in common: how they end, their options, and completion in a shell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..errors import SuiteError
from ..presentation.terminal import one_line_errors


class Commands(TyperGroup):
    """Commands of which each ends with one line for a fault that the user can mend."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        with one_line_errors():
            return super().invoke(ctx)


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
NoColor = Annotated[bool, typer.Option("--no-color", help="Print no colors, like NO_COLOR=1.")]


def completing(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Shell completion by these names; by none where they cannot be looked up."""

    def complete(incomplete: str) -> list[str]:
        try:
            return [name for name in names() if name.startswith(incomplete)]
        except SuiteError:
            return []

    return complete

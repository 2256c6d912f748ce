"""Options and arguments that several commands have, and completion in a shell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

import click

from ..errors import SuiteError


class Format(str, Enum):
    """How a report is written."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"


machine_option = click.option(
    "--machine",
    "machine_name",
    help="A folder of results/; else this machine, or the most complete one.",
)
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(Format, case_sensitive=False),
    default=Format.TABLE,
    help="How to write it.",
)
installed_option = click.option(
    "--release", help="A release to install, such as v2.9. Default: the torch of this Python."
)
releases_argument = click.argument(
    "releases",
    nargs=-1,
    help="Such as v2.4 v2.9; else the newest patch of every minor release.",
)
rounds_option = click.option(
    "--rounds",
    type=click.IntRange(min=1),
    help="Measure so many rounds, whatever they show.",
)
no_color_option = click.option("--no-color", is_flag=True, help="Print no colors, like NO_COLOR=1.")


def completing(
    names: Callable[[], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Shell completion by these names; by none where they cannot be looked up."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
        try:
            return [name for name in names() if name.startswith(incomplete)]
        except SuiteError:
            return []

    return complete

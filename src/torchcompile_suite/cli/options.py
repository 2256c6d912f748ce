"""Options and arguments that several commands have, and completion in a shell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import Any

import click

from .. import targets
from ..cell import MOST_BATCH
from ..errors import SuiteError


class Format(str, Enum):
    """How a report is written."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"


class Finite(click.FloatRange):
    """A number. "nan" is in every range of click's, because each comparison with it is false."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number, if it is one."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number", param, ctx)
        return number


PATH = click.Path(path_type=Path)
"""The type of an argument or option that names a file or a folder."""
batch_sizes_option = click.option(
    "--batch-size",
    "batch_sizes",
    multiple=True,
    type=click.IntRange(min=1, max=MOST_BATCH),
    help="Repeat the option for several sizes.",
)


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


machine_option = click.option(
    "--machine",
    "machine_name",
    help="A folder of results/. Default: the one with most results; if equal, this machine.",
)
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(Format, case_sensitive=False),
    default=Format.TABLE,
    help="How to write it.",
)
target_option = click.option(
    "--target",
    "gpu",
    shell_complete=completing(targets.read),
    help="A GPU that is not here, such as cuda:sm90: only what is generated for it.",
)
# As the environment variables of the measuring processes.
threads_option = click.option(
    "--threads",
    "variables",
    type=click.IntRange(min=1),
    callback=lambda _context, _option, given: {"OMP_NUM_THREADS": str(given)} if given else {},
    help="Number of torch's threads on a CPU.",
)
installed_option = click.option(
    "--release", help="A release to install, such as v2.9. Default: the torch of this Python."
)
releases_argument = click.argument(
    "releases",
    nargs=-1,
    help="Such as v2.4 v2.9. Default: the newest patch of every minor release.",
)
rounds_option = click.option(
    "--rounds",
    type=click.IntRange(min=1),
    help="Measure exactly this many rounds. With 3 or more, a release gets up to twelve "
    "if the host moved the processors.",
)
no_color_option = click.option("--no-color", is_flag=True, help="Print no colors, like NO_COLOR=1.")


dtype_option = click.option(
    "--dtype",
    default="float32",
    help="float32; bfloat16 or float16 for an autocast region, with -weights behind it for "
    "weights and inputs in that dtype; tf32.",
)
channels_last_option = click.option(
    "--channels-last", is_flag=True, help="Lay images and weights out with the channels last."
)
device_option = click.option("--device", help="cpu or cuda. Default: cuda if there is a GPU.")
training_option = click.option("--training", is_flag=True, help="Measure a whole optimizer step.")
json_option = click.option(
    "--json",
    "json_file",
    type=PATH,
    help="Write the whole answer to this file; - is standard output.",
)
output_option = click.option(
    "--output",
    type=PATH,
    help="An empty or a new folder for graphs, IR, generated code, guards and breaks.",
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Print no progress.")

"""``torchcompile-suite open``: a compile's graphs, IR, code and guards, in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from .. import matrix, workloads
from ..cell import Cell
from ..errors import SuiteError
from ..host import machine
from ..measuring import interpreter
from ..presentation.terminal import one_line_errors
from ..releases import catalogue, environments
from ..releases.catalogue import Release


class OpenError(SuiteError):
    """The compile cannot be opened. The message says why."""


def open_cell(cell: Cell, release: Release, folder: Path) -> str:
    """Compile the cell in the release's environment and write its artefacts to ``folder``.

    The folder must be empty or missing. Returns the kinds of artefacts. Raises
    SuiteError.
    """
    if folder.exists() and any(folder.iterdir()):
        raise OpenError(f"{folder} is not empty; name another folder with --output")
    python = environments.ready(release)
    order = msgspec.json.encode({"cell": cell, "folder": str(folder.absolute())})
    answer = interpreter.ask(python, "torchcompile_suite.launch.inspect.artefacts", order)
    if answer.status:
        raise OpenError(f"{cell} on {release.version}: {answer.last_line}")
    return answer.out.decode().strip().splitlines()[-1]


def open_command(
    workload: Annotated[str, typer.Argument(help="Such as softmax_matmul.")],
    batch_size: Annotated[int, typer.Option("--batch-size", min=1)] = 1,
    mode: Annotated[str, typer.Option("--mode", help="A mode of torch.compile.")] = "default",
    release: Annotated[
        str | None, typer.Option("--release", help="Such as v2.9; else the newest.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="An empty or a new folder.")
    ] = None,
) -> None:
    """Compile a cell here; write FX graphs, IR, generated code, guards and breaks to a folder.

    The folder's index.md says which kernel came from which source line.
    Example: torchcompile-suite open softmax_matmul --mode max-autotune --release v2.4
    """
    with one_line_errors():
        workloads.get(workload)
        if mode not in matrix.COMPILED:
            raise OpenError(f"no mode {mode!r}; there are: {', '.join(matrix.COMPILED)}")
        chosen = catalogue.find(release) if release else catalogue.read()[-1]
        folder = output or Path(f"open-{workload}-{batch_size}-{mode}-{chosen.version}")
        cell = Cell(workload, batch_size, mode, device=machine.device_kind())
        kinds = open_cell(cell, chosen, folder)
        typer.echo(f"{folder}/index.md: guards, graph breaks, {kinds}")

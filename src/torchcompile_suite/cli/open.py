"""``torchcompile-suite open``: a compile's graphs, IR, code and guards, in a folder."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from .. import matrix, targets, workloads
from ..cell import Cell
from ..engine import processes
from ..engine.generation import Generator
from ..engine.processes import Environment
from ..engine.settings import Settings
from ..errors import SuiteError
from ..host import machine
from ..launch.inspect import artefacts
from ..launch.messages import Order
from ..releases import catalogue, environments
from ..releases.catalogue import Release


def open_cell(cell: Cell, release: Release, folder: Path) -> str:
    """Compile the cell in the release's environment and write its artefacts to ``folder``.

    The folder must be empty or missing. Returns the kinds of artefacts. Raises
    SuiteError.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        empty = not any(folder.iterdir())
    except OSError as error:
        raise SuiteError(
            f"{folder} cannot be written: {error.strerror}; name another folder with --output"
        ) from None
    if not empty:
        raise SuiteError(f"{folder} is not empty; name another folder with --output")
    python = environments.ready(release)
    if cell.target:
        return _write_code(cell, release, python, folder)
    order = msgspec.json.encode(artefacts.Order(cell, str(folder.absolute())))
    answer, reason = processes.asked(
        Environment(python), artefacts.MODULE, order, Settings.from_environment().launch_limit_s
    )
    written = msgspec.json.decode(answer, type=artefacts.Written) if answer else None
    if written is None or written.error:
        raise SuiteError(f"{cell} on {release.version}: {written.error if written else reason}")
    return ", ".join(written.kinds) or "no graph was compiled"


def _write_code(cell: Cell, release: Release, python: Path, folder: Path) -> str:
    """Write the code for the cell's target to ``folder``. Returns what was written, in words."""
    with closing(Generator(Environment(python), cell.target)) as generator:
        launch = generator.make(Order(cell, assemble=True, folder=str(folder.absolute())))
    if launch.generated is None:
        raise SuiteError(f"{cell} on {release.version}: {launch.outcome.reason}")
    return (
        f"code of {launch.generated.graphs} graphs, {launch.generated.total('launches')} launches"
    )


def open_command(
    workload: Annotated[str, typer.Argument(help="Such as softmax_matmul.")],
    batch_size: Annotated[int, typer.Option("--batch-size", min=1)] = 1,
    mode: Annotated[str, typer.Option("--mode", help="A mode of torch.compile.")] = "default",
    release: Annotated[
        str | None, typer.Option("--release", help="Such as v2.9; else the newest.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", help="A GPU that is not here, such as cuda:sm90: its code."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="An empty or a new folder.")
    ] = None,
) -> None:
    """Compile a cell here; write FX graphs, IR, generated code, guards and breaks to a folder.

    The folder's index.md says which kernel came from which source line.
    Examples: torchcompile-suite open softmax_matmul --mode max-autotune --release v2.4;
    torchcompile-suite open softmax_matmul --target cuda:sm90
    """
    workloads.get(workload)
    if mode not in matrix.COMPILED:
        raise SuiteError(f"no mode {mode!r}; there are: {', '.join(matrix.COMPILED)}")
    chosen = catalogue.find(release) if release else catalogue.read()[-1]
    name = f"open-{workload}-{batch_size}-{mode}-{chosen.version}"
    if target is None:
        cell = Cell(workload, batch_size, mode, device=machine.device_kind())
    else:
        cell = Cell(workload, batch_size, mode, target=targets.get(target).name)
        name += f"-{target.replace(':', '-')}"
    folder = output or Path(name)
    kinds = open_cell(cell, chosen, folder)
    also = "" if cell.target else "guards, graph breaks, "
    typer.echo(f"{folder}/index.md: {also}{kinds}")

"""``torchcompile-suite open``: a compile's graphs, IR, code and guards, in a folder."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import closing
from importlib import metadata
from pathlib import Path

import click
import msgspec

from .. import matrix, targets, workloads
from ..cell import Cell
from ..engine import processes
from ..engine.launches import Generator
from ..engine.processes import Environment
from ..engine.settings import Settings
from ..errors import SuiteError
from ..host import machine
from ..launch.inspect import artefacts
from ..launch.messages import Order
from ..releases import apart, catalogue
from ..releases.catalogue import Release


def open_cell(cell: Cell, release: Release | None, folder: Path) -> str:
    """Compile the cell and write its artefacts to ``folder``, which must be empty or missing.

    ``release``: None for the torch of this Python. Returns the kinds of artefacts. Raises
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
    python = Path(sys.executable)
    if release is not None:
        # Imported here: the package's core is enough for the torch of this Python.
        from ..releases import environments

        python = environments.ready(release)
        apart.provide(python, workloads.libraries(cell.workload))
    if cell.target:
        return _write_code(cell, _version(release), python, folder)
    order = msgspec.json.encode(artefacts.Order(cell, str(folder.absolute())))
    answer, reason = processes.asked(
        Environment(python), artefacts.MODULE, order, Settings.from_environment().launch_limit_s
    )
    written = msgspec.json.decode(answer, type=artefacts.Written) if answer else None
    if written is None or written.error:
        raise SuiteError(f"{cell} on {_version(release)}: {written.error if written else reason}")
    return ", ".join(written.kinds) or "no graph was compiled"


def _write_code(cell: Cell, version: str, python: Path, folder: Path) -> str:
    """Write the code for the cell's target to ``folder``. Returns what was written, in words."""
    with closing(Generator(Environment(python), cell.target)) as generator:
        launch = generator.make(Order(cell, assemble=True, folder=str(folder.absolute())))
    if launch.generated is None:
        raise SuiteError(f"{cell} on {version}: {launch.outcome.reason}")
    return (
        f"code of {launch.generated.graphs} graphs, {launch.generated.total('launches')} launches"
    )


def _version(release: Release | None) -> str:
    """The version of the release, or of the torch of this Python."""
    return release.version if release else metadata.version("torch").partition("+")[0]


@click.command()
@click.argument("workload", help="Such as softmax_matmul.")
@click.option("--batch-size", type=click.IntRange(min=1), default=1)
@click.option("--mode", default="default", help="A mode of torch.compile.")
@click.option("--release", help="Such as v2.9. Default: the torch of this Python, else the newest.")
@click.option("--target", help="A GPU that is not here, such as cuda:sm90: its code.")
@click.option("--output", type=click.Path(path_type=Path), help="An empty or a new folder.")
def open_command(
    workload: str,
    batch_size: int,
    mode: str,
    release: str | None,
    target: str | None,
    output: Path | None,
) -> None:
    """Compile a cell here; write FX graphs, IR, generated code, guards and breaks to a folder.

    The folder's index.md says which kernel came from which source line.
    Examples: torchcompile-suite open softmax_matmul --mode max-autotune --release v2.4;
    torchcompile-suite open softmax_matmul --target cuda:sm90
    """
    workloads.get(workload)
    if mode not in matrix.COMPILED:
        raise SuiteError(f"no mode {mode!r}; there are: {', '.join(matrix.COMPILED)}")
    chosen = catalogue.find(release) if release else None
    if chosen is None and importlib.util.find_spec("torch") is None:
        chosen = catalogue.read()[-1]
    name = f"open-{workload}-{batch_size}-{mode}-{_version(chosen)}"
    if target is None:
        cell = Cell(workload, batch_size, mode, device=machine.device_kind())
    else:
        cell = Cell(workload, batch_size, mode, target=targets.get(target).name)
        name += f"-{target.replace(':', '-')}"
    folder = output or Path(name)
    kinds = open_cell(cell, chosen, folder)
    also = "" if cell.target else "guards, graph breaks, "
    click.echo(f"{folder}/index.md: {also}{kinds}")

"""``torchcompile-suite open``: a compile's graphs, IR, code and guards, in a folder."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import click

from .. import matrix, targets
from ..engine.processes import Environment
from ..errors import SuiteError
from ..presentation.terminal import Progress
from ..releases import catalogue
from ..trial import opened
from ..trial.plan import Trial
from ..trial.run import target_variables
from .one_cell import of_one_cell
from .options import output_option, quiet_option, target_option
from .trying import torch_python


@click.command()
@of_one_cell
@click.option("--release", help="Such as v2.9. Default: the torch of this Python, else the newest.")
@target_option
@output_option
@quiet_option
def open_command(
    trial: Trial, release: str | None, gpu: str | None, output: Path | None, quiet: bool
) -> None:
    """Compile a model here; write FX graphs, IR, generated code, guards and breaks to a folder.

    The folder's index.md says which kernel came from which source line. `why --output` writes the
    same of each compiled call.

    Examples:

    torchcompile-suite open softmax_matmul --mode max-autotune --release v2.4

    torchcompile-suite open my_model.py:make --training

    torchcompile-suite open softmax_matmul --target cuda:sm90
    """
    (mode,) = trial.modes
    if mode not in matrix.COMPILED:
        raise SuiteError(f"no mode {mode!r}; there are: {', '.join(matrix.COMPILED)}")
    of = targets.get(gpu) if gpu else None
    if release is None and importlib.util.find_spec("torch") is None:
        release = f"v{catalogue.newest().version}"
    if output is not None:
        opened.empty(output)
    python = torch_python(trial, release, gpu, Progress(quiet=quiet))
    environment = Environment(python, target_variables(trial))
    cell = opened.cell_of(trial, environment, of)
    parts = ["open", cell.workload, str(cell.batch_size), mode, "training" * trial.training]
    parts += [release or "", cell.target]
    folder = output or Path(re.sub(r"[:/\\]", "-", "-".join(filter(None, parts))))
    opened.empty(folder)
    click.echo(f"{folder}/index.md: {opened.write(cell, environment, folder)}")

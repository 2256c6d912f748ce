"""``torchcompile-suite why``: where the time of a compiled call goes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ..cell import CHANNELS_LAST
from ..errors import SuiteError
from ..modes import MODES
from ..presentation import answers, terminal, why
from ..presentation.terminal import Progress, console, say
from ..releases import catalogue, environments
from ..trial import plan
from ..trial import why as trials
from ..trial.plan import Trial
from ..trial.run import python_of
from .options import Installed, NoColor, completing
from .try_model import ChannelsLast, Dtype, Inputs, JsonFile, Model, Quiet, Training, write


def why_command(
    target: Model,
    inputs: Inputs = None,
    batch_size: Annotated[int | None, typer.Option("--batch-size", min=1)] = None,
    mode: Annotated[
        str,
        typer.Option(
            "--mode", help="A mode of torch.compile.", autocompletion=completing(MODES.keys)
        ),
    ] = "default",
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            help="Another release, such as v2.8, or another mode: compare the compiled calls.",
        ),
    ] = None,
    dtype: Dtype = "float32",
    channels_last: ChannelsLast = False,
    training: Training = False,
    threads: Annotated[int | None, typer.Option(min=1, help="Number of torch's threads.")] = None,
    release: Installed = None,
    launches: Annotated[
        int, typer.Option("--launches", min=1, help="Processes, each a launch.")
    ] = trials.LAUNCHES,
    everything: Annotated[bool, typer.Option("--all", help="All lines of the table.")] = False,
    code: Annotated[
        bool, typer.Option("--code", help="How the generated code of the first line differs.")
    ] = False,
    json_file: JsonFile = None,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Why is the compiled model faster or slower? Which operators, which kernels, and how much.

    A line of the table is a group of the model's operators and the kernels that compute them, or
    several groups alike. "copy" lines bring tensors into a layout that a library wants. What is in
    no kernel follows: guards, buffers, Python.

    Works on a CPU with Inductor. Exit status: 0 answered, 1 it cannot be answered.

    Examples:

    torchcompile-suite why resnet18

    torchcompile-suite why resnet18 --mode max-autotune --against v2.8

    torchcompile-suite why my_model.py:make --training
    """
    asked = Trial(
        workload=target,
        batch_sizes=(batch_size,) if batch_size else (),
        modes=(mode,),
        allocators=plan.SETTLED,
        dtype=dtype,
        layout=CHANNELS_LAST if channels_last else "contiguous",
        training=training,
    )
    progress = Progress(quiet=quiet, no_color=no_color)
    calls = _calls(plan.asked(target, inputs or [], asked, answers.names()), release, against)
    wanted = [trials.Wanted(trial, _python(of, progress), name) for trial, of, name in calls]
    variables = {"OMP_NUM_THREADS": str(threads)} if threads else {}
    cells, found = trials.run(wanted, launches, progress.say, variables)
    names = ("eager", "compiled") if against is None else (wanted[0].name, wanted[1].name)
    if json_file is not None:
        write(json_file, why.as_json(cells, names, found))
        if str(json_file) == "-":
            return
    out = console(no_color=no_color)
    told = why.told(found, names, everything)
    for sentence in told.sentences:
        say(out, sentence, "bold")
    out.print(terminal.draw(told.sheet))
    for remedy in told.remedies:
        say(out, f"- {remedy}")
    if code:
        for line in why.code_changes(found)[: None if everything else why.MOST_CODE]:
            say(out, line)


def _calls(
    trial: Trial, release: str | None, against: str | None
) -> list[tuple[Trial, str | None, str]]:
    """The calls to compare: trial, release, and name of each. The last one is what was asked."""
    own = release or "this torch"
    if against is None:
        return [(trial, release, own)]
    if against in MODES:
        if against == trial.modes[0]:
            raise SuiteError(f"--against {against}: that is the mode itself; name another one")
        other = msgspec.structs.replace(trial, modes=(against,))
        return [(other, release, against), (trial, release, trial.modes[0])]
    catalogue.find(against)
    if against == release:
        raise SuiteError(f"--against {against}: that is the release itself; name another one")
    return [(trial, against, against), (trial, release, own)]


def _python(release: str | None, progress: Progress) -> Path:
    wanted = catalogue.find(release) if release else None
    if wanted is not None and not environments.is_ready(wanted):
        progress.say(environments.making(wanted))
    return python_of(wanted, "cpu")

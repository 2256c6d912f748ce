"""``torchcompile-suite why``: where the time of a compiled call goes."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from .. import matrix
from ..analysis.summary import version_key
from ..cell import CHANNELS_LAST, Cell
from ..engine.settings import DIVIDED_LAUNCHES
from ..errors import SuiteError
from ..host import machine
from ..modes import MODES
from ..presentation import answers, stories, why
from ..presentation.terminal import Output, Progress
from ..presentation.wording import printable
from ..releases import catalogue
from ..trial import plan
from ..trial import why as trials
from ..trial.plan import Trial
from .options import (
    channels_last_option,
    completing,
    device_option,
    dtype_option,
    installed_option,
    json_option,
    machine_option,
    no_color_option,
    quiet_option,
    training_option,
)
from .try_model import inputs_option, model_argument
from .trying import torch_python, write


@click.command()
@model_argument
@inputs_option
@click.option("--batch-size", type=click.IntRange(min=1))
@click.option(
    "--mode",
    default="default",
    shell_complete=completing(MODES.keys),
    help="A mode of torch.compile.",
)
@click.option(
    "--against",
    help="Another release, such as v2.8, or another mode: compare the compiled calls.",
)
@dtype_option
@channels_last_option
@device_option
@training_option
@click.option("--threads", type=click.IntRange(min=1), help="Number of torch's threads.")
@installed_option
@click.option(
    "--launches",
    type=click.IntRange(min=1),
    default=DIVIDED_LAUNCHES,
    help="Processes, each a launch.",
)
@click.option(
    "--history",
    is_flag=True,
    help="Measure nothing: what the releases in results/ changed, as the draft of a page.",
)
@machine_option
@click.option("--all", "everything", is_flag=True, help="All lines of the table.")
@click.option("--code", is_flag=True, help="How the generated code of the first line differs.")
@json_option
@quiet_option
@no_color_option
def why_command(
    target: str,
    inputs: tuple[str, ...],
    batch_size: int | None,
    mode: str,
    against: str | None,
    dtype: str,
    channels_last: bool,
    device: str | None,
    training: bool,
    threads: int | None,
    release: str | None,
    launches: int,
    history: bool,
    machine_name: str | None,
    everything: bool,
    code: bool,
    json_file: Path | None,
    quiet: bool,
    no_color: bool,
) -> None:
    """Why is the compiled model faster or slower? Which operators, which kernels, and how much.

    A line of the table is a group of the model's operators and the kernels that compute them, or
    several groups alike. "copy" lines bring tensors into a layout that a library wants. What is in
    no kernel follows: guards, buffers, Python. On a GPU a line has the time in which the device
    works for it, and its idle gaps are a line.

    Works with Inductor. Exit status: 0 answered, 1 it cannot be answered.

    Examples:

    torchcompile-suite why resnet18

    torchcompile-suite why resnet18 --mode max-autotune --against v2.8

    torchcompile-suite why my_model.py:make --training

    torchcompile-suite why resnet18 --history > story.md
    """
    asked = Trial(
        workload=target,
        batch_sizes=(batch_size,) if batch_size else (),
        modes=(mode,),
        allocators=plan.SETTLED,
        dtype=dtype,
        layout=CHANNELS_LAST if channels_last else "contiguous",
        device=device or machine.device_kind(),
        training=training,
    )
    if history:
        question = matrix.TRAINING_ATTRIBUTION if training else matrix.ATTRIBUTION
        cell = question.cell(target, mode)
        if batch_size:
            cell = msgspec.structs.replace(cell, batch_size=batch_size)
        for line in stories.draft(cell, _history(cell, machine_name)):
            click.echo(printable(line))
        return
    progress = Progress(quiet=quiet, no_color=no_color)
    calls = _calls(plan.asked(target, inputs or [], asked, answers.names()), release, against)
    wanted = [
        trials.Wanted(trial, torch_python(trial, of, None, progress), name)
        for trial, of, name in calls
    ]
    variables = {"OMP_NUM_THREADS": str(threads)} if threads else {}
    cells, (found, *of_eager) = trials.run(wanted, launches, progress.say, variables)
    names = why.EAGER_AND_COMPILED if against is None else (wanted[0].name, wanted[1].name)
    if json_file is not None:
        write(json_file, why.as_json(cells, names, found))
        if str(json_file) == "-":
            return
    out = Output(no_color=no_color)
    told = why.told(found, names, everything)
    for sentence in told.sentences:
        out.say(sentence, bold=True)
    out.draw(told.sheet)
    for one in of_eager:
        out.say(" ".join(["In eager:", *why.told(one, names).sentences]))
    for remedy in told.remedies:
        out.say(f"- {remedy}")
    if code:
        for line in why.code_changes(found)[: None if everything else why.MOST_CODE]:
            out.say(line)


def _history(cell: Cell, machine_name: str | None) -> list[stories.Of]:
    """The cell in each release of the machine's results. Raises SuiteError if it has none."""
    # Imported here: the package's core is enough for all else.
    from .recorded import read_divided, select

    selection = select(machine_name)
    wanted = msgspec.structs.replace(cell, device=selection.device)
    found = {
        one.release: one.measurement.launches
        for one in read_divided(selection.machine)
        if one.measurement.cell == wanted and one.measurement.outcome.ok and one.release
    }
    if not found:
        pattern = matrix.pattern(cell)
        how = f'; measure it: torchcompile-suite history --cells "{pattern}"' if pattern else ""
        raise SuiteError(f"{selection.machine} has no divided calls of {cell}{how}")
    return [stories.Of(name, found[name]) for name in sorted(found, key=version_key)]


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

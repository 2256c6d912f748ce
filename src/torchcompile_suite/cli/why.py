"""``torchcompile-suite why``: where the time of a compiled call goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import click
import msgspec

from .. import matrix
from ..analysis.summary import version_key
from ..analysis.why import Why
from ..cell import Cell
from ..engine.settings import DIVIDED_LAUNCHES
from ..errors import SuiteError, refuse
from ..modes import MODES
from ..presentation import stories, why
from ..presentation.terminal import Output, Progress
from ..presentation.wording import printable
from ..releases import catalogue
from ..trial import opened
from ..trial import why as trials
from ..trial.plan import Trial
from . import options
from .one_cell import of_one_cell
from .trying import torch_python, write


@click.command()
@of_one_cell
@click.option(
    "--against",
    help="Another release, such as v2.8, or another mode: compare the compiled calls.",
)
@options.threads_option
@options.installed_option
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
@options.machine_option
@click.option("--all", "everything", is_flag=True, help="All lines of the table.")
@click.option("--code", is_flag=True, help="How the code of the first sure difference differs.")
@options.output_option
@options.json_option
@options.quiet_option
@options.no_color_option
def why_command(
    trial: Trial,
    against: str | None,
    variables: Mapping[str, str],
    release: str | None,
    launches: int,
    history: bool,
    machine_name: str | None,
    everything: bool,
    code: bool,
    output: Path | None,
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
    if history:
        given = click.get_current_context().params
        of_measurements = {
            "--against": against,
            "--threads": variables,
            "--release": release,
            "--launches": launches != DIVIDED_LAUNCHES,
            "--all": everything,
            "--code": code,
            "--output": output,
            "--json": json_file,
            "--input": given["inputs"],
            "--dtype": trial.dtype != "float32",
            "--channels-last": given["channels_last"],
            "--device": given["device"],
        }
        refuse(of_measurements, "--history measures nothing")
        for line in stories.draft(*_history(trial, machine_name)):
            click.echo(printable(line))
        return
    refuse({"--machine": machine_name}, "without --history this machine is measured")
    progress = Progress(quiet=quiet, no_color=no_color)
    calls = _calls(trial, release, against)
    if output is not None:
        opened.empty(output)
    wanted = [
        trials.Wanted(trial, torch_python(trial, of, None, progress), name)
        for trial, of, name in calls
    ]
    cells, (found, *of_eager) = trials.run(wanted, launches, progress.say, variables)
    names = why.EAGER_AND_COMPILED if against is None else (wanted[0].name, wanted[1].name)
    if str(json_file) != "-":
        _print(Output(no_color=no_color), found, of_eager, names, everything, code)
    # Last: a file that cannot be written takes nothing away.
    if json_file is not None:
        write(json_file, why.as_json(cells, names, found))
    if output is not None:
        for call, cell in zip(wanted, cells, strict=True):
            folder = output / call.name.replace(" ", "-")
            written = opened.write(cell, call.environment(variables), folder)
            progress.say(f"{folder}/index.md: {written}")


def _print(
    out: Output,
    found: Why,
    of_eager: Iterable[Why],
    names: tuple[str, str],
    everything: bool,
    code: bool,
) -> None:
    for sentence in why.sentences(found, names):
        out.say(sentence, bold=True)
    out.draw(why.sheet(found, names, everything))
    for one in of_eager:
        out.say(" ".join(["In eager:", *why.sentences(one, names)]))
    for remedy in why.remedies(found):
        out.say(f"- {remedy}")
    if code:
        for line in why.code_changes(found)[: None if everything else why.MOST_CODE]:
            out.say(line)


def _history(trial: Trial, machine_name: str | None) -> tuple[Cell, stories.History]:
    """The trial's cell, and the same in each release of the machine's results.

    Raises SuiteError if there are none.
    """
    # Imported here: the package's core is enough for all else.
    from .recorded import read_divided, select, shown

    question = matrix.TRAINING_ATTRIBUTION if trial.training else matrix.ATTRIBUTION
    cell = question.cell(trial.workload, trial.modes[0])
    if trial.batch_sizes:
        cell = msgspec.structs.replace(cell, batch_size=trial.batch_sizes[0])
    # A machine may have divided calls and nothing else: then `select` does not know it.
    if machine_name and (shown() / machine_name / "machine.json").is_file():
        name = machine_name
    else:
        name = select(machine_name).machine
    found = {
        one.release: one.measurement.launches
        for one in read_divided(name)
        if matrix.on_any_device(one.measurement.cell) == matrix.on_any_device(cell)
        if one.measurement.outcome.ok and one.release
    }
    if not found:
        pattern = matrix.pattern(cell)
        how = f'; measure it: torchcompile-suite history --cells "{pattern}"' if pattern else ""
        raise SuiteError(f"{name} has no divided calls of {cell}{how}")
    return cell, {release: found[release] for release in sorted(found, key=version_key)}


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
    if release is not None and catalogue.find(against) == catalogue.find(release):
        raise SuiteError(f"--against {against}: that is the release itself; name another one")
    return [(trial, against, against), (trial, release, own)]

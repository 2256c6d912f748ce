"""``torchcompile-suite try``: does compiling pay for one model, on this machine?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import click

from .. import targets, workloads
from ..cell import CHANNELS_LAST, DEFAULT_HEAP
from ..errors import refuse
from ..host import machine
from ..host.heap import LIBRARIES
from ..modes import MODES
from ..trial import plan
from ..trial.plan import BUDGET_S, PRECISION, Trial
from . import options

T = TypeVar("T")

model_argument = click.argument(
    "target",
    shell_complete=options.completing(workloads.names),
    help="path/file.py:factory, package.module:factory, a timm model, hf:checkpoint or a workload.",
)
inputs_option = click.option(
    "--input",
    "inputs",
    multiple=True,
    help="[name=]sizes[:dtype[:below]], such as Bx3x224x224:float32.",
)


@click.command()
@model_argument
@inputs_option
@options.batch_sizes_option
@click.option(
    "--mode",
    "modes",
    multiple=True,
    shell_complete=options.completing(MODES.keys),
    help="Mode of torch.compile. Repeat the option for several.",
)
@click.option(
    "--backend", "backends", multiple=True, help="Backend of torch.compile. Default: inductor."
)
@click.option(
    "--allocator",
    "named_allocators",
    multiple=True,
    help=f"One of: system (malloc with a settled heap), {DEFAULT_HEAP} (malloc as it comes), libc "
    f"(nothing preloaded), {', '.join(LIBRARIES)}. Default: the first two on a CPU.",
)
@options.dtype_option
@options.channels_last_option
@options.training_option
@click.option("--dynamic", is_flag=True, help="Call the model with all batch sizes in turn.")
@click.option(
    "--question",
    shell_complete=options.completing(plan.QUESTIONS.keys),
    help=f"Ask this instead: {', '.join(plan.QUESTIONS)}. It chooses its cells.",
)
@options.device_option
@options.target_option
@click.option(
    "--registers",
    is_flag=True,
    help="With --target: registers, spills, shared memory and occupancy.",
)
@options.threads_option
@click.option(
    "--precision",
    type=options.Finite(min=0.001),
    default=PRECISION,
    help="Relative half-width of the ratio's interval.",
)
@click.option(
    "--budget",
    type=options.Finite(min=1),
    help=f"Seconds for all cells. Default: {BUDGET_S:.0f} for each.",
)
@options.installed_option
@click.option("--resume", is_flag=True, help="Continue after Ctrl-C or the end of the budget.")
@options.json_option
@click.option(
    "--html",
    "html_file",
    type=options.PATH,
    help="Write the answer to this file as one page, with a picture.",
)
@click.option("--save", is_flag=True, help="Add the measurements to results/ and the site.")
@options.quiet_option
@options.no_color_option
def try_command(
    target: str,
    inputs: tuple[str, ...],
    batch_sizes: tuple[int, ...],
    modes: tuple[str, ...],
    backends: tuple[str, ...],
    named_allocators: tuple[str, ...],
    dtype: str,
    channels_last: bool,
    training: bool,
    dynamic: bool,
    question: str | None,
    device: str | None,
    gpu: str | None,
    registers: bool,
    variables: Mapping[str, str],
    precision: float,
    budget: float | None,
    release: str | None,
    resume: bool,
    json_file: Path | None,
    html_file: Path | None,
    save: bool,
    quiet: bool,
    no_color: bool,
) -> None:
    """Does torch.compile pay for this model, here? A table, one sentence, and what to change.

    The factory returns a torch.nn.Module, or a pair of module and inputs. Inputs are a tuple (by
    position) or a dict (by name). A factory with a parameter batch_size is called for each
    --batch-size.

    Exit status: 0 measured, 1 the model, a cell or a value fails, 2 no such option, 130 Ctrl-C.

    Examples:

    torchcompile-suite try resnet50 --batch-size 8

    torchcompile-suite try my_model.py:make --mode default --mode max-autotune

    torchcompile-suite try my_package.nets:Net --input Bx3x64x64 --release v2.9

    torchcompile-suite try resnet50 --question training

    torchcompile-suite try resnet50 --target cuda:sm90
    """
    of_measurements = {
        "--question": question,
        "--backend": backends,
        "--allocator": named_allocators,
        "--device": device,
        "--precision": precision != PRECISION,
        "--budget": budget,
        "--resume": resume,
        "--html": html_file,
        "--save": save,
    }
    if gpu is not None:
        refuse(of_measurements, "--target measures nothing")
    else:
        refuse({"--registers": registers}, "without --target no code is assembled")
    asked = Trial(
        workload=target,
        batch_sizes=_each(batch_sizes),
        modes=_each(modes) or ("default",),
        backends=_each(backends) or ("inductor",),
        allocators=_each(named_allocators),
        dtype=dtype,
        layout=CHANNELS_LAST if channels_last else "contiguous",
        device=device or ("cpu" if gpu else machine.device_kind()),
        training=training,
        dynamic=dynamic,
        precision=precision,
        total_s=budget,
        question=question or "",
    )
    # Imported here: the help needs none of it, and waits for none of it.
    from ..presentation import answers
    from ..presentation.terminal import Output
    from ..trial import generated, run
    from . import trying

    if save:  # without [suite] it ends now, and not after minutes
        from . import recorded
    trial = plan.asked(target, inputs or [], asked, answers.names())
    out = Output(no_color=no_color)
    with trying.TrialProgress(quiet, no_color) as progress:
        python = trying.torch_python(trial, release, gpu, progress)
        if gpu is not None:
            of = targets.get(gpu)
            code = generated.run(trial, python, of, progress.say, registers, variables)
        else:
            result = run.run(trial, python, progress.hear, resume=resume, variables=variables)
    if gpu is not None:
        trying.show_code(out, trial, code, json_file)
        raise SystemExit(1 if generated.failed(code) else 0)
    trying.show_result(out, trial, result, json_file, html_file)
    if save:
        trying.say(recorded.save(result.measurements))
    trying.end(trial, result)


def _each(values: Sequence[T] | None) -> tuple[T, ...]:
    """The values of an option that may be repeated, each once."""
    return tuple(dict.fromkeys(values or []))

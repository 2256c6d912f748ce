"""``torchcompile-suite try``: does compiling pay for one model, on this machine?"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console

from .. import targets, workloads
from ..analysis.advice import Advice
from ..cell import CHANNELS_LAST, DEFAULT_HEAP
from ..doctor import Level, hardware
from ..host import machine
from ..host.allocators import LIBRARIES
from ..host.files import write_atomically
from ..launch.progress import Event
from ..measurement import TOO_BUSY
from ..modes import MODES
from ..presentation import answers, terminal
from ..presentation.sheets import Sheet
from ..presentation.terminal import Progress, console, say
from ..presentation.wording import printable
from ..releases import catalogue, environments
from ..trial import generated, plan, view
from ..trial.plan import BUDGET_S, Trial, TrialError, headline
from ..trial.run import TrialResult, python_of, run
from . import recorded
from .doctor import show
from .options import Installed, NoColor, completing

T = TypeVar("T")

Model = Annotated[
    str,
    typer.Argument(
        help="path/file.py:factory, package.module:factory, a timm model, or a workload.",
        autocompletion=completing(workloads.names),
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", help=r"\[name=]sizes[:dtype[:below]], such as Bx3x224x224:float32."),
]
BatchSizes = Annotated[
    list[int] | None,
    typer.Option("--batch-size", min=1, help="Repeat the option for several sizes."),
]
Modes = Annotated[
    list[str] | None,
    typer.Option(
        "--mode",
        help="Mode of torch.compile. Repeat the option for several.",
        autocompletion=completing(MODES.keys),
    ),
]
Backends = Annotated[
    list[str] | None,
    typer.Option("--backend", help="Backend of torch.compile. Default: inductor."),
]
Allocators = Annotated[
    list[str] | None,
    typer.Option(
        "--allocator",
        help=f"One of: system, {DEFAULT_HEAP}, libc, {', '.join(LIBRARIES)}. Default: the "
        "first two on a CPU, which are the C library's with a settled heap and as it comes.",
    ),
]
Dtype = Annotated[
    str,
    typer.Option(
        help="float32; bfloat16 or float16 for an autocast region, with -weights behind it for "
        "weights and inputs in that dtype; tf32."
    ),
]
ChannelsLast = Annotated[
    bool,
    typer.Option("--channels-last", help="Lay images and weights out with the channels last."),
]
Training = Annotated[bool, typer.Option("--training", help="Measure a whole optimizer step.")]
Dynamic = Annotated[
    bool, typer.Option("--dynamic", help="Call the model with all batch sizes in turn.")
]
Question = Annotated[
    str | None,
    typer.Option(
        "--question",
        help=f"Ask this instead: {', '.join(plan.QUESTIONS)}. It chooses its cells.",
        autocompletion=completing(plan.QUESTIONS.keys),
    ),
]
Device = Annotated[str | None, typer.Option(help="cpu or cuda. Default: cuda if there is a GPU.")]
Gpu = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="A GPU that is not here, such as cuda:sm90: only generate its code.",
        autocompletion=completing(targets.read),
    ),
]
Registers = Annotated[
    bool,
    typer.Option(
        "--registers", help="With --target: registers, spills, shared memory and occupancy."
    ),
]
Threads = Annotated[int | None, typer.Option(min=1, help="Number of torch's threads on a CPU.")]
Precision = Annotated[
    float, typer.Option(min=0.001, help="Relative half-width of the ratio's interval.")
]
Budget = Annotated[
    float | None,
    typer.Option(min=1, help=f"Seconds for all cells. Default: {BUDGET_S:.0f} for each."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue after Ctrl-C or the end of the budget.")
]
JsonFile = Annotated[
    Path | None,
    typer.Option("--json", help="Write the whole answer to this file; - is standard output."),
]
Save = Annotated[
    bool, typer.Option("--save", help="Add the measurements to results/ and the site.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")]


def try_command(
    target: Model,
    inputs: Inputs = None,
    batch_sizes: BatchSizes = None,
    modes: Modes = None,
    backends: Backends = None,
    named_allocators: Allocators = None,
    dtype: Dtype = "float32",
    channels_last: ChannelsLast = False,
    training: Training = False,
    dynamic: Dynamic = False,
    question: Question = None,
    device: Device = None,
    gpu: Gpu = None,
    registers: Registers = False,
    threads: Threads = None,
    precision: Precision = 0.03,
    budget: Budget = None,
    release: Installed = None,
    resume: Resume = False,
    json_file: JsonFile = None,
    save: Save = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Does torch.compile pay for this model, here? A table, one sentence, and what to change.

    The factory returns a torch.nn.Module, or a pair of module and inputs. Inputs are a tuple (by
    position) or a dict (by name). A factory with a parameter batch_size is called for each
    --batch-size.

    Exit status: 0 measured, 1 the model or a cell failed, 2 wrong command line, 130 interrupted.

    Examples:

    torchcompile-suite try resnet50 --batch-size 8

    torchcompile-suite try my_model.py:make --mode default --mode max-autotune

    torchcompile-suite try my_package.nets:Net --input Bx3x64x64 --release v2.9

    torchcompile-suite try resnet50 --question training

    torchcompile-suite try resnet50 --target cuda:sm90
    """
    asked = Trial(
        workload=target,
        batch_sizes=_each(batch_sizes),
        modes=_each(modes) or ("default",),
        backends=_each(backends) or ("inductor",),
        allocators=_each(named_allocators),
        dtype=dtype,
        layout=CHANNELS_LAST if channels_last else "contiguous",
        device=device or machine.device_kind(),
        training=training,
        dynamic=dynamic,
        precision=precision,
        total_s=budget,
        question=question or "",
    )
    trial = plan.asked(target, inputs or [], asked, answers.names())
    if question and gpu is not None:
        raise TrialError("--question measures, and --target generates code: leave one out")
    variables = {"OMP_NUM_THREADS": str(threads)} if threads else {}
    with _Progress(quiet, no_color) as progress:
        python = _python(trial, release, gpu, progress)
        if gpu is not None:
            of = targets.get(gpu)
            code = generated.run(trial, python, of, progress.say, registers, variables)
    if gpu is not None:
        _show_code(console(no_color=no_color), trial, code, json_file)
        raise typer.Exit(1 if generated.failed(code) else 0)
    with _Progress(quiet, no_color) as progress:
        result = run(trial, python, progress.hear, resume=resume, variables=variables)
    _show(console(no_color=no_color), trial, result, json_file)
    _end(trial, result, save)


def _each(values: Sequence[T] | None) -> tuple[T, ...]:
    """The values of an option that may be repeated, each once."""
    return tuple(dict.fromkeys(values or []))


def _python(trial: Trial, release: str | None, gpu: str | None, progress: Progress) -> Path:
    """The Python to ask. Only what is measured needs the device itself."""
    wanted = catalogue.find(release) if release else None
    if wanted is not None and not environments.is_ready(wanted):
        progress.say(environments.making(wanted))
    if gpu is not None:
        return python_of(wanted, "cpu")
    machine.need(trial.device)
    return python_of(wanted, trial.device)


def _end(trial: Trial, result: TrialResult, save: bool) -> None:
    """Save what was measured, if asked to, and end with the status of the command."""
    for line in recorded.save(result.measurements) if save else ():
        typer.echo(printable(line), err=True)
    if result.interrupted:
        typer.echo("interrupted; to continue: the same command with --resume", err=True)
        raise typer.Exit(130)
    if view.failed(trial, result):
        raise typer.Exit(1)


class _Progress(Progress):
    """A line for each result, and on a terminal a status line for the current stage."""

    def __init__(self, quiet: bool, no_color: bool) -> None:
        super().__init__(quiet=quiet, no_color=no_color)
        self._status = self.console.status("importing torch, building the model")
        self._launch = 1

    def __enter__(self) -> _Progress:
        if self.console.is_terminal:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def hear(self, event: Event) -> None:
        """See `progress.listening`."""
        of_launch = f"{event.cell}, launch {self._launch}: {event.text}"
        if event.kind == "stage":
            self._status.update(printable(of_launch))
            return
        texts = {"known": event.text, "started": f"{event.cell}: measuring"}
        texts |= {"learned": of_launch, "launched": of_launch}
        self.say(texts.get(event.kind, f"{event.cell}: {event.text}"))
        self._launch = 1 if event.kind == "started" else self._launch + (event.kind == "launched")


def _show_code(
    out: Console, trial: Trial, result: generated.GeneratedResult, json_file: Path | None
) -> None:
    if not _is_stdout(json_file):
        say(out, generated.headline(trial, result))
        _draw(out, generated.table(result))
        for line in generated.sentences(result):
            say(out, line)
        _advise(out, generated.advices(result))
    if json_file is not None:
        write(json_file, generated.as_json(trial, result))


def _show(out: Console, trial: Trial, result: TrialResult, json_file: Path | None) -> None:
    if not _is_stdout(json_file):
        _print(out, trial, result)
    if json_file is not None:
        write(json_file, view.as_json(trial, result))


def _print(out: Console, trial: Trial, result: TrialResult) -> None:
    say(out, headline(trial, result.outline))
    told = view.answered(trial, result)
    if told is not None:
        asked, (sentence, sheet) = told
        say(out, asked.title)
        say(out, sentence, "bold")
        _draw(out, sheet)
    out.print(terminal.draw(view.table(result)))
    if told is None:
        for sentence in view.sentences(result):
            say(out, sentence, "bold")
    # The table of a question has the reasons of failures.
    for line in (*view.notes(result), *([] if told else view.failures(result))):
        say(out, line)
    if any(TOO_BUSY in measurement.outcome.reason for measurement in result.measurements):
        for check in hardware.load():
            if check.level is not Level.OK:
                show(out, check)
    _advise(out, view.advices(trial, result))


def _draw(out: Console, sheet: Sheet) -> None:
    """Print the table if it has lines."""
    if sheet.lines:
        out.print(terminal.draw(sheet))


def _advise(out: Console, advices: Iterable[Advice]) -> None:
    for number, advice in enumerate(advices):
        if number == 0:
            out.print()
            say(out, "Worth changing:")
        say(out, f"- {f'{advice.where}: ' if advice.where else ''}{advice.what}")
        say(out, f"  remedy: {advice.remedy}")


def _is_stdout(file: Path | None) -> bool:
    return file is not None and str(file) == "-"


def write(file: Path, content: bytes) -> None:
    """Write an answer to the file; ``-`` is standard output. Raises TrialError."""
    if _is_stdout(file):
        sys.stdout.buffer.write(content + b"\n")
        return
    try:
        write_atomically(file, content + b"\n")
    except OSError as error:
        raise TrialError(f"cannot write {file}: {error.strerror}") from None

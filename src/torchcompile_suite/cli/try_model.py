"""``torchcompile-suite try``: does compiling pay for one model, on this machine?"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from .. import matrix, targets, workloads
from ..analysis.advice import Advice
from ..cell import CHANNELS_LAST, DEFAULT_HEAP, TOO_BUSY, Measurement
from ..doctor import Level, hardware
from ..errors import SuiteError
from ..host import machine
from ..host.allocators import LIBRARIES
from ..host.files import write_atomically
from ..launch.progress import Event
from ..modes import MODES
from ..presentation import answers, terminal
from ..presentation.terminal import Progress, console, one_line_errors, say
from ..presentation.wording import printable
from ..releases import catalogue, environments, ledger
from ..results import records, sealing
from ..trial import generated, questions, view
from ..trial.plan import BUDGET_S, Trial, TrialError, headline
from ..trial.run import TrialResult, python_of, run
from ..trial.target import parse
from .doctor import show

RESULTS = Path("results")


def _workloads(incomplete: str) -> list[str]:
    """Shell completion of the workloads."""
    try:
        return [name for name in workloads.names() if name.startswith(incomplete)]
    except SuiteError:
        return []


def _targets(incomplete: str) -> list[str]:
    """Shell completion of the targets."""
    return [name for name in targets.read() if name.startswith(incomplete)]


def _modes(incomplete: str) -> list[str]:
    """Shell completion of the modes."""
    return [name for name in MODES if name.startswith(incomplete)]


def _questions(incomplete: str) -> list[str]:
    """Shell completion of the questions."""
    return [name for name in questions.QUESTIONS if name.startswith(incomplete)]


def try_command(
    target: Annotated[
        str,
        typer.Argument(
            help="path/file.py:factory, package.module:factory, a timm model, or a workload.",
            autocompletion=_workloads,
        ),
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", help=r"\[name=]sizes[:dtype[:below]], such as Bx3x224x224:float32."
        ),
    ] = None,
    batch_sizes: Annotated[
        list[int] | None,
        typer.Option("--batch-size", min=1, help="Repeat the option for several sizes."),
    ] = None,
    modes: Annotated[
        list[str] | None,
        typer.Option(
            "--mode",
            help="Mode of torch.compile. Repeat the option for several.",
            autocompletion=_modes,
        ),
    ] = None,
    backends: Annotated[
        list[str] | None,
        typer.Option("--backend", help="Backend of torch.compile. Default: inductor."),
    ] = None,
    named_allocators: Annotated[
        list[str] | None,
        typer.Option(
            "--allocator",
            help=f"One of: system, {DEFAULT_HEAP}, libc, {', '.join(LIBRARIES)}. Default: the "
            "first two on a CPU, which are the C library's with a settled heap and as it comes.",
        ),
    ] = None,
    dtype: Annotated[
        str,
        typer.Option(
            help="float32; bfloat16 or float16 for an autocast region, with -weights behind it for "
            "weights and inputs in that dtype; tf32."
        ),
    ] = "float32",
    channels_last: Annotated[
        bool,
        typer.Option("--channels-last", help="Lay images and weights out with the channels last."),
    ] = False,
    training: Annotated[
        bool, typer.Option("--training", help="Measure a whole optimizer step.")
    ] = False,
    dynamic: Annotated[
        bool, typer.Option("--dynamic", help="Call the model with all batch sizes in turn.")
    ] = False,
    question: Annotated[
        str | None,
        typer.Option(
            "--question",
            help=f"Ask this instead: {', '.join(questions.QUESTIONS)}. It chooses its cells.",
            autocompletion=_questions,
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu or cuda. Default: cuda if there is a GPU.")
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            "--target",
            help="A GPU that is not here, such as cuda:sm90: only generate its code.",
            autocompletion=_targets,
        ),
    ] = None,
    registers: Annotated[
        bool,
        typer.Option(
            "--registers", help="With --target: registers, spills, shared memory and occupancy."
        ),
    ] = False,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Number of torch's threads on a CPU.")
    ] = None,
    precision: Annotated[
        float, typer.Option(min=0.001, help="Relative half-width of the ratio's interval.")
    ] = 0.03,
    budget: Annotated[
        float | None,
        typer.Option(min=1, help=f"Seconds for all cells. Default: {BUDGET_S:.0f} for each."),
    ] = None,
    release: Annotated[
        str | None,
        typer.Option(help="A release to install, such as v2.9. Default: the torch of this Python."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue after Ctrl-C or the end of the budget.")
    ] = False,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", help="Write the whole answer to this file; - is standard output."),
    ] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Add the measurements to results/ and the site.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")] = False,
    no_color: Annotated[
        bool, typer.Option("--no-color", help="Print no colors, like NO_COLOR=1.")
    ] = False,
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
    with one_line_errors():
        trial = _trial(
            target,
            inputs or [],
            Trial(
                workload=target,
                batch_sizes=tuple(dict.fromkeys(batch_sizes or [])),
                modes=tuple(dict.fromkeys(modes or [])) or ("default",),
                backends=tuple(dict.fromkeys(backends or [])) or ("inductor",),
                allocators=tuple(dict.fromkeys(named_allocators or [])),
                dtype=dtype,
                layout=CHANNELS_LAST if channels_last else "contiguous",
                device=device or machine.device_kind(),
                training=training,
                dynamic=dynamic,
                precision=precision,
                total_s=budget,
                question=question or "",
            ),
        )
        if question and gpu is not None:
            raise TrialError("--question measures, and --target generates code: leave one out")
        wanted = catalogue.find(release) if release else None
        variables = {"OMP_NUM_THREADS": str(threads)} if threads else {}
        out = console(no_color=no_color)
        with _Progress(quiet, no_color) as progress:
            if wanted is not None and not environments.is_ready(wanted):
                progress.say(environments.making(wanted))
            if gpu is None:
                machine.need(trial.device)
            python = python_of(wanted, "cpu" if gpu is not None else trial.device)
            if gpu is not None:
                code = generated.run(
                    trial,
                    python,
                    _target(gpu),
                    progress.say,
                    assemble=registers,
                    variables=variables,
                )
        if gpu is not None:
            _show_code(out, trial, code, json_file)
            raise typer.Exit(1 if generated.failed(code) else 0)
        with _Progress(quiet, no_color) as progress:
            result = run(trial, python, progress.hear, resume=resume, variables=variables)
        if not _is_stdout(json_file):
            _show(out, trial, result)
        if json_file is not None:
            _write(json_file, view.as_json(trial, result))
        if save:
            for line in _save(result.measurements):
                typer.echo(printable(line), err=True)
        if result.interrupted:
            typer.echo("interrupted; to continue: the same command with --resume", err=True)
            raise typer.Exit(130)
        if view.failed(trial, result):
            raise typer.Exit(1)


def _target(name: str) -> targets.Target:
    try:
        return targets.get(name)
    except KeyError as error:
        raise TrialError(error.args[0]) from None


def _show_code(
    out: Console, trial: Trial, result: generated.GeneratedResult, json_file: Path | None
) -> None:
    if not _is_stdout(json_file):
        say(out, generated.headline(trial, result))
        sheet = generated.table(result)
        if sheet.lines:
            out.print(terminal.draw(sheet))
        for line in generated.sentences(result):
            say(out, line)
        _advise(out, generated.advices(result))
    if json_file is not None:
        _write(json_file, generated.as_json(trial, result))


def _trial(text: str, inputs: list[str], asked: Trial) -> Trial:
    """The trial with its target.

    Raises SuiteError for a wrong option, and if ``text`` names no model.
    """
    _check_question(asked)
    if unknown := set(asked.modes) - set(MODES):
        raise TrialError(f"no mode {', '.join(sorted(unknown))}; there are: {', '.join(MODES)}")
    if asked.device not in machine.DEVICES:
        raise TrialError(f"no device {asked.device}; there are: {', '.join(machine.DEVICES)}")
    if asked.dtype not in matrix.TRIED_DTYPES:
        raise TrialError(f"no dtype {asked.dtype}; there are: {', '.join(matrix.TRIED_DTYPES)}")
    target = parse(text, inputs)
    if target is not None and asked.dynamic:
        target = msgspec.structs.replace(target, stream=asked.batch_sizes)
    return msgspec.structs.replace(asked, target=target, workload=target.name if target else text)


def _check_question(asked: Trial) -> None:
    """Raise TrialError for a question that cannot be asked, or that chooses what is asked, too."""
    if not asked.question:
        return
    questions.check(asked.question, answers.names())
    chosen = {
        "--backend": asked.backends != ("inductor",),
        "--allocator": bool(asked.allocators),
        "--dtype": asked.dtype != "float32",
        "--channels-last": asked.layout == CHANNELS_LAST,
        "--training": asked.training,
        "--dynamic": asked.dynamic,
    }
    if any(chosen.values()):
        given = ", ".join(name for name, is_given in chosen.items() if is_given)
        raise TrialError(f"the question {asked.question} chooses its cells: leave {given} out")


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
        where = f"{event.cell}, launch {self._launch}"
        if event.kind == "known":
            self.say(event.text)
            return
        if event.kind == "stage":
            self._status.update(printable(f"{where}: {event.text}"))
            return
        if event.kind == "started":
            self._launch = 1
            text = f"{event.cell}: measuring"
        elif event.kind in ("learned", "launched"):
            text = f"{where}: {event.text}"
            self._launch += event.kind == "launched"
        else:
            text = f"{event.cell}: {event.text}"
        self.say(text)


def _show(out: Console, trial: Trial, result: TrialResult) -> None:
    say(out, headline(trial, result.outline))
    told = view.answered(trial, result)
    if told is not None:
        asked, (sentence, sheet) = told
        say(out, asked.title)
        say(out, sentence, "bold")
        if sheet.lines:
            out.print(terminal.draw(sheet))
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


def _advise(out: Console, advices: Iterable[Advice]) -> None:
    for number, advice in enumerate(advices):
        if number == 0:
            out.print()
            say(out, "Worth changing:")
        say(out, f"- {f'{advice.where}: ' if advice.where else ''}{advice.what}")
        say(out, f"  remedy: {advice.remedy}")


def _is_stdout(file: Path | None) -> bool:
    return file is not None and str(file) == "-"


def _write(file: Path, content: bytes) -> None:
    if _is_stdout(file):
        sys.stdout.buffer.write(content + b"\n")
        return
    try:
        write_atomically(file, content + b"\n")
    except OSError as error:
        raise TrialError(f"cannot write {file}: {error.strerror}") from None


def _save(measurements: list[Measurement]) -> list[str]:
    """Add the measurements to results/. Returns what there is to say about it.

    Raises TrialError if the release is not in the ledger, or if a file cannot be written.
    """
    if not measurements:
        return []
    commits = ledger.commit_of()
    # All are of one torch. One that ended early, such as a timeout, does not know it.
    torch = next(filter(None, map(records.release, measurements)), "")
    if torch not in commits:
        raise TrialError(
            f"torch {torch or 'of a failed cell'} is not a release of the ledger, so --save "
            "has no place for it; see: torchcompile-suite releases list"
        )
    kind = measurements[0].cell.device
    folder = RESULTS / machine.detect(kind=kind).machine
    try:
        machine.record(folder, kind)
        for measurement in measurements:
            records.append(records.path(folder, commits[torch], records.TRIAL), measurement)
    except OSError as error:
        raise TrialError(f"cannot write to {folder}: {error.strerror}") from None
    left = [f"not sealed: {problem}" for problem in sealing.seal(folder).problems]
    return [f"saved to {folder}; to see it on the site: nox -s site", *left]

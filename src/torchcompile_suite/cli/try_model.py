"""``torchcompile-suite try`` on the command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from .. import matrix, workloads
from ..cell import Measurement
from ..errors import SuiteError
from ..host import machine
from ..host.allocators import LIBRARIES
from ..host.files import write_atomically
from ..launch.progress import Event
from ..modes import MODES
from ..presentation import terminal
from ..presentation.terminal import Progress, console, one_line_errors, say
from ..presentation.wording import printable
from ..releases import catalogue, environments, ledger
from ..results import records
from ..trial import target as targets
from ..trial import view
from ..trial.plan import BUDGET_S, Trial, TrialError, headline
from ..trial.run import Answer, python_of, run

RESULTS = Path("results")


def _workloads(incomplete: str) -> list[str]:
    """For shell completion."""
    try:
        return [name for name in workloads.names() if name.startswith(incomplete)]
    except SuiteError:
        return []


def _modes(incomplete: str) -> list[str]:
    return [name for name in MODES if name.startswith(incomplete)]


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
        list[int] | None, typer.Option("--batch-size", min=1, help="Repeat it for several.")
    ] = None,
    modes: Annotated[
        list[str] | None,
        typer.Option("--mode", help="Repeat it for several.", autocompletion=_modes),
    ] = None,
    backends: Annotated[
        list[str] | None, typer.Option("--backend", help="Of torch.compile; else inductor.")
    ] = None,
    allocators: Annotated[
        list[str] | None,
        typer.Option("--allocator", help=f"system, libc, {', '.join(LIBRARIES)}."),
    ] = None,
    dtype: Annotated[str, typer.Option(help="float32, or that of autocast: bfloat16.")] = "float32",
    training: Annotated[bool, typer.Option("--training", help="A whole optimizer step.")] = False,
    dynamic: Annotated[
        bool, typer.Option("--dynamic", help="Call it with all batch sizes in turns.")
    ] = False,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; else what there is.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Of torch, on a CPU.")] = None,
    precision: Annotated[
        float, typer.Option(min=0.001, help="How far the ratio's interval may reach.")
    ] = 0.03,
    budget: Annotated[
        float | None, typer.Option(min=1, help=f"Seconds for all; else {BUDGET_S:.0f} a cell.")
    ] = None,
    release: Annotated[
        str | None, typer.Option(help="Such as v2.9, installed now; else the torch that is here.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where Ctrl-C or the budget ended it.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write everything here; - is standard output.")
    ] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Add it to results/, so that the site shows it.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="As NO_COLOR=1.")] = False,
) -> None:
    """Does torch.compile pay for this model, here? A table, one sentence, and what to mend.

    The factory returns a torch.nn.Module, or a pair of module and inputs: a tuple by position or a
    dict by name. With a parameter batch_size it is asked for each --batch-size.

    Exit status: 0 measured, 1 a cell or the model failed, 2 a wrong command line, 130 interrupted.

    Examples:

    torchcompile-suite try resnet50 --batch-size 8

    torchcompile-suite try my_model.py:make --mode default --mode max-autotune

    torchcompile-suite try my_package.nets:Net --input Bx3x64x64 --release v2.9
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
                allocators=tuple(dict.fromkeys(allocators or [])) or ("system",),
                dtype=dtype,
                device=device or machine.device_kind(),
                training=training,
                dynamic=dynamic,
                precision=precision,
                budget_s=budget or BUDGET_S,
            ),
            budget is not None,
        )
        wanted = catalogue.find(release) if release else None
        variables = {"OMP_NUM_THREADS": str(threads)} if threads else {}
        out = console(no_color=no_color)
        with _Telling(quiet, no_color) as telling:
            if wanted is not None:
                telling.say(environments.making(wanted))
            python = python_of(wanted)
            answer = run(trial, python, telling.hear, resume=resume, variables=variables)
        to_stdout = json_file is not None and str(json_file) == "-"
        if not to_stdout:
            _show(out, trial, answer)
        if json_file is not None:
            _write(json_file, view.as_json(trial, answer), to_stdout)
        if save:
            for file in _save(answer.measurements):
                typer.echo(f"saved to {file}; to see it: nox -s site", err=True)
        if answer.interrupted:
            typer.echo("interrupted; go on with the same command and --resume", err=True)
            raise typer.Exit(130)
        if view.failed(answer.measurements):
            raise typer.Exit(1)


def _trial(text: str, inputs: list[str], asked: Trial, budget_for_all: bool) -> Trial:
    """The trial with its target found, or TrialError for an option that makes no sense."""
    if unknown := set(asked.modes) - set(MODES):
        raise TrialError(f"no mode {', '.join(sorted(unknown))}; there are: {', '.join(MODES)}")
    if asked.device not in machine.DEVICES:
        raise TrialError(f"no device {asked.device}; there are: {', '.join(machine.DEVICES)}")
    if asked.dtype not in matrix.DTYPES:
        raise TrialError(f"no dtype {asked.dtype}; there are: {', '.join(matrix.DTYPES)}")
    found = targets.parse(text, inputs)
    if found is not None and asked.dynamic:
        found = msgspec.structs.replace(found, stream=asked.batch_sizes)
    cells = max(1, len(asked.batch_sizes)) * len(asked.modes) * len(asked.allocators)
    return msgspec.structs.replace(
        asked,
        target=found,
        workload=found.name if found else text,
        budget_s=asked.budget_s / (cells if budget_for_all else 1),
    )


class _Telling(Progress):
    """A line for what was learned, and a moving one on a terminal."""

    def __init__(self, quiet: bool, no_color: bool) -> None:
        super().__init__(quiet=quiet, no_color=no_color)
        self._status = self.console.status("importing torch, building the model")
        self._launch = 1

    def __enter__(self) -> _Telling:
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


def _show(out: Console, trial: Trial, answer: Answer) -> None:
    say(out, headline(trial, answer.outline))
    out.print(terminal.draw(view.table(answer)))
    for sentence in view.sentences(answer):
        say(out, sentence, "bold")
    for failure in view.failures(answer):
        say(out, failure)
    found = view.advices(trial, answer)
    if found:
        out.print()
        say(out, "Worth mending:")
    for each in found:
        say(out, f"- {f'{each.where}: ' if each.where else ''}{each.what}")
        say(out, f"  remedy: {each.remedy}")


def _write(file: Path, content: bytes, to_stdout: bool) -> None:
    if to_stdout:
        sys.stdout.buffer.write(content + b"\n")
        return
    try:
        write_atomically(file, content + b"\n")
    except OSError as error:
        raise TrialError(f"cannot write {file}: {error.strerror}") from None


def _save(measurements: list[Measurement]) -> list[Path]:
    """Append to the record of the release; its commit must be in the ledger. Returns the files."""
    commits = {release.version: sha for sha, release in ledger.compute()[0].items()}
    saved: dict[Path, None] = {}
    for each in measurements:
        torch = each.environment.torch.partition("+")[0] if each.environment else ""
        if torch not in commits:
            raise TrialError(
                f"torch {torch or 'of a failed cell'} is no release of the ledger, so --save has "
                "no place for it; see: torchcompile-suite releases list"
            )
        folder = RESULTS / machine.detect().machine
        try:
            machine.record(folder)
            file = records.path(folder, commits[torch], "try")
            records.append(file, each)
        except OSError as error:
            raise TrialError(f"cannot write to {folder}: {error.strerror}") from None
        saved[file] = None
    return list(saved)

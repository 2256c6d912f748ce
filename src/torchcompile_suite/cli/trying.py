"""What ``torchcompile-suite try`` does: choose a Python, tell the progress, show the answer."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from .. import workloads
from ..analysis.advice import Advice
from ..doctor import Level, hardware
from ..host import machine
from ..host.files import write_or_say
from ..launch.progress import Event
from ..measurement import TOO_BUSY
from ..presentation.sheets import Sheet
from ..presentation.terminal import Output, Progress
from ..presentation.wording import printable
from ..releases import apart, catalogue
from ..trial import generated, view
from ..trial.plan import Trial, headline
from ..trial.run import TrialResult, python_of
from .doctor import show


def torch_python(trial: Trial, release: str | None, gpu: str | None, progress: Progress) -> Path:
    """The Python to ask. Only what is measured needs the device itself."""
    wanted = catalogue.find(release) if release else None
    if gpu is None:
        machine.need(trial.device)
    python = python_of(wanted, trial.device if gpu is None else "cpu", progress.say)
    own = workloads.libraries(trial.workload)
    apart.provide(python, own if trial.target is None else trial.target.libraries)
    return python


def say(lines: Iterable[str]) -> None:
    """Print the lines beside the answer."""
    for line in lines:
        click.echo(printable(line), err=True)


def end(trial: Trial, result: TrialResult) -> None:
    """End with the status of the command."""
    if result.interrupted:
        click.echo("interrupted; to continue: the same command with --resume", err=True)
        raise SystemExit(130)
    if view.failed(trial, result):
        raise SystemExit(1)


class TrialProgress(Progress):
    """A line for each result, and on a terminal a status line for the current stage."""

    def __init__(self, quiet: bool, no_color: bool) -> None:
        """Start the clock."""
        super().__init__(quiet=quiet, no_color=no_color)
        self._launch = 1

    def __enter__(self) -> TrialProgress:
        """Show that the work begins."""
        self.status("importing torch, building the model")
        return self

    def __exit__(self, *_: object) -> None:
        """Leave no status line."""
        self.clear()

    def hear(self, event: Event) -> None:
        """See `progress.listening`."""
        of_launch = f"{event.cell}, launch {self._launch}: {event.text}"
        if event.kind == "stage":
            self.status(of_launch)
            return
        texts = {"known": event.text, "started": f"{event.cell}: measuring"}
        texts |= {"learned": of_launch, "launched": of_launch}
        self.say(texts.get(event.kind, f"{event.cell}: {event.text}"))
        self._launch = 1 if event.kind == "started" else self._launch + (event.kind == "launched")


def show_code(
    out: Output, trial: Trial, result: generated.GeneratedResult, json_file: Path | None
) -> None:
    """Print what was generated for a GPU that is not here, or write it to a file."""
    if str(json_file) != "-":
        out.say(generated.headline(trial, result))
        _draw(out, generated.table(result))
        for line in generated.sentences(result):
            out.say(line)
        _advise(out, generated.advices(result))
    if json_file is not None:
        write(json_file, generated.as_json(trial, result))


def show_result(
    out: Output,
    trial: Trial,
    result: TrialResult,
    json_file: Path | None,
    html_file: Path | None,
) -> None:
    """Print what was measured, or write it to a file."""
    if "-" not in (str(json_file), str(html_file)):
        _print(out, trial, result)
    if json_file is not None:
        write(json_file, view.as_json(trial, result))
    if html_file is not None:
        write(html_file, view.as_html(trial, result, _typed()))


def _typed() -> str:
    """The command as the user has typed it, without what it writes and what it goes on with."""
    given = iter(sys.argv[1:])
    kept = []
    for argument in given:
        option, _, value = argument.partition("=")
        if option in ("--resume", "--save"):
            continue
        if option not in ("--html", "--json"):
            kept.append(argument)
        elif not value:
            next(given, "")
    return shlex.join(["torchcompile-suite", *kept])


def _print(out: Output, trial: Trial, result: TrialResult) -> None:
    out.say(headline(trial, result.outline))
    told = view.answered(trial, result)
    if told is not None:
        asked, (sentence, sheet) = told
        out.say(asked.title)
        out.say(sentence, bold=True)
        _draw(out, sheet)
    out.draw(view.table(result))
    if told is None:
        for sentence in view.sentences(result):
            out.say(sentence, bold=True)
    # The table of a question has the reasons of failures.
    for line in (*view.notes(result), *([] if told else view.failures(result))):
        out.say(line)
    if any(TOO_BUSY in measurement.outcome.reason for measurement in result.measurements):
        for check in hardware.load():
            if check.level is not Level.OK:
                show(out, check)
    _advise(out, view.advices(trial, result))


def _draw(out: Output, sheet: Sheet) -> None:
    """Print the table if it has lines."""
    if sheet.lines:
        out.draw(sheet)


def _advise(out: Output, advices: Iterable[Advice]) -> None:
    for number, advice in enumerate(advices):
        if number == 0:
            out.say()
            out.say("Worth changing:")
        out.say(f"- {f'{advice.where}: ' if advice.where else ''}{advice.what}")
        out.say(f"  remedy: {advice.remedy}")


def write(file: Path, content: bytes) -> None:
    """Write an answer to the file; ``-`` is standard output. Raises TrialError."""
    if str(file) == "-":
        sys.stdout.buffer.write(content + b"\n")
        return
    write_or_say(file, content + b"\n")

"""``torchcompile-suite answers``: each question that people ask, answered by recorded results."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..presentation import answers, documents, terminal
from ..presentation.answers import Answered, Asked
from ..presentation.terminal import Output
from ..presentation.wording import printable
from ..results.machines import NoResultsError
from ..results.records import Record
from .options import Format, completing, format_option, machine_option
from .recorded import Selection, read_divided, read_generated, select, version_named


@click.command()
@click.argument(
    "question",
    required=False,
    shell_complete=completing(answers.names),
    help=f"One of: {', '.join(answers.names())}. Default: all.",
)
@click.option("--release", help="Such as v2.9; else the newest that has a cell of the question.")
@machine_option
@format_option
def answers_command(
    question: str | None,
    release: str | None,
    machine_name: str | None,
    form: Format,
) -> None:
    """Answer what people ask about torch.compile: one sentence, and the table it comes from.

    What is generated for a GPU that is not here is the same on all machines.

    Examples: torchcompile-suite answers training; torchcompile-suite answers --format markdown
    """
    wanted = [answers.get(question)] if question else answers.QUESTIONS
    asked = [version_named(release)] if release else []
    answered = _generated([one for one in wanted if one.of_targets], asked)
    try:
        answered += _timed([one for one in wanted if not one.of_targets], machine_name, asked)
    except NoResultsError as error:
        if question or machine_name or not any(one.answer.measured for one in answered):
            raise
        click.echo(printable(f"only code for targets is answered: {error}"), err=True)
    answered.sort(key=lambda one: wanted.index(one.asked))
    if form is Format.JSON:
        click.echo(documents.answers_json(answered))
        return
    for number, one in enumerate(answered):
        if number:
            click.echo()
        _print(one, form)


def _timed(
    wanted: Sequence[Asked], machine_name: str | None, asked: Sequence[str]
) -> list[Answered]:
    """The answers of one machine. Raises NoResultsError."""
    if not wanted:
        return []
    selection = select(machine_name, asked)
    versions = list(asked) or selection.versions
    parts = read_divided(selection.machine) if any(one.of_parts for one in wanted) else []
    return [
        answers.newest(
            one, selection.machine, parts if one.of_parts else selection.records, versions
        )
        for one in wanted
    ]


def _generated(wanted: Sequence[Asked], asked: Sequence[str]) -> list[Answered]:
    """The answers from generated code, of any machine."""
    records: list[Record] = read_generated() if wanted else []
    versions = list(asked) or Selection("", records).versions
    return [answers.newest(one, "", records, versions) for one in wanted]


def _print(answered: Answered, form: Format) -> None:
    """Print the question, where the answer comes from, the sentence and the table."""
    asked, machine, release, (sentence, sheet) = answered
    where = " on ".join(filter(None, [f"PyTorch {release}" if release else "", machine]))
    if form is Format.MARKDOWN:
        source = f"{terminal.escaped(where)}: " if where else ""
        click.echo(f"## {terminal.escaped(asked.title)}\n\n{source}{terminal.escaped(sentence)}")
        if sheet.lines:
            click.echo(f"\n{terminal.markdown(sheet)}")
        return
    out = Output()
    out.say(f"{asked.title} ({asked.name}{f'; {where}' if where else ''})")
    out.say(sentence, bold=True)
    if sheet.lines:
        out.draw(sheet)

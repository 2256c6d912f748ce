"""``torchcompile-suite doctor`` on the command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ..doctor import hardware, software
from ..doctor.check import Level
from ..presentation.terminal import console, one_line_errors
from ..presentation.wording import printable
from ..releases import catalogue, environments

STYLES = {Level.OK: "green", Level.WARNING: "yellow", Level.ERROR: "bold red"}


def doctor_command(
    release: Annotated[
        str | None, typer.Option(help="Such as v2.9, installed now; else the torch that is here.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A list of objects.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail, too.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only what is not ok.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="As NO_COLOR=1.")] = False,
) -> None:
    """Look for what could spoil a compile or a measurement here, with the remedy of each.

    Exit status: 0 nothing worse than a warning, 1 an error (with --strict, or a warning).

    Examples: torchcompile-suite doctor; torchcompile-suite doctor --release v2.9 --json
    """
    with one_line_errors():
        python = Path(sys.executable)
        if release:
            wanted = catalogue.find(release)
            if not quiet:
                typer.echo(environments.making(wanted), err=True)
            python = environments.install(wanted, environments.SCRATCH)[0]
        found = [*software.checks(python), *hardware.checks()]
    if as_json:
        content = msgspec.json.encode([each._asdict() for each in found])
        typer.echo(msgspec.json.format(content))
    else:
        out = console(no_color=no_color)
        for each in found:
            if quiet and each.level is Level.OK:
                continue
            out.print(each.level.value.ljust(8), style=STYLES[each.level], end="")
            said = f"{each.name}: {each.says}"
            out.print(printable(said), markup=False, highlight=False, soft_wrap=True)
            if each.remedy:
                remedy = f"{'':8}remedy: {each.remedy}"
                out.print(printable(remedy), markup=False, highlight=False, soft_wrap=True)
    worst = {each.level for each in found}
    if Level.ERROR in worst or (strict and Level.WARNING in worst):
        raise typer.Exit(1)

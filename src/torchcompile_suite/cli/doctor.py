"""``torchcompile-suite doctor``: checks of this machine and its Python."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from ..doctor import Check, Level, hardware, software
from ..presentation.terminal import console, say
from ..releases import catalogue, environments
from .options import Installed, NoColor

STYLES = {Level.OK: "green", Level.WARNING: "yellow", Level.ERROR: "bold red"}


def doctor_command(
    release: Installed = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list of objects.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="A warning gives exit status 1, too.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only warnings and errors.")
    ] = False,
    no_color: NoColor = False,
) -> None:
    """Check this machine for faults that affect compiling or measuring, and print remedies.

    Exit status: 0 no error, 1 an error (with --strict: or a warning).

    Examples: torchcompile-suite doctor; torchcompile-suite doctor --release v2.9 --json
    """
    python = Path(sys.executable)
    if release:
        wanted = catalogue.find(release)
        if not quiet and not environments.is_ready(wanted):
            typer.echo(environments.making(wanted), err=True)
        python = environments.ready(wanted)
    checks = [*software.checks(python), *hardware.checks()]
    if as_json:
        content = msgspec.json.encode([check._asdict() for check in checks])
        typer.echo(msgspec.json.format(content))
    else:
        out = console(no_color=no_color)
        for check in checks:
            if not (quiet and check.level is Level.OK):
                show(out, check)
    levels = {check.level for check in checks}
    if Level.ERROR in levels or (strict and Level.WARNING in levels):
        raise typer.Exit(1)


def show(out: Console, check: Check) -> None:
    """Print a check, with its remedy if there is one."""
    out.print(check.level.value.ljust(8), style=STYLES[check.level], end="")
    say(out, f"{check.name}: {check.says}")
    if check.remedy:
        say(out, f"{'':8}remedy: {check.remedy}")

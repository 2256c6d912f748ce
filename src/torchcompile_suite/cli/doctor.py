"""``torchcompile-suite doctor``: checks of this machine and its Python."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..doctor import Check, Level, hardware, software
from ..presentation.terminal import Output, Progress
from ..presentation.wording import written
from ..releases import catalogue
from .options import installed_option, no_color_option

STYLES: dict[Level, dict[str, Any]] = {
    Level.OK: {"fg": "green"},
    Level.WARNING: {"fg": "yellow"},
    Level.ERROR: {"fg": "red", "bold": True},
}


@click.command()
@installed_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects.")
@click.option("--strict", is_flag=True, help="A warning gives exit status 1, too.")
@click.option("--quiet", "-q", is_flag=True, help="Print only warnings and errors.")
@no_color_option
def doctor_command(
    release: str | None,
    as_json: bool,
    strict: bool,
    quiet: bool,
    no_color: bool,
) -> None:
    """Check this machine for faults that affect compiling or measuring, and print remedies.

    Exit status: 0 no error, 1 an error (with --strict: or a warning).

    Examples: torchcompile-suite doctor; torchcompile-suite doctor --release v2.9 --json
    """
    python = Path(sys.executable)
    if release:
        # Imported here: the core of the package is enough for this Python.
        from ..releases import environments

        say = Progress(quiet=quiet).say
        python = environments.ready(catalogue.find(release), say=say)
    checks = [*software.checks(python), *hardware.checks()]
    if as_json:
        click.echo(written(checks))
    else:
        out = Output(no_color=no_color)
        for check in checks:
            if not (quiet and check.level is Level.OK):
                show(out, check)
    levels = {check.level for check in checks}
    if Level.ERROR in levels or (strict and Level.WARNING in levels):
        raise SystemExit(1)


def show(out: Output, check: Check) -> None:
    """Print a check, with its remedy if there is one."""
    out.say(check.level.value.ljust(8), newline=False, **STYLES[check.level])
    out.say(f"{check.name}: {check.says}")
    if check.remedy:
        out.say(f"{'':8}remedy: {check.remedy}")

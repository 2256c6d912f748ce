"""``torchcompile-suite claims``: what documents claim, judged by the recorded results."""

from __future__ import annotations

from typing import Annotated

import typer

from ..analysis import claims
from ..presentation import documents, sheets, terminal
from ..presentation.terminal import console
from ..presentation.wording import printable
from ..releases import catalogue
from .options import MachineName
from .recorded import not_measured, read_generated, select


def claims_command(
    machine_name: MachineName = None,
    release: Annotated[
        str | None, typer.Option("--release", help="Such as v2.9; else the newest measured.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A list of objects.")] = False,
) -> None:
    """Judge what documents claim about torch.compile by one machine's recorded results.

    Examples: torchcompile-suite claims; torchcompile-suite claims --release v2.4 --json
    """
    asked = [catalogue.find(release).version] if release else []
    selection = select(machine_name, asked)
    versions = asked or selection.versions
    measurements = selection.measurements(versions[-1]) if versions else []
    # Generated code is the same on all machines.
    code = [one.measurement for one in read_generated() if one.release in versions[-1:]]
    if not measurements:
        raise not_measured(versions[-1:], selection.machine)
    device = measurements[0].cell.device
    judged = claims.judge(measurements, device, code)
    if as_json:
        typer.echo(documents.claims_json(judged))
        return
    out = console()
    title = f"PyTorch {versions[-1]} on {selection.machine} ({device})"
    out.print(printable(title), highlight=False, markup=False)
    out.print(terminal.draw(sheets.documents(judged)))
    out.print(terminal.draw(sheets.claims(judged)))

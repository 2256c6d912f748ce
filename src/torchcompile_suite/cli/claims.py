"""``torchcompile-suite claims``: what documents claim, judged by the recorded results."""

from __future__ import annotations

import click

from ..analysis import claims
from ..presentation import documents, sheets
from ..presentation.terminal import Output
from .options import machine_option
from .recorded import not_measured, read_generated, select, version_named


@click.command()
@machine_option
@click.option("--release", help="Such as v2.9; else the newest measured.")
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
def claims_command(machine_name: str | None, release: str | None, as_json: bool) -> None:
    """Judge what documents claim about torch.compile by one machine's recorded results.

    Examples: torchcompile-suite claims; torchcompile-suite claims --release v2.4 --json
    """
    asked = [version_named(release)] if release else []
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
        click.echo(documents.claims_json(judged))
        return
    out = Output()
    out.say(f"PyTorch {versions[-1]} on {selection.machine} ({device})")
    out.draw(sheets.documents(judged))
    out.draw(sheets.claims(judged))

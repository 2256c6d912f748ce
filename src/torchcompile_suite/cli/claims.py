"""``torchcompile-suite claims``: what documents claim, judged by the recorded results."""

from __future__ import annotations

from typing import Annotated

import typer

from ..analysis import claims, summary
from ..presentation import documents, sheets, terminal
from ..presentation.terminal import console, one_line_errors
from ..presentation.wording import printable
from ..releases import catalogue
from .recorded import ReportError, machine_of, measurements_of, read_records


def claims_command(
    machine_name: Annotated[
        str | None,
        typer.Option("--machine", help="A folder of results/; else this machine's."),
    ] = None,
    release: Annotated[
        str | None, typer.Option("--release", help="Such as v2.9; else the newest measured.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A list of objects.")] = False,
) -> None:
    """Judge what documents claim about torch.compile by this machine's recorded results.

    Examples: torchcompile-suite claims; torchcompile-suite claims --release v2.4 --json
    """
    with one_line_errors():
        found = read_records()
        here = machine_of(found, machine_name)
        version = (
            catalogue.find(release).version
            if release
            else max(
                (each.release for each in found if each.machine == here),
                key=summary.version_key,
            )
        )
        measurements = measurements_of(found, here, version)
        if not measurements:
            raise ReportError(
                f"nothing of {version} was measured on {here}; try: asv run v{version}^!"
            )
        device = measurements[0].cell.device
        judged = claims.judge(measurements, device)
        if as_json:
            typer.echo(documents.claims_json(judged))
            return
        out = console()
        out.print(
            printable(f"PyTorch {version} on {here} ({device})"), highlight=False, markup=False
        )
        out.print(terminal.draw(sheets.documents(judged)))
        out.print(terminal.draw(sheets.claims(judged)))

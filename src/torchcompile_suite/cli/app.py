"""``torchcompile-suite``: joins the commands. Each command has a file of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from .._version import __version__
from .answers import answers_command
from .bench import bench_command
from .bisect import bisect_command
from .claims import claims_command
from .contract import app as contract_app
from .coverage import coverage_command
from .doctor import doctor_command
from .fleet import app as fleet_app
from .history import history_command
from .open import open_command
from .options import Commands
from .releases import app as releases_app
from .report import report_command
from .results import app as results_app
from .try_model import try_command
from .why import why_command

app = typer.Typer(
    cls=Commands,
    help="Does torch.compile pay, on this hardware, for this model, in this mode, since when?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(releases_app, name="releases")
app.add_typer(results_app, name="results")
app.add_typer(fleet_app, name="fleet")
app.add_typer(contract_app, name="contract")
app.command("try")(try_command)
app.command("why")(why_command)
app.command("doctor")(doctor_command)
app.command("bisect")(bisect_command)
app.command("bench")(bench_command)
app.command("history")(history_command)
app.command("report")(report_command)
app.command("answers")(answers_command)
app.command("claims")(claims_command)
app.command("coverage")(coverage_command)
app.command("open")(open_command)


@app.callback(invoke_without_command=True)
def _main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit

"""``torchcompile-suite``: joins the commands. Each has a file of its own.

A command is imported when it is called, and ends with one line at a fault.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click

from .._version import __version__
from ..errors import SuiteError

# Modules that only an extra of the package brings. A test holds this to pyproject.toml.
EXTRAS = {
    "suite": (
        *("asv", "asv_runner", "dulwich", "filelock", "jinja2", "markdown_it", "numpy"),
        *("pypi_simple", "scipy", "uv", "virtualenv"),
    ),
    "fleet": ("ray",),
}
# Modules that Python lacks on Windows.
UNIX = ("fcntl", "resource")


class Lazy(NamedTuple):
    """A command that is not imported yet.

    ``place``: module of this folder, and attribute. ``line``: its help in the list of commands.
    """

    place: str
    line: str


class Commands(click.Group):
    """Commands of which each ends with one line for a fault that the user can mend.

    ``sections``: commands to import at their call, by the heading of their list in the help.
    """

    def __init__(
        self, *args: Any, sections: Mapping[str, Mapping[str, Lazy]] | None = None, **kwargs: Any
    ) -> None:
        """A group as click makes it."""
        super().__init__(*args, **kwargs)
        self._sections = sections or {}
        self._lazy = {name: lazy for each in self._sections.values() for name, lazy in each.items()}

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except SuiteError as error:
            _end(str(error))
        except ModuleNotFoundError as error:
            _, _, name = f"{ctx.command_path} {ctx.invoked_subcommand}".partition(" ")
            # Not `_end`, whose words need the module that is missing on Windows.
            click.echo(f"torchcompile-suite: {missing(error, name)}", err=True)
            raise SystemExit(1) from None
        except UnicodeEncodeError as error:
            _end(f"{error.object!r} is no text in UTF-8; give the file or folder another name")
        except KeyboardInterrupt as interrupt:
            _end(str(interrupt), 130)
        except OSError as error:
            if error.errno == errno.EPIPE:  # click's
                raise
            _end(f"{error.filename or 'cannot go on'}: {error.strerror or error}")

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return [*super().list_commands(ctx), *self._lazy]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now. Raises ModuleNotFoundError, SuiteError."""
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self._lazy[cmd_name].place.partition(":")
        try:
            command: click.Command = getattr(import_module(f".{module}", __package__), attribute)
        except (ModuleNotFoundError, SuiteError):
            if ctx.resilient_parsing:  # a shell completes a line
                return None
            ctx.invoked_subcommand = cmd_name
            raise
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, without importing them."""
        for heading, commands in self._sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name, lazy.line) for name, lazy in commands.items()])
        if self.commands:
            super().format_commands(ctx, formatter)


def missing(error: ModuleNotFoundError, command: str) -> str:
    """One line that names the extra or the system which has the module. Raises the error if none
    does.
    """
    package = (error.name or "").partition(".")[0]
    if package in UNIX:
        return f"`{command}` runs on Linux only; on Windows, install it inside WSL2"
    for extra, packages in EXTRAS.items():
        if package in packages:
            return f"`{command}` needs more packages: pip install 'torchcompile-suite[{extra}]'"
    raise error


def _end(text: str, status: int = 1) -> None:
    from ..presentation.wording import printable

    if text:
        click.echo(printable(f"torchcompile-suite: {text}"), err=True)
    raise SystemExit(status)


# A test holds each line to the beginning of the command's own help.
CORE = {
    "try": Lazy("try_model:try_command", "Does torch.compile pay for this model, here?"),
    "why": Lazy("why:why_command", "Why is the compiled model faster or slower?"),
    "contract": Lazy("contract:app", "Keep a model compiled"),
    "doctor": Lazy("doctor:doctor_command", "Check this machine for faults"),
    "open": Lazy("open:open_command", "Compile a model here; write FX graphs, IR, generated code"),
}
SUITE = {
    "answers": Lazy("answers:answers_command", "Answer what people ask about torch.compile"),
    "bench": Lazy("bench:bench_command", "Measure a quick selection of cells"),
    "bisect": Lazy("bisect:bisect_command", "Find the commit that made a cell slower"),
    "claims": Lazy("claims:claims_command", "Judge what documents claim about torch.compile"),
    "coverage": Lazy(
        "coverage:coverage_command", "Count cells: with numbers, without numbers, not measured"
    ),
    "fleet": Lazy("fleet:app", "Measure on many machines"),
    "history": Lazy("history:history_command", "Measure releases beside each other"),
    "releases": Lazy("releases:app", "The PyTorch releases that can be compared"),
    "report": Lazy("report:report_command", "Print what was measured, or what changed"),
    "results": Lazy("results:app", "The files of results/"),
}


@click.group(
    cls=Commands,
    sections={"Commands": CORE, "Commands of torchcompile-suite[suite]": SUITE},
    context_settings={"show_default": True},
)
@click.version_option(__version__, message="%(version)s")
def app() -> None:
    """Does torch.compile pay, on this hardware, for this model, in this mode, since when?"""
    from ..host.programs import stop_in_order

    stop_in_order()

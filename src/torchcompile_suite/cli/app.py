"""``torchcompile-suite``: joins the commands. Each command has a file of its own."""

from __future__ import annotations

import click

from .._version import __version__
from .commands import Commands, Lazy

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
        "coverage:coverage_command", "Count cells: measured, ended otherwise, missing"
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

"""``torchcompile-suite bench``: the main job in one command.

Runs ``asv run`` on a quick selection of cells and ``asv publish``, and prints the results.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from ..analysis import summaries
from ..asv import command
from ..cell import Cell
from ..engine.settings import BUDGET_VARIABLE
from ..host import machine
from ..releases import catalogue
from ..results.records import Record
from . import history
from .options import Format
from .recorded import RESULTS, select
from .report import Rows, compare_releases, print_comparison, print_report

# A convolution net, a mobile one, a vision transformer and a language model, in the default mode.
# A compiled cell also measures eager, so no cell in eager mode is needed.
QUICK = (
    r"Inference.*\('(resnet18|mobilenetv3_small_100|vit_tiny_patch16_224|"
    r"DistilBertForMaskedLM)', 1, 'default'\)"
)

# Seconds a cell: a first answer within minutes, even on a noisy machine. `asv run` itself takes
# longer and gives narrower intervals.
QUICK_BUDGET_S = 75


def _identity(record: Record) -> tuple[str, Cell, str]:
    """What tells a measurement from another one of the machine."""
    return record.commit, record.measurement.cell, record.measurement.started_at


@click.command()
@click.argument("releases", nargs=-1, help="Such as v2.4 v2.9; the newest when none is named.")
def bench_command(releases: tuple[str, ...]) -> None:
    """Measure a quick selection of cells, publish the site and print the result.

    Example: torchcompile-suite bench v2.4 v2.9
    """
    os.environ.setdefault(BUDGET_VARIABLE, str(QUICK_BUDGET_S))
    measured = history.in_order([catalogue.find(name) for name in releases] or [catalogue.newest()])
    versions = [release.version for release in measured]
    here = machine.detect().machine
    # Results that came with the clone are no part of the answer. A new machine has none.
    before = set(map(_identity, summaries.read_machine(RESULTS / here).records))
    click.echo(
        f"\n== PyTorch {', '.join(versions)} on {here}: "
        "the first time it downloads several GB a release =="
    )
    if len(measured) > 1:
        history.run(measured, [QUICK], skip_existing=False, rounds=None)
    else:
        # Status 2 means that some cells failed. Their outcome is recorded, so the job goes on.
        command.run("run", f"{measured[0].tag}^!", "--bench", QUICK, "--show-stderr", accept=(0, 2))
    command.run("publish")
    if len(measured) == 2:
        print(flush=True)
        tags = (release.tag for release in measured)
        command.run("compare", *tags, "--machine", here, variables={command.ROWS_VARIABLE: QUICK})
    print()
    of_this_run = [record for record in select(here).records if _identity(record) not in before]
    print_report(of_this_run, versions, Format.TABLE, Rows(everything=True), here)
    if len(versions) == 2:
        comparison = compare_releases(of_this_run, *versions)
        print_comparison(comparison, Format.TABLE, Rows(everything=True))
    # nox has its own environment, so asv may not be on the PATH.
    asv = os.path.relpath(Path(sys.executable).with_name("asv"))
    click.echo(f"\nRaw records: {RESULTS}/{here}/")
    click.echo(f"To open the history site: {asv} preview")

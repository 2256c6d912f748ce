"""``torchcompile-suite history``: a long series of releases, measured in pieces, on one machine.

Eager on one release should take the same time whenever it is measured. Before every piece the
anchor cell is measured again and held against its first measurement, so that a series never goes on
on a machine that has become another one.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from .. import matrix
from ..analysis import statistics
from ..asv import command
from ..cell import Cell, Measurement
from ..errors import SuiteError
from ..host import machine
from ..measuring.settings import BUDGET_VARIABLE
from ..modes import EAGER
from ..presentation.terminal import one_line_errors
from ..releases import catalogue, ledger
from ..releases.catalogue import Release
from ..results import records
from .recorded import RESULTS

# What the machine is, without a compiler: a convolution net, which needs memory and arithmetic.
ANCHOR = Cell("resnet18", 1, EAGER)
ANCHOR_RELEASE = "v2.9"
# Eager's time on a shared machine differs by so much from one hour to another without its being
# another machine: beside the intervals of both measurements, this is the noise allowed for.
MOOD = 0.08
# Half a minute a cell keeps a release under ten minutes.
BUDGET_S = 25


class SeriesError(SuiteError):
    """The series cannot go on here; the message says how to start another one."""


def run(names: Sequence[str], results: Path) -> list[Release]:
    """Measure `matrix.HISTORY` with the named releases, or the newest patch of every minor one.

    What was measured before is kept, so that an interrupted series goes on. Returns the releases.
    Raises SeriesError where the machine is no longer the one that the series was begun on.
    """
    os.environ.setdefault(BUDGET_VARIABLE, str(BUDGET_S))
    releases = [catalogue.find(name) for name in names] or newest_patches(catalogue.read())
    anchor = catalogue.find(ANCHOR_RELEASE)
    command.run("run", f"{anchor.tag}^!", "--bench", _pattern(ANCHOR), accept=(0, 2))
    check(anchor_measurements(results / machine.detect().machine, anchor))
    for number, release in enumerate(releases, 1):
        print(f"\n== PyTorch {release.version} ({number} of {len(releases)}) ==", flush=True)
        wanted = [argument for cell in matrix.HISTORY for argument in ("--bench", _pattern(cell))]
        command.run("run", f"{release.tag}^!", *wanted, "--skip-existing", accept=(0, 2))
    return releases


def newest_patches(releases: Sequence[Release]) -> list[Release]:
    """The newest patch of every minor version, in their order."""
    newest = [each for each in releases if catalogue.newest_patch(each.minor, releases) == each]
    return sorted(newest, key=lambda each: each.key)


def anchor_measurements(folder: Path, release: Release) -> list[Measurement]:
    """Every measurement of the anchor in a machine's folder, oldest first."""
    commit = next(sha for sha, each in ledger.compute()[0].items() if each == release)
    return [
        measurement
        for file in sorted(folder.glob(f"{commit[:8]}-*{records.SUFFIX}"))
        for measurement in records.history(file, ANCHOR)
        if measurement.outcome.ok
    ]


def check(anchors: Sequence[Measurement]) -> None:
    """Hold the newest measurement of the anchor against the first.

    Raises SeriesError where they differ beyond noise, a neighbour slows the machine, or the newest
    gave no number.
    """
    if not anchors:
        raise SeriesError("the anchor cell could not be measured; mend it and run again")
    quiet_s = statistics.quietest(launch for each in anchors for launch in each.launches)
    slower = statistics.slowdown(anchors[-1].launches, quiet_s)
    if slower > statistics.MOST_SLOWDOWN:
        raise SeriesError(
            f"just now {statistics.neighbour(slower)}; run the same command again when it is gone"
        )
    first, last = (statistics.measured_eager(anchors[at].launches) for at in (0, -1))
    factor = statistics.quotient(last, first, more=math.log1p(MOOD))
    if factor.low > 1 or factor.high < 1:
        raise SeriesError(
            f"eager {ANCHOR.workload} takes {factor.value:.2f} of the time it took when the series "
            f"was begun, more than noise explains, so this is another machine now; begin another "
            f"series: {machine.MACHINE_VARIABLE}=NAME torchcompile-suite history"
        )


def _pattern(cell: Cell) -> str:
    pattern = matrix.pattern(cell)
    assert pattern is not None
    return pattern


def history_command(
    releases: Annotated[
        list[str] | None,
        typer.Argument(help="Such as v2.4 v2.9; else the newest patch of every minor release."),
    ] = None,
) -> None:
    """Measure the cells of the published history with many releases; goes on where it stopped.

    Before that an anchor cell is measured again, and held against its first measurement: a series
    comes from one machine. Some ten minutes a release.
    """
    with one_line_errors():
        measured = run(releases or [], RESULTS)
        versions = ", ".join(release.version for release in measured)
        typer.echo(f"\nmeasured, or measured before: {versions}. To see it: nox -s site")

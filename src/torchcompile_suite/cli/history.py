"""``torchcompile-suite history``: a long series of releases, measured in parts, on one machine.

Eager on one release takes the same time on every day, unless the machine changed. So each part
begins with the anchor cell: its new measurement is compared with its first one. The series stops on
a changed machine.
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
from ..cell import METHOD, Cell, Measurement
from ..errors import SuiteError
from ..host import machine
from ..measuring.settings import BUDGET_VARIABLE
from ..modes import EAGER
from ..presentation.terminal import one_line_errors
from ..releases import catalogue, ledger
from ..releases.catalogue import Release
from ..results import records
from .recorded import RESULTS

# The anchor is independent of the compiler. A convolution net needs memory and arithmetic.
ANCHOR = Cell("resnet18", 1, EAGER)
ANCHOR_RELEASE = "v2.9"
# Allowed drift between two runs, relative to the time: eager on a shared machine differs by this
# much from hour to hour. It is added to the intervals of both measurements.
DRIFT = 0.08
# Seconds a cell, so that a release takes less than ten minutes.
BUDGET_S = 25


class SeriesError(SuiteError):
    """The series cannot go on here. The message says how to begin another one."""


def run(names: Sequence[str], results: Path) -> list[Release]:
    """Measure `matrix.HISTORY` with the named releases, or the newest patch of every minor one.

    Earlier measurements are kept, so that an interrupted series can go on. Returns the releases.
    Raises SeriesError where the machine is not the one that began the series.
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
    """The newest patch of every minor version, oldest first."""
    newest = [
        release
        for release in releases
        if catalogue.newest_patch(release.minor, releases) == release
    ]
    return sorted(newest, key=lambda release: release.key)


def anchor_measurements(folder: Path, release: Release) -> list[Measurement]:
    """Every measurement of the anchor in a machine's folder by the newest method, oldest first."""
    commit = next(sha for sha, one in ledger.compute()[0].items() if one == release)
    return [
        measurement
        for journal in records.files(folder, [])
        if records.place(journal)[0] == commit[: records.COMMIT_DIGITS]
        for measurement in records.history(journal, ANCHOR)
        if measurement.outcome.ok
        and all(launch.method == METHOD for launch in measurement.launches)
    ]


def check(anchors: Sequence[Measurement]) -> None:
    """Compare the newest measurement of the anchor with the first.

    Raises SeriesError where they differ beyond noise, where a neighbour slows the machine, or where
    the anchor has no measurement.
    """
    if not anchors:
        raise SeriesError("the anchor cell could not be measured; mend it and run again")
    quiet_s = statistics.quietest(launch for anchor in anchors for launch in anchor.launches)
    slower = statistics.slowdown(anchors[-1].launches, quiet_s)
    if slower > statistics.MOST_SLOWDOWN:
        raise SeriesError(
            f"just now {statistics.neighbour(slower)}; run the same command again when it is gone"
        )
    first, last = (statistics.measured_eager(anchors[at].launches) for at in (0, -1))
    factor = statistics.quotient(last, first, more=math.log1p(DRIFT))
    if factor.low > 1 or factor.high < 1:
        raise SeriesError(
            f"eager {ANCHOR.workload} takes {factor.value:.2f} of its time at the beginning of "
            f"the series, and noise does not explain this difference: the machine changed; begin "
            f"another series: {machine.MACHINE_VARIABLE}=NAME torchcompile-suite history"
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
    """Measure the cells of the published history with many releases; go on where it stopped.

    First an anchor cell is measured again and compared with its first measurement, because a series
    comes from one machine. A release takes about ten minutes.
    """
    with one_line_errors():
        measured = run(releases or [], RESULTS)
        versions = ", ".join(release.version for release in measured)
        typer.echo(f"\nmeasured now or before: {versions}. To see the history: nox -s site")

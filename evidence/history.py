"""What do turns cost and gain? `history` of three releases, beside `asv run` of each of them.

Measures four real cells in one session: first each release by a run of its own, then all of them in
turns, each way with its own defaults. Takes half an hour on two cores. Nothing is installed in the
measured time. What was measured is kept, so an interrupted run goes on with the next command. Leave
the machine alone meanwhile.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import chain, pairwise
from pathlib import Path

import msgspec
import numpy as np

from torchcompile_suite import matrix
from torchcompile_suite.analysis import change, statistics
from torchcompile_suite.analysis.change import Comparison, Side
from torchcompile_suite.cell import Cell
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.measurement import Measurement
from torchcompile_suite.modes import EAGER
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.releases import catalogue, environments
from torchcompile_suite.results import records

from . import tables
from .collect import ROOT

RELEASES = ("v2.4", "v2.9", "v2.15")
CELLS = tuple(
    Cell(name, 1, mode) for name in ("resnet18", "vit16x6x384") for mode in (EAGER, "default")
)
FIGURES = ("time ratio", "eager", "compiled", "warm compile")
IN_TURNS, APART = "in turns", "one after the other"
FOLDER = ROOT / ".asv" / "evidence-history"
KEPT = Path(__file__).with_name("history.jsonl")


class Command(msgspec.Struct):
    """One command: the way, its releases, its wall time in seconds, and what it measured."""

    way: str
    releases: list[str]
    seconds: float
    measurements: list[Measurement]


def measure() -> None:
    """Run the commands that are missing."""
    releases = [catalogue.find(name) for name in RELEASES]
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    for release in releases:
        environments.ready(release, python)
    made = [(command.way, command.releases) for command in read_lines(KEPT, Command)]
    versions = [release.version for release in releases]
    cells = "|".join(filter(None, map(matrix.pattern, CELLS)))
    for release in releases:
        if (APART, [release.version]) not in made:
            _keep(APART, [release.version], ["asv", "run", f"{release.tag}^!", "--bench", cells])
    if (IN_TURNS, versions) not in made:
        command = ["torchcompile_suite", "history", *(release.tag for release in releases)]
        _keep(IN_TURNS, versions, [*command, "--cells", cells])


def run(folder: Path, command: Sequence[str]) -> tuple[float, list[Measurement]]:
    """Run a module in a folder without results: its wall time in seconds, and what it measured."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "asv.conf.json", folder)
    (folder / "benchmarks").symlink_to(ROOT / "benchmarks", target_is_directory=True)
    started = time.monotonic()
    subprocess.run([sys.executable, "-m", *command], cwd=folder, check=True)
    seconds = round(time.monotonic() - started, 1)
    return seconds, [one.measurement for one in records.read(folder / "results").records]


def _keep(way: str, versions: list[str], command: Sequence[str]) -> None:
    """Run a module, and keep what it measured."""
    print(f"{way}: {', '.join(versions)}", flush=True)
    folder = FOLDER / way.replace(" ", "-") / "-".join(versions)
    seconds, found = run(folder, command)
    cells = {matrix.on_any_device(one.cell) for one in found if one.outcome.ok}
    if len(found) != len(versions) * len(CELLS) or cells != set(CELLS):
        raise SuiteError(f"{folder} lacks a cell of {', '.join(versions)}; run again")
    append_line(KEPT, msgspec.json.encode(Command(way, versions, seconds, found)))


def comparisons(measurements: Sequence[Measurement]) -> list[Comparison]:
    """Each two neighbouring releases, compared as a report does."""
    versions = [catalogue.find(name).version for name in RELEASES]
    sides = [
        Side(version, [one for one in measurements if records.release(one) == version])
        for version in versions
    ]
    return [change.compare("this machine", before, after) for before, after in pairwise(sides)]


def widths(compared: Sequence[Comparison], figure: str) -> list[float]:
    """The half-width of each change of that figure."""
    return [
        statistics.half_width(one.effects[figure].factor)
        for comparison in compared
        for one in comparison.changes
        if figure in one.effects
    ]


def table() -> list[tables.Part]:
    """A line for each way."""
    kept = read_lines(KEPT, Command)
    measured = {
        way: list(chain.from_iterable(one.measurements for one in kept if one.way == way))
        for way in (APART, IN_TURNS)
    }
    seconds = {way: sum(one.seconds for one in kept if one.way == way) for way in measured}
    names = ["minutes", "launches", *(f"± {figure}" for figure in FIGURES)]
    lines = []
    for way, measurements in measured.items():
        compared = comparisons(measurements)
        launches = sum(len(statistics.counted(one.launches)) for one in measurements)
        lines.append(
            [
                way,
                f"{seconds[way] / 60:.1f}",
                str(launches),
                *(
                    f"{np.median(found):.2%}" if (found := widths(compared, figure)) else "-"
                    for figure in FIGURES
                ),
            ]
        )
    versions = ", ".join(catalogue.find(name).version for name in RELEASES)
    share = seconds[IN_TURNS] / seconds[APART]
    return [
        f"{len(CELLS)} cells of PyTorch {versions}. ±: the median half-width of a change between "
        f"neighbouring releases. In turns takes {share:.2f} times as long.",
        Sheet(["measured", *names], frozenset(names), lines),
        tables.measured_on(launch for one in measured[IN_TURNS] for launch in one.launches),
    ]


if __name__ == "__main__":
    tables.run("history", table, measure)

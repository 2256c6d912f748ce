"""What do neighbours that we make ourselves do to the probes, to a launch and to its figure?

Two cells on each machine, a warm launch beside each kind of neighbour, and beside none before and
after.

    python -m evidence.made_neighbours [--kept]
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import Cell
from torchcompile_suite.engine import launches
from torchcompile_suite.engine.processes import of_release
from torchcompile_suite.engine.series import Series
from torchcompile_suite.engine.settings import Settings
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.host.machine import cpu_model
from torchcompile_suite.measurement import Launch
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.releases import catalogue, environments

from . import tables

RECORD = Path(__file__).with_suffix(".jsonl")
CELLS = tuple(Cell(name, 1, "default") for name in ("mobilenetv3_small_100", "resnet18"))
# What each neighbour does, forever.
NEIGHBOURS = {
    "none": "",
    "computes": "while True: pass",
    "reads 256 MB at random": """
import numpy
numbers = numpy.zeros(2**25)
order = numpy.random.default_rng(0).permutation(2**25)
while True: numbers[order[::16]].sum()
""",
    "writes 256 MB": """
import numpy
numbers = numpy.zeros(2**25)
while True: numbers += 1
""",
    "starts processes": """
import subprocess
while True: subprocess.run(["true"])
""",
    "none again": "",
}


class Kept(msgspec.Struct, frozen=True):
    """A launch beside a neighbour."""

    neighbour: str
    launch: Launch
    cell: Cell


@contextlib.contextmanager
def beside(program: str) -> Iterator[None]:
    """While a process runs the program; none if it is empty."""
    if not program:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", program])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def measure() -> None:
    """Measure what is not kept yet of this machine."""
    here = cpu_model()
    kept = {(one.neighbour, one.cell) for one in read_lines(RECORD, Kept) if _cpu(one) == here}
    environment = of_release(environments.ready(catalogue.read()[-1]))
    for cell in CELLS:
        series = Series.of(cell, [""], Settings.from_environment())
        with tempfile.TemporaryDirectory(prefix="neighbours-") as folder:
            launches.of_series(environment, series, Path(folder))
            for neighbour, program in NEIGHBOURS.items():
                if (neighbour, cell) in kept:
                    continue
                with beside(program):
                    launch = launches.of_series(environment, series, Path(folder))
                append_line(RECORD, msgspec.json.encode(Kept(neighbour, launch, cell)))
                print(cell, neighbour, launch.outcome)


def table() -> list[tables.Part]:
    """A table for each machine, with a line for each launch."""
    kept = list(read_lines(RECORD, Kept))
    parts: list[tables.Part] = [
        "The reason is why `asv run` would repeat the launch. The hand-off is the median, and its "
        "5 and 95 % quantiles. elsewhere: pairs that do not count, because the host ran the "
        "processors at another place. crowded: readings with a neighbour on a core."
    ]
    numbers = ["loop us", "hand-off ns", "both over one", "load ns", "crowded", "elsewhere"]
    names = [*numbers, "eager ms", "ratio"]
    for cpu in sorted({_cpu(one) for one in kept}):
        lines = []
        for cell in CELLS:
            own = [one for one in kept if (one.cell, _cpu(one)) == (cell, cpu)]
            own.sort(key=lambda one: list(NEIGHBOURS).index(one.neighbour))
            quiet_s = statistics.quietest(one.launch for one in own)
            lines += [_line(one, quiet_s) for one in own]
        parts.append(Sheet(["model", "neighbour", *names, "reason"], frozenset(names), lines))
        parts.append(tables.measured_on(one.launch for one in kept if _cpu(one) == cpu))
    return parts


def _cpu(one: Kept) -> str:
    assert one.launch.environment is not None
    return one.launch.environment.cpu


def _line(one: Kept, quiet_s: float | None) -> list[str]:
    launch = one.launch
    host = launch.interference and launch.interference.host
    return [
        one.cell.workload,
        one.neighbour,
        f"{1e6 * (launch.calibration_s or 0):.0f}",
        _quantiles(host.handoff_ns) if host else "",
        f"{host.together:.2f}" if host else "",
        f"{host.load_ns:.0f}" if host else "",
        f"{host.crowded:.0%}" if host and host.crowded is not None else "",
        str(host.elsewhere) if host else "",
        f"{1e3 * statistics.eager_latency_of(launch):.3g}",
        f"{statistics.ratio_of(launch):.3f}",
        statistics.disturbed(launch, quiet_s).removeprefix("disturbed: "),
    ]


def _quantiles(values: Sequence[int]) -> str:
    ordered = sorted(values)
    low, middle, high = (ordered[int(share * (len(ordered) - 1))] for share in (0.05, 0.5, 0.95))
    return f"{middle} ({low} to {high})"


if __name__ == "__main__":
    tables.run("made_neighbours", table, measure)

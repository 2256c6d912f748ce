"""What does an answer cost? Seconds to a time ratio within 3 %, and every metric, of four cells.

Each cell gets launches until its interval is narrow enough, or until the budget is spent. The floor
is the time of the imports, of building the model, of one cold compile and of the timed calls. Takes
five minutes; leave the machine alone meanwhile.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import msgspec

from torchcompile_suite import matrix, workloads
from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import Cell
from torchcompile_suite.engine import settings
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.releases import catalogue, environments

from . import history, tables
from .pools import CELLS

RELEASE = catalogue.read()[-1]
FOLDER = history.FOLDER.with_name("evidence-cost")
KEPT = Path(__file__).with_name("cost.jsonl")


class Spent(msgspec.Struct):
    """The cost of one cell, in seconds.

    ``launches``: those whose value counts; ``ratio``: the result; ``stages_s``: the seconds of all
    processes by stage.
    """

    cell: str
    seconds: float
    launches: int = msgspec.field(name="processes")
    ratio: statistics.Interval
    floor_s: float
    stages_s: dict[str, float]


def spent(cell: Cell) -> Spent:
    """Measure a cell with `asv run`. The imports are those of the process that measures."""
    libraries = ["torch", *workloads.get(cell.workload).imports]
    python = environments.ready(RELEASE)
    start = time.monotonic()
    subprocess.run([python, "-c", f"import {', '.join(libraries)}"], check=True)
    import_s = time.monotonic() - start
    pattern = matrix.pattern(cell)
    assert pattern is not None
    _, (measurement,) = history.run(FOLDER, ["asv", "run", f"{RELEASE.tag}^!", "--bench", pattern])
    stages: dict[str, float] = {"imports": import_s}
    for launch in measurement.launches:
        for name, taken_s in launch.stages_s.items():
            key = f"{launch.kind} {name}" if name in ("compiler", "compile") else name
            stages[key] = stages.get(key, 0.0) + taken_s
    cold = next(launch for launch in measurement.launches if launch.kind == "cold")
    floor_s = import_s + cold.stages_s["build"] + stages["turns"]
    floor_s += cold.stages_s["compiler"] + cold.stages_s["compile"]
    return Spent(
        str(cell),
        round(import_s + measurement.duration_s, 1),
        len(statistics.counted(measurement.launches)),
        statistics.measured_ratio(measurement.launches, measurement.sequential),
        round(floor_s, 1),
        {name: round(value, 1) for name, value in stages.items()},
    )


def measure() -> None:
    """Measure what is missing."""
    known = {one.cell for one in read_lines(KEPT, Spent)}
    for cell in CELLS.values():
        if str(cell) not in known:
            made = spent(cell)
            append_line(KEPT, msgspec.json.encode(made))
            print(f"{cell}: {made.seconds} s, ±{statistics.half_width(made.ratio):.1%}", flush=True)


def table() -> list[tables.Part]:
    """A line for each cell, with the seconds of the suite's own processes by stage."""
    kept = read_lines(KEPT, Spent)
    # The stages that took a second or so.
    stages = list(
        dict.fromkeys(
            name for one in kept for name, taken_s in one.stages_s.items() if taken_s >= 0.5
        )
    )
    numbers = ["launches", "ratio", "±", "seconds", "floor", "seconds over floor", *stages]
    lines = [
        [
            one.cell,
            str(one.launches),
            f"{one.ratio.value:.3f}",
            f"{statistics.half_width(one.ratio):.1%}",
            f"{one.seconds:.0f}",
            f"{one.floor_s:.0f}",
            f"{one.seconds / one.floor_s:.2f}",
            *(f"{one.stages_s.get(name, 0.0):.0f}" for name in stages),
        ]
        for one in kept
    ]
    return [
        f"Seconds to a ratio within {settings.PRECISION:.0%}, and every metric; the floor; and the "
        "seconds of all processes by stage.",
        Sheet(["cell", *numbers], frozenset(numbers), lines),
    ]


if __name__ == "__main__":
    tables.run("cost", table, measure)

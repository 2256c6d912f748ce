"""What does a neighbour on the same cores change, and does the calibration loop show it?

Adds `ROUNDS` launches of each of four cells to the kept ones, in turns. Run it in quiet hours and
in busy ones: only the calibration loop can tell which is which. Takes six minutes; leave the
machine alone meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from torchcompile_suite.analysis import change, statistics
from torchcompile_suite.cell import Launch
from torchcompile_suite.presentation.sheets import Sheet

from . import tables
from .collect import Job, Pool
from .pools import CELLS, NO_VECTOR_CHECK, forked, run_in_release

ROUNDS = 10
FOLDER = Path(__file__).with_name("pools-neighbours")
FIGURES = ("time ratio", "eager", "compiled", "warm compile")


def measure() -> None:
    """Add launches."""
    wanted = ROUNDS + min(len(forked(name, FOLDER)) for name in CELLS)
    pools = [Pool(name, cell, forked=wanted) for name, cell in CELLS.items()]
    run_in_release(Job(pools, str(FOLDER), variables=NO_VECTOR_CHECK))


def table() -> list[tables.Part]:
    """A line for each cell and kind of launches."""
    names = ["launches", "calibration us", "ratio", "eager ms", "compiled ms", "warm compile s"]
    lines = []
    for name in CELLS:
        for kind, launches in by_kind(name).items():
            calibration_s = statistics.calibration_time(launches)
            lines.append(
                [
                    name,
                    kind,
                    str(len(launches)),
                    "-" if calibration_s is None else f"{1e6 * calibration_s:.0f}",
                    *(
                        _with_spread(change.values(figure, launches), factor)
                        for figure, factor in zip(FIGURES, (1, 1e3, 1e3, 1), strict=True)
                    ),
                ]
            )
    return [
        "By the time of the calibration loop in a launch; in brackets the standard deviation "
        f"between launches. slowed: over {statistics.MOST_SLOWDOWN} times the quietest launch.",
        Sheet(["pool", "hours", *names], frozenset(names), lines),
        tables.measured_on(launch for name in CELLS for launch in forked(name, FOLDER)),
    ]


def by_kind(name: str) -> dict[str, list[Launch]]:
    """The launches of a cell in quiet moments, those that a neighbour slowed, and all.

    A launch is slowed if its calibration loop took more than `statistics.MOST_SLOWDOWN` times the
    shortest one in any launch of any cell.
    """
    quiet_s = statistics.quietest(launch for cell in CELLS for launch in forked(cell, FOLDER))
    kinds: dict[str, list[Launch]] = {"quiet": [], "slowed": [], "all": []}
    for launch in forked(name, FOLDER):
        slowed = statistics.slowdown([launch], quiet_s) > statistics.MOST_SLOWDOWN
        kinds["slowed" if slowed else "quiet"].append(launch)
        kinds["all"].append(launch)
    return kinds


def _with_spread(values: Sequence[float], factor: float) -> str:
    """The geometric mean times ``factor``, and the standard deviation of the logs."""
    if not values:
        return "-"
    logs = np.log(values)
    spread = f" ({np.std(logs, ddof=1):.1%})" if len(logs) > 1 else ""
    return f"{factor * np.exp(np.mean(logs)):.3g}{spread}"


if __name__ == "__main__":
    tables.run("neighbours", table, measure)

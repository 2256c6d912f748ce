"""What does a neighbour on the same cores change, and does the calibration loop show it?

From all launches of the pools: only the calibration loop can tell which of them were slowed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torchcompile_suite.analysis import change, statistics
from torchcompile_suite.measurement import Launch
from torchcompile_suite.presentation.sheets import Sheet

from . import tables
from .pools import CELLS, launches

FIGURES = ("time ratio", "eager", "compiled", "warm compile")


def table() -> list[tables.Part]:
    """A line for each cell and kind of launches."""
    names = ["launches", "calibration us", "ratio", "eager ms", "compiled ms", "warm compile s"]
    lines = []
    for name in CELLS:
        for kind, made in by_kind(name).items():
            calibration_s = statistics.calibration_time(made)
            lines.append(
                [
                    name,
                    kind,
                    str(len(made)),
                    "-" if calibration_s is None else f"{1e6 * calibration_s:.0f}",
                    *(
                        _with_spread(change.values(figure, made), factor)
                        for figure, factor in zip(FIGURES, (1, 1e3, 1e3, 1), strict=True)
                    ),
                ]
            )
    return [
        "By the time of the calibration loop in a launch; in brackets the standard deviation "
        f"between launches. slowed: over {statistics.MOST_SLOWDOWN} times the quietest launch.",
        Sheet(["pool", "hours", *names], frozenset(names), lines),
        tables.measured_on(launch for name in CELLS for launch in launches(name)),
    ]


def by_kind(name: str) -> dict[str, list[Launch]]:
    """The launches of a cell in quiet moments, those that a neighbour slowed, and all.

    A launch is slowed if its calibration loop took more than `statistics.MOST_SLOWDOWN` times the
    shortest one in any launch of any cell.
    """
    quiet_s = statistics.quietest(launch for cell in CELLS for launch in launches(cell))
    kinds: dict[str, list[Launch]] = {"quiet": [], "slowed": [], "all": []}
    for launch in launches(name):
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
    tables.run("neighbours", table)

"""What does a neighbour on the same cores change, and does the yardstick see it?

Adds `ROUNDS` launches of each of four cells to what is there, in turns, and prints the table. Run
it in hours of both kinds: which kind it is, only the yardstick can tell. Takes six minutes; leave
the machine alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from torchcompile_suite.analysis import change, statistics
from torchcompile_suite.cell import Launch

from .collect import Job, Pool
from .pools import CELLS, NO_VECTOR_CHECK, pool, run_in_release

ROUNDS = 10
FOLDER = Path(__file__).with_name("pools-neighbours")
FIGURES = ("time ratio", "eager", "compiled", "warm compile")


def main() -> None:
    """Collect, and print the table."""
    wanted = ROUNDS + min(len(pool(name, FOLDER)) for name in CELLS)
    pools = [Pool(name, cell, forked=wanted) for name, cell in CELLS.items()]
    run_in_release(Job(pools, str(FOLDER), variables=NO_VECTOR_CHECK))
    table = Table("cell", "launches", title=f"By what a launch's yardstick took, {wanted} launches")
    for column in ("number", "yardstick us", *FIGURES):
        table.add_column(column, justify="right")
    for name in CELLS:
        for kind, launches in by_kind(name).items():
            found = [np.log(change.values(figure, launches)) for figure in FIGURES]
            taken_s = statistics.yardstick(launches)
            table.add_row(
                name,
                kind,
                str(len(launches)),
                "-" if taken_s is None else f"{1e6 * taken_s:.0f}",
                *(_with_spread(logs) for logs in found),
            )
    Console(width=150).print(table)


def by_kind(name: str) -> dict[str, list[Launch]]:
    """A cell's launches in quiet moments, those a neighbour slowed (`statistics.MOST_SLOWDOWN`),
    and all. Quiet is the least that the yardstick took in any launch of any cell.
    """
    quiet_s = statistics.quietest(one for each in CELLS for one in pool(each, FOLDER))
    launches = pool(name, FOLDER)
    slowed = [statistics.slowdown([one], quiet_s) > statistics.MOST_SLOWDOWN for one in launches]
    return {
        "quiet": [one for one, slow in zip(launches, slowed, strict=True) if not slow],
        "slowed": [one for one, slow in zip(launches, slowed, strict=True) if slow],
        "all": launches,
    }


def _with_spread(logs: np.ndarray | Sequence[float]) -> str:
    if not len(logs):
        return "-"
    spread = f" ({np.std(logs, ddof=1):.1%})" if len(logs) > 1 else ""
    return f"{np.exp(np.mean(logs)):.3g}{spread}"


if __name__ == "__main__":
    main()

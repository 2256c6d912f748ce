"""How often is a change reported where nothing changed? Whole reports, A against A, resampled.

Each report compares a matrix of eight workloads, each with its eager and its compiled cell, with
the same matrix drawn again from the same real launches: every alarm is false. Stock ``asv compare``
(its own function, factor 1.05) judges the same samples.
"""

from __future__ import annotations

import numpy as np
from asv.commands.compare import _is_result_better
from asv_runner.statistics import compute_stats
from rich.console import Console
from rich.table import Table

from torchcompile_suite.analysis import change, statistics
from torchcompile_suite.cell import Cell, Launch, Measurement

from . import draws
from .pools import CELLS, pool

REPORTS = 400
COPIES = 2
ASV_FACTOR = 1.05


def matrix(
    pools: dict[str, list[Launch]], random: np.random.Generator, in_a_row: bool
) -> list[Measurement]:
    """One release's measurements: every workload's eager and default cell."""
    found = []
    for copy in range(COPIES):
        for name, launches in pools.items():
            compiled = Cell(f"{name}-{copy}", 1, "default")
            eager = Cell(f"{name}-{copy}", 1, "eager")
            found.append(draws.measurement(launches, compiled, random, in_a_row))
            found.append(draws.measurement(draws.as_eager(launches), eager, random, in_a_row))
    return found


def asv_alarms(before: list[Measurement], after: list[Measurement], use_stats: bool) -> set[Cell]:
    """The cells of which stock ASV calls a metric better or worse."""
    flagged = set()
    for one, other in zip(before, after, strict=True):
        for name in ("compiled", "time ratio", "warm compile", "memory"):
            a, b = (change.values(name, side.launches) for side in (one, other))
            if not a or not b:
                continue
            stats = [(compute_stats(side, 1)[1], side) for side in (a, b)]
            middle = [float(np.median(side)) for side in (a, b)]
            if any(
                _is_result_better(
                    middle[i], middle[1 - i], stats[i], stats[1 - i], ASV_FACTOR, use_stats
                )
                for i in (0, 1)
            ):
                flagged.add(one.cell)
    return flagged


def main() -> None:
    """Print the table."""
    random = np.random.default_rng(2024)
    pools = {name: pool(name) for name in CELLS}
    table = Table("launches drawn", "judged by", title=f"{REPORTS} comparisons of A with A")
    for name in ("cells", "flagged", "share of cells", "reports with an alarm"):
        table.add_column(name, justify="right")
    for in_a_row in (False, True):
        counts = {"ours": 0, "asv compare": 0, "asv compare, without its statistics": 0}
        reports = dict.fromkeys(counts, 0)
        cells = 0
        for _ in range(REPORTS):
            before, after = (matrix(pools, random, in_a_row) for _ in range(2))
            comparison = change.compare("pools", change.Side("a", before), change.Side("b", after))
            cells += comparison.compared
            flagged = {
                "ours": {found.cell for found in comparison.changes if found.changed},
                "asv compare": asv_alarms(before, after, True),
                "asv compare, without its statistics": asv_alarms(before, after, False),
            }
            for name, which in flagged.items():
                counts[name] += len(which)
                reports[name] += bool(which)
        for name in counts:
            table.add_row(
                "in a row" if in_a_row else "at random",
                name,
                str(cells),
                str(counts[name]),
                f"{counts[name] / cells:.2%}",
                f"{reports[name] / REPORTS:.1%}",
            )
        table.add_section()
    Console(width=120).print(table)
    print(
        f"First look at {statistics.FIRST_LOOK} launches; false discoveries held at "
        f"{change.FALSE_DISCOVERY_RATE:.0%}; changes under {change.SMALLEST:.0%} are none "
        f"(memory: {change.QUANTITIES['memory'].smallest:.0%})."
    )


if __name__ == "__main__":
    main()

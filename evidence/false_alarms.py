"""How often is a change reported where nothing changed? Whole reports of A against A, resampled.

Each report compares a matrix of eight workloads, each with its eager and its compiled cell, with
the same matrix drawn again from the same real launches. So every alarm is false. Stock ``asv
compare`` (its own function, with a factor of 1.05) judges the same samples.
"""

from __future__ import annotations

import numpy as np
from asv.commands.compare import _is_result_better
from asv_runner.statistics import compute_stats

from torchcompile_suite.analysis import change, statistics
from torchcompile_suite.cell import Cell
from torchcompile_suite.measurement import Launch, Measurement
from torchcompile_suite.presentation.sheets import Sheet

from . import draws, tables
from .pools import every_pool

REPORTS = 400
COPIES = 2
ASV_FACTOR = 1.05


def matrix(
    pools: dict[str, list[Launch]], random: np.random.Generator, in_a_row: bool
) -> list[Measurement]:
    """The measurements of one release: the eager and the default cell of each workload."""
    measurements = []
    for copy in range(COPIES):
        for name, launches in pools.items():
            compiled = Cell(f"{name}-{copy}", 1, "default")
            eager = Cell(f"{name}-{copy}", 1, "eager")
            measurements.append(draws.measurement(launches, compiled, random, in_a_row))
            measurements.append(
                draws.measurement(draws.as_eager(launches), eager, random, in_a_row)
            )
    return measurements


def asv_alarms(before: list[Measurement], after: list[Measurement], use_stats: bool) -> set[Cell]:
    """The cells for which stock ASV calls a metric better or worse."""
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


def table() -> list[tables.Part]:
    """A line for each way to draw launches and each judge."""
    random = np.random.default_rng(2024)
    pools = every_pool()
    names = ["cells", "flagged", "share of cells", "reports with an alarm"]
    lines = []
    for in_a_row in (False, True):
        counts = {"ours": 0, "asv compare": 0, "asv compare, without its statistics": 0}
        reports = dict.fromkeys(counts, 0)
        cells = 0
        for _ in range(REPORTS):
            before, after = (matrix(pools, random, in_a_row) for _ in range(2))
            comparison = change.compare("pools", change.Side("a", before), change.Side("b", after))
            cells += len(comparison.changes)
            flagged = {
                "ours": {one.cell for one in comparison.changes if one.changed},
                "asv compare": asv_alarms(before, after, True),
                "asv compare, without its statistics": asv_alarms(before, after, False),
            }
            for name, flagged_cells in flagged.items():
                counts[name] += len(flagged_cells)
                reports[name] += bool(flagged_cells)
        for name in counts:
            lines.append(
                [
                    "in a row" if in_a_row else "at random",
                    name,
                    str(cells),
                    str(counts[name]),
                    f"{counts[name] / cells:.2%}",
                    f"{reports[name] / REPORTS:.1%}",
                ]
            )
    return [
        f"{REPORTS} comparisons of A with A.",
        Sheet(["launches drawn", "judged by", *names], frozenset(names), lines),
        f"First look at {statistics.FIRST_LOOK} launches; false discoveries held at "
        f"{change.FALSE_DISCOVERY_RATE:.0%}; a change under {change.SMALLEST:.0%} does not count "
        f"(memory: under {change.QUANTITIES['memory'].smallest:.0%}).",
        tables.measured_on(launch for launches in pools.values() for launch in launches),
    ]


if __name__ == "__main__":
    tables.run("false_alarms", table)

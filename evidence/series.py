"""Do turns find smaller changes? Series of two releases, with a change that was really injected.

Resamples the pools of `evidence.pools` and `evidence.power`, whose launches were made in turns: the
launches of the same number in two pools were made within a minute. A try is a comparison of eight
workloads; of one of them the second release is faulty, or no release is. Each series ends by the
suite's own rule.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torchcompile_suite.analysis import change, statistics
from torchcompile_suite.analysis.change import Comparison, Difference, Side
from torchcompile_suite.cell import Cell
from torchcompile_suite.engine import settings
from torchcompile_suite.engine.rounds import TELLING_ROUNDS
from torchcompile_suite.measurement import OK, Launch, Measurement
from torchcompile_suite.presentation.sheets import Sheet

from . import faults, power, tables
from .pools import CELLS, every_pool

TRIES = 200
COPIES = 2
# Launches before and after, in the order of their rounds.
Pair = tuple[list[Launch], list[Launch]]


def twins(launches: list[Launch]) -> Pair:
    """A release beside itself: every second launch stands for the second release."""
    return launches[0::2], launches[1::2]


def drawn(
    pair: Pair, cell: Cell, random: np.random.Generator, most: int = TELLING_ROUNDS
) -> tuple[Measurement, Measurement]:
    """A series of two releases, from a random round of the pools on, ended by the suite's rule, or
    after ``most`` rounds.
    """
    length = min(map(len, pair))
    start = int(random.integers(0, length))
    sides: tuple[list[Launch], list[Launch]] = ([], [])
    for number in range(1, most + 1):
        for side, launches in zip(sides, pair, strict=True):
            launch = launches[(start + number - 1) % length]
            kind = "cold" if number == 1 else "warm"
            side.append(msgspec.structs.replace(launch, kind=kind, series=str(cell), round=number))
        if number >= statistics.FIRST_LOOK and _told(cell, sides):
            break
    before, after = (
        Measurement(cell, OK, side, "2026-01-01T00:00:00+00:00", 0.0, "budget") for side in sides
    )
    return before, after


def _told(cell: Cell, sides: Pair) -> bool:
    precise = all(statistics.precise(side, settings.PRECISION) for side in sides)
    return precise and change.told(cell, *sides)


def table() -> list[tables.Part]:
    """A line for each fault."""
    names = ["found", "other cells flagged", "rounds", "± eager", "± compiled"]
    made = power.measured()
    pools = every_pool()
    lines = [
        [
            f"{power.FAULTS[fault]} {power.size(fault, made)}" if fault else "none",
            *tried(pools, made, fault),
        ]
        for fault in ("", *power.FAULTS)
    ]
    return [
        f"{TRIES} comparisons of eight workloads in series of at most {TELLING_ROUNDS} rounds, one "
        "of the workloads faulty in the second release. ±: the median half-width of a change.",
        Sheet(["injected", *names], frozenset(names), lines),
        tables.measured_on(one for launches in pools.values() for one in launches),
    ]


def tried(
    healthy: dict[str, list[Launch]],
    launches: dict[str, list[Launch]],
    fault: str,
    most: int = TELLING_ROUNDS,
) -> list[str]:
    """The figures of series of at most so many rounds."""
    pools = {name: twins(made) for name, made in healthy.items()}
    target = next(name for name, cell in CELLS.items() if cell.workload == faults.HEALTHY)
    target_cell = Cell(f"{target}-0", 1, "default")
    random = np.random.default_rng(2024)
    faulty = (launches[faults.HEALTHY], launches[fault]) if fault else pools[target]
    widths: dict[str, list[float]] = {}
    found = wrong = cells = rounds = 0
    for _ in range(TRIES):
        before, after = [], []
        for copy in range(COPIES):
            for name, pair in pools.items():
                cell = Cell(f"{name}-{copy}", 1, "default")
                sides = drawn(faulty if cell == target_cell else pair, cell, random, most)
                before.append(sides[0])
                after.append(sides[1])
                if cell == target_cell:
                    rounds += len(sides[0].launches)
        comparison = change.compare("pools", Side("a", before), Side("b", after))
        figure = power.FAULTS.get(fault, "")
        was_found, flagged = _judged(comparison, target_cell if fault else None, figure)
        found += was_found
        wrong += flagged
        _widths(comparison, widths)
        cells += len(pools) * COPIES - bool(fault)
    return [
        f"{found / TRIES:.1%}" if fault else "",
        f"{wrong / cells:.2%}",
        f"{rounds / TRIES:.1f}",
        *(f"{np.median(widths[name]):.2%}" for name in ("eager", "compiled")),
    ]


def _judged(comparison: Comparison, faulty: Cell | None, figure: str) -> tuple[bool, int]:
    """Whether the faulty cell's figure is worse, and how many other cells are flagged."""
    found, wrong = False, 0
    for one in comparison.changes:
        if one.cell == faulty:
            found = one.effects[figure].difference is Difference.WORSE
        else:
            wrong += one.changed
    return found, wrong


def _widths(comparison: Comparison, widths: dict[str, list[float]]) -> None:
    for one in comparison.changes:
        for name, effect in one.effects.items():
            widths.setdefault(name, []).append(statistics.half_width(effect.factor))


if __name__ == "__main__":
    tables.run("series", table)

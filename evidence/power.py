"""Is a real change found? Compiled code that is 3 % slower, injected.

Collects launches of the faulty workload (`evidence.injected`) in turns with the healthy one, for 20
minutes. Then it compares matrices in which one workload has become faulty. "Found" means
that the report calls that cell's figure worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from torchcompile_suite.analysis import change, statistics
from torchcompile_suite.analysis.change import Difference, Side
from torchcompile_suite.cell import Cell
from torchcompile_suite.measurement import Launch, Measurement
from torchcompile_suite.presentation.sheets import Sheet

from . import collect, draws, false_alarms, faults, tables
from .collect import Pool
from .pools import CELLS, POOLS, every_pool

FOLDER = POOLS.with_name("pools-power")
TRIES = 200
LAUNCHES = 20
# This many launches of the healthy workload measure what a call takes on this machine.
CALIBRATION = 5
# Targets of the stopping rule for the ratio's interval. No cell reaches the last one: there the
# budget ends the measurement.
PRECISIONS = (0.03, 0.02, 0.01, 0.001)
SLOWER_CALL = 0.03
FIGURE = "time ratio"


def measure() -> None:
    """Fill the pools of the healthy and the faulty workload."""
    _fill({faults.HEALTHY: CALIBRATION})
    healthy = collect.kept(FOLDER, faults.HEALTHY)[:CALIBRATION]
    call_s = float(np.median([statistics.launch_latency(launch.pairs_s) for launch in healthy]))
    sizes = {
        faults.CALL_VARIABLE: str(SLOWER_CALL * call_s),
        "TORCHCOMPILE_SUITE_WORKLOADS": str(Path(__file__).with_name("injected.py")),
    }
    # More launches of the healthy workload, now in turns with the faulty one.
    _fill({faults.HEALTHY: CALIBRATION + LAUNCHES, faults.FAULTY: LAUNCHES}, sizes)


def _fill(wanted: dict[str, int], variables: Mapping[str, str] = collect.NONE) -> None:
    """Fill the pool of each workload up to that many launches."""
    pools = [Pool(name, Cell(name, 1, "default"), count) for name, count in wanted.items()]
    collect.fill(FOLDER, pools, variables)


def measured() -> tuple[list[Launch], list[Launch]]:
    """The launches of the healthy and the faulty workload.

    Of the rounds in which others disturbed none of them: a run would have repeated it.
    """
    healthy = collect.kept(FOLDER, faults.HEALTHY)[CALIBRATION:]
    faulty = collect.kept(FOLDER, faults.FAULTY)
    rounds = [
        made
        for made in zip(healthy, faulty, strict=True)
        if not any(statistics.disturbed(launch) for launch in made)
    ]
    return [one for one, _ in rounds], [one for _, one in rounds]


def size(healthy: list[Launch], faulty: list[Launch]) -> str:
    """What the fault really is, in words."""
    logs = [np.log(change.values(FIGURE, launches)).mean() for launches in (healthy, faulty)]
    return f"{np.exp(logs[1] - logs[0]) - 1:+.1%}"


def table() -> list[tables.Part]:
    """A line for each target of the stopping rule."""
    names = ["true size", "precision", "found", "other cells flagged", "launches a side"]
    made = measured()
    lines = [[size(*made), *figures] for figures in _found(*made)]
    return [
        f"{TRIES} comparisons of eight workloads, one of them faulty. precision: what the stopping "
        "rule asks of the ratio's interval; at the smallest one the whole budget is used.",
        Sheet(names, frozenset(names), lines),
        tables.measured_on(one for launches in made for one in launches),
    ]


def _found(healthy: list[Launch], faulty: list[Launch]) -> Iterator[list[str]]:
    """A line of figures for each target of the stopping rule."""
    name = next(name for name, cell in CELLS.items() if cell.workload == faults.HEALTHY)
    cell = Cell(f"{name}-0", 1, "default")
    pools = every_pool()
    for precision in PRECISIONS:
        random = np.random.default_rng(2024)
        found = wrong = used = 0
        for _ in range(TRIES):
            before, after = (false_alarms.matrix(pools, random, in_a_row=False) for _ in range(2))
            before, after = (
                [
                    draws.measurement(made, cell, random, precision=precision)
                    if measurement.cell == cell
                    else measurement
                    for measurement in side
                ]
                for side, made in ((before, healthy), (after, faulty))
            )
            used += _launches(after, cell)
            comparison = change.compare("pools", Side("a", before), Side("b", after))
            for one in comparison.changes:
                if one.cell == cell:
                    found += one.effects[FIGURE].difference is Difference.WORSE
                elif one.cell.workload != cell.workload:
                    wrong += one.changed
        yield [
            f"{precision:.1%}",
            f"{found / TRIES:.1%}",
            f"{wrong / TRIES:.2f} a report",
            f"{used / TRIES:.1f}",
        ]


def _launches(measurements: list[Measurement], cell: Cell) -> int:
    return next(
        len(measurement.launches) for measurement in measurements if measurement.cell == cell
    )


if __name__ == "__main__":
    tables.run("power", table, measure)

"""Is a real change found? 5 % and 3 % slower compiled code and an 8 % dearer compile, injected.

Collects launches of the faulty workloads (`evidence.injected`) in turns with the healthy one, for a
quarter of an hour. Then it compares matrices in which one workload has become faulty. "Found" means
that the report calls that cell's figure worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from torchcompile_suite.analysis import change, statistics
from torchcompile_suite.analysis.change import Difference, Side
from torchcompile_suite.cell import Cell
from torchcompile_suite.measurement import Launch
from torchcompile_suite.presentation.sheets import Sheet

from . import collect, draws, false_alarms, faults, tables
from .collect import Pool
from .pools import CELLS, POOLS, every_pool

FOLDER = POOLS.with_name("pools-power")
TRIES = 200
LAUNCHES = 30
# This many launches of the healthy workload measure what a call takes on this machine.
CALIBRATION = 5
# Targets of the stopping rule for the ratio's interval. No cell reaches the last one: there the
# budget ends the measurement.
PRECISIONS = (0.03, 0.02, 0.01, 0.001)
SLOWER_CALL = 0.05
SLIGHTLY_SLOWER_CALL = 0.03
# A share of the compile cost. Time wasted inside the compiler adds a fifth more than it lasts.
SLOWER_COMPILE = 0.08
FAULTS = {
    "slower_call": "time ratio",
    "slightly_slower_call": "time ratio",
    "slower_compile": "warm compile",
}


def measure(
    folder: Path = FOLDER, which: Sequence[str] = tuple(FAULTS), launches: int = LAUNCHES
) -> None:
    """Fill the pools of the healthy workload and of those faulty ones."""
    _fill(folder, {faults.HEALTHY: CALIBRATION})
    healthy = collect.kept(folder, faults.HEALTHY)[:CALIBRATION]
    call_s = float(np.median([statistics.launch_latency(launch.pairs_s) for launch in healthy]))
    compile_s = float(np.median(statistics.compile_costs(healthy, "warm")))
    sizes = {
        faults.CALL_VARIABLE: str(SLOWER_CALL * call_s),
        faults.SLIGHT_CALL_VARIABLE: str(SLIGHTLY_SLOWER_CALL * call_s),
        faults.COMPILE_VARIABLE: str(SLOWER_COMPILE * compile_s),
        "TORCHCOMPILE_SUITE_WORKLOADS": str(Path(__file__).with_name("injected.py")),
    }
    # More launches of the healthy workload, now in turns with the faulty ones.
    wanted = {faults.HEALTHY: CALIBRATION + launches, **dict.fromkeys(which, launches)}
    _fill(folder, wanted, sizes)


def _fill(
    folder: Path, wanted: dict[str, int], variables: Mapping[str, str] = collect.NONE
) -> None:
    """Fill the pool of each workload up to that many launches."""
    pools = [Pool(name, Cell(name, 1, "default"), count) for name, count in wanted.items()]
    collect.fill(folder, pools, variables)


def measured(
    folder: Path = FOLDER, which: Sequence[str] = tuple(FAULTS), slowed: bool = False
) -> dict[str, list[Launch]]:
    """The launches of each workload.

    Of the rounds in which a neighbour disturbed none of them: a run would have repeated it.
    ``slowed``: a slow calibration loop does not count. A run counts such launches if all are so.
    """
    pools = {faults.HEALTHY: collect.kept(folder, faults.HEALTHY)[CALIBRATION:]}
    pools |= {fault: collect.kept(folder, fault) for fault in which}
    every = (launch for launches in pools.values() for launch in launches)
    quiet_s = None if slowed else statistics.quietest(every)
    rounds = [
        made
        for made in zip(*pools.values(), strict=True)
        if not any(statistics.disturbed(launch, quiet_s) for launch in made)
    ]
    return dict(zip(pools, map(list, zip(*rounds, strict=True)), strict=True))


def size(fault: str, launches: dict[str, list[Launch]]) -> str:
    """What the fault really is, in words."""
    healthy, faulty = (
        np.log(change.values(FAULTS[fault], launches[name])).mean()
        for name in (faults.HEALTHY, fault)
    )
    return f"{np.exp(faulty - healthy) - 1:+.1%}"


def table() -> list[tables.Part]:
    """A line for each fault and target of the stopping rule."""
    names = ["true size", "precision", "found", "other cells flagged", "launches a side"]
    made = measured()
    lines = [
        [fault.replace("_", " "), figure, size(fault, made), *figures]
        for fault, figure in FAULTS.items()
        for figures in _found(made[faults.HEALTHY], made[fault], figure)
    ]
    return [
        f"{TRIES} comparisons of eight workloads, one of them faulty. precision: what the stopping "
        "rule asks of the ratio's interval; at the smallest one the whole budget is used.",
        Sheet(["injected", "figure", *names], frozenset(names), lines),
        tables.measured_on(one for launches in made.values() for one in launches),
    ]


def _found(healthy: list[Launch], faulty: list[Launch], figure: str) -> Iterator[list[str]]:
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
            used += sum(len(one.launches) for one in after if one.cell == cell)
            comparison = change.compare("pools", Side("a", before), Side("b", after))
            for one in comparison.changes:
                if one.cell == cell:
                    found += one.effects[figure].difference is Difference.WORSE
                elif one.cell.workload != cell.workload:
                    wrong += one.changed
        yield [
            f"{precision:.1%}",
            f"{found / TRIES:.1%}",
            f"{wrong / TRIES:.2f} a report",
            f"{used / TRIES:.1f}",
        ]


if __name__ == "__main__":
    tables.run("power", table, measure)

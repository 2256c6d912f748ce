"""Is a real change found? 5 % and 3 % slower compiled code and a 10 % dearer compile, injected.

Collects launches of the faulty workloads (`evidence.injected`) in turns with the healthy one, for a
quarter of an hour. Then it compares matrices in which one workload has become faulty. "Found" means
that the report calls that cell's figure worse.
"""

from __future__ import annotations

import numpy as np

from torchcompile_suite.analysis import change, statistics
from torchcompile_suite.analysis.change import Difference, Side
from torchcompile_suite.cell import Cell, Launch, Measurement
from torchcompile_suite.host.files import read_lines
from torchcompile_suite.presentation.sheets import Sheet

from . import draws, false_alarms, faults, tables
from .collect import Job, Pool
from .pools import CELLS, NO_VECTOR_CHECK, POOLS, ROOT, pool, run_in_release

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
FOLDER = POOLS.with_name("pools-power")
FAULTS = {
    "slower_call": "time ratio",
    "slightly_slower_call": "time ratio",
    "slower_compile": "warm compile",
}


def measure() -> None:
    """Fill the pools of the healthy and the faulty workloads."""
    _fill({faults.HEALTHY: CALIBRATION}, NO_VECTOR_CHECK)
    healthy = launches_of(faults.HEALTHY)[:CALIBRATION]
    call_s = float(np.median([statistics.launch_latency(launch.pairs_s) for launch in healthy]))
    compile_s = float(np.median(statistics.compile_costs(healthy, "warm")))
    sizes = {
        faults.CALL_VARIABLE: str(SLOWER_CALL * call_s),
        faults.SLIGHT_CALL_VARIABLE: str(SLIGHTLY_SLOWER_CALL * call_s),
        faults.COMPILE_VARIABLE: str(SLOWER_COMPILE * compile_s),
        "TORCHCOMPILE_SUITE_WORKLOADS": str(ROOT / "evidence" / "injected.py"),
    }
    # More launches of the healthy workload, now in turns with the faulty ones.
    wanted = {faults.HEALTHY: CALIBRATION + LAUNCHES, **dict.fromkeys(FAULTS, LAUNCHES)}
    _fill(wanted, {**NO_VECTOR_CHECK, **sizes})


def _fill(wanted: dict[str, int], variables: dict[str, str]) -> None:
    """Fill the pool of each workload up to that many launches."""
    pools = [Pool(name, Cell(name, 1, "default"), forked=count) for name, count in wanted.items()]
    run_in_release(Job(pools, str(FOLDER), variables=variables))


def launches_of(name: str) -> list[Launch]:
    """The launches of one of the workloads, in the order of the rounds."""
    return read_lines(FOLDER / f"{name}.jsonl", Launch)


def size(fault: str) -> str:
    """What the fault really is, in words."""
    healthy, faulty = (
        np.log(change.values(FAULTS[fault], launches)).mean()
        for launches in (launches_of(faults.HEALTHY)[CALIBRATION:], launches_of(fault))
    )
    return f"{np.exp(faulty - healthy) - 1:+.1%}"


def table() -> list[tables.Part]:
    """A line for each fault and target of the stopping rule."""
    name = next(name for name, cell in CELLS.items() if cell.workload == faults.HEALTHY)
    cell = Cell(f"{name}-0", 1, "default")
    pools = {key: pool(key) for key in CELLS}
    healthy = launches_of(faults.HEALTHY)[CALIBRATION:]
    names = ["true size", "precision", "found", "other cells flagged", "launches a side"]
    lines = []
    for fault, figure in FAULTS.items():
        faulty = launches_of(fault)
        if not faulty:
            continue  # not measured yet
        for precision in PRECISIONS:
            random = np.random.default_rng(2024)
            found = wrong = used = 0
            for _ in range(TRIES):
                before, after = (
                    false_alarms.matrix(pools, random, in_a_row=False) for _ in range(2)
                )
                before, after = (
                    [
                        draws.measurement(launches, cell, random, precision=precision)
                        if measurement.cell == cell
                        else measurement
                        for measurement in side
                    ]
                    for side, launches in ((before, healthy), (after, faulty))
                )
                used += _launches(after, cell)
                comparison = change.compare("pools", Side("a", before), Side("b", after))
                for one in comparison.changes:
                    if one.cell == cell:
                        found += one.effects[figure].difference is Difference.WORSE
                    elif one.cell.workload != cell.workload:
                        wrong += one.changed
            lines.append(
                [
                    fault.replace("_", " "),
                    figure,
                    size(fault),
                    f"{precision:.1%}",
                    f"{found / TRIES:.1%}",
                    f"{wrong / TRIES:.2f} a report",
                    f"{used / TRIES:.1f}",
                ]
            )
    return [
        f"{TRIES} comparisons of eight workloads, one of them faulty. precision: what the stopping "
        "rule asks of the ratio's interval; at the smallest one the whole budget is used.",
        Sheet(["injected", "figure", *names], frozenset(names), lines),
        tables.measured_on(
            launch for name in (faults.HEALTHY, *FAULTS) for launch in launches_of(name)
        ),
    ]


def _launches(measurements: list[Measurement], cell: Cell) -> int:
    return next(
        len(measurement.launches) for measurement in measurements if measurement.cell == cell
    )


if __name__ == "__main__":
    tables.run("power", table, measure)

"""Is a real change found? 5 % slower compiled code and a 10 % dearer compilation, really injected.

Collects launches of the faulty workloads (`evidence.injected`) in turns with the healthy one, for a
quarter of an hour, and compares matrices in which one workload has become faulty. Found means: that
cell's figure is reported as worse.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from torchcompile_suite.analysis import change, statistics
from torchcompile_suite.analysis.change import Side, Verdict
from torchcompile_suite.cell import Cell, Launch, Measurement
from torchcompile_suite.host.files import read_lines

from . import draws, false_alarms, injected
from .collect import Job, Pool
from .pools import CELLS, NO_VECTOR_CHECK, POOLS, ROOT, pool, run_in_release

TRIES = 200
LAUNCHES = 30
# As many of the healthy workload say what 5 % of a call is on this machine.
CALIBRATION = 5
# What the stopping rule asks of the ratio's interval; at the last, the budget ends them all.
PRECISIONS = (0.03, 0.02, 0.01, 0.001)
SLOWER_CALL = 0.05
# Of the cost; what it wastes in the compiler costs a fifth more than it lasts.
SLOWER_COMPILE = 0.08
FOLDER = POOLS.with_name("pools-power")
FAULTS = {"slower_call": "time ratio", "slower_compile": "warm compile"}


def collect() -> None:
    """Fill the pools of the healthy and the faulty workloads."""
    _fill({injected.HEALTHY: CALIBRATION}, NO_VECTOR_CHECK)
    healthy = read_lines(FOLDER / f"{injected.HEALTHY}.jsonl", Launch)[:CALIBRATION]
    call_s = float(np.median([statistics.launch_latency(one.pairs_s) for one in healthy]))
    compile_s = float(np.median(statistics.compile_costs(healthy, "warm")))
    sizes = {
        injected.CALL_VARIABLE: str(SLOWER_CALL * call_s),
        injected.COMPILE_VARIABLE: str(SLOWER_COMPILE * compile_s),
        "TORCHCOMPILE_SUITE_WORKLOADS": str(ROOT / "evidence" / "injected.py"),
    }
    # The healthy ones once more: these are in turns with the faulty.
    wanted = {injected.HEALTHY: CALIBRATION + LAUNCHES, **dict.fromkeys(FAULTS, LAUNCHES)}
    _fill(wanted, {**NO_VECTOR_CHECK, **sizes})


def _fill(wanted: dict[str, int], variables: dict[str, str]) -> None:
    """Have so many launches of each workload."""
    pools = [Pool(name, Cell(name, 1, "default"), forked=count) for name, count in wanted.items()]
    run_in_release(Job(pools, str(FOLDER), variables=variables))


def main() -> None:
    """Collect, and print the table."""
    collect()
    name = next(name for name, cell in CELLS.items() if cell.workload == injected.HEALTHY)
    pools = {key: pool(key) for key in CELLS}
    healthy = read_lines(FOLDER / f"{injected.HEALTHY}.jsonl", Launch)[CALIBRATION:]
    table = Table("injected", "figure", title=f"{TRIES} tries, one faulty workload of eight")
    for column in ("true size", "precision", "found", "wrong cells flagged", "launches a side"):
        table.add_column(column, justify="right")
    for fault, figure in FAULTS.items():
        faulty = read_lines(FOLDER / f"{fault}.jsonl", Launch)
        sides = [np.log(change.values(figure, one)).mean() for one in (healthy, faulty)]
        for precision in PRECISIONS:
            random = np.random.default_rng(2024)
            found = wrong = used = 0
            for _ in range(TRIES):
                before, after = (
                    false_alarms.matrix(pools, random, in_a_row=False) for _ in range(2)
                )
                cell = Cell(f"{name}-0", 1, "default")
                before, after = (
                    [
                        draws.measurement(its, cell, random, precision=precision)
                        if one.cell == cell
                        else one
                        for one in side
                    ]
                    for side, its in ((before, healthy), (after, faulty))
                )
                used += _launches(after, cell)
                for one in change.compare("pools", Side("a", before), Side("b", after)).changes:
                    if one.cell == cell:
                        found += one.effects[figure].verdict is Verdict.WORSE
                    elif one.cell.workload != cell.workload:
                        wrong += one.changed
            table.add_row(
                fault,
                figure,
                f"{np.exp(sides[1] - sides[0]) - 1:+.1%}",
                f"{precision:.1%}",
                f"{found / TRIES:.1%}",
                f"{wrong / TRIES:.2f} a report",
                f"{used / TRIES:.1f}",
            )
    Console(width=120).print(table)


def _launches(measurements: list[Measurement], cell: Cell) -> int:
    return next(len(one.launches) for one in measurements if one.cell == cell)


if __name__ == "__main__":
    main()

"""Do a forked launch and a fresh interpreter measure the same? And does the parent matter?

`ROUNDS` parents, one after the other. Each forks `EACH` launches of a cell, in turns with as many
fresh ones. The figures of forked launches must lie where those of fresh ones lie and spread alike,
and launches of one parent must agree no more than fresh launches of the same minutes do. Takes half
an hour.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from torchcompile_suite.analysis import change
from torchcompile_suite.cell import Launch
from torchcompile_suite.host.files import read_lines
from torchcompile_suite.presentation.sheets import Sheet

from . import tables
from .collect import Job, Pool
from .pools import CELLS, NO_VECTOR_CHECK, POOLS, run_in_release

ROUNDS = 6
EACH = 4
FOLDER = POOLS.with_name("pools-processes")
NAMES = ("transformer", "tiny")
FIGURES = ("time ratio", "eager", "compiled", "warm compile", "memory")


def measure() -> None:
    """Fill the pools: a new parent for each round and cell."""
    for number in range(1, ROUNDS + 1):
        for name in NAMES:
            pool = Pool(name, CELLS[name], EACH * number, EACH * number)
            run_in_release(Job([pool], str(FOLDER), variables=NO_VECTOR_CHECK))


def logs(figure: str, launches: list[Launch], process: str) -> np.ndarray:
    """The logs of the figure by parent: of shape (`ROUNDS`, `EACH`)."""
    chosen = [launch for launch in launches if launch.process == process]
    # A disturbed launch has no value in `change`. No launch of these pools is marked as disturbed.
    return np.log(change.values(figure, chosen)).reshape(ROUNDS, EACH)


def table() -> list[tables.Part]:
    """A line for each cell and figure."""
    names = [
        "forked over fresh",
        "95 % interval",
        "sd forked",
        "sd fresh",
        "same spread, p",
        "same distribution, p",
        "parents alike, p",
        "minutes alike, p",
    ]
    lines = []
    kept = []
    for name in NAMES:
        launches = read_lines(FOLDER / f"{name}.jsonl", Launch)
        kept += launches
        for figure in FIGURES:
            forked, fresh = (logs(figure, launches, kind) for kind in ("forked", "fresh"))
            # Welch's test: the two spreads need not be equal.
            test = stats.ttest_ind(forked.ravel(), fresh.ravel(), equal_var=False)
            interval = test.confidence_interval()
            lines.append(
                [
                    name,
                    figure,
                    f"{np.exp(forked.mean() - fresh.mean()):.3f}",
                    f"{np.exp(interval.low):.3f} to {np.exp(interval.high):.3f}",
                    f"{forked.std(ddof=1):.1%}",
                    f"{fresh.std(ddof=1):.1%}",
                    # Brown and Forsythe's test, which is robust against outliers.
                    f"{stats.levene(forked.ravel(), fresh.ravel(), center='median').pvalue:.2f}",
                    f"{stats.ks_2samp(forked.ravel(), fresh.ravel()).pvalue:.2f}",
                    f"{stats.kruskal(*forked).pvalue:.2f}",
                    f"{stats.kruskal(*fresh).pvalue:.2f}",
                ]
            )
    return [
        f"{ROUNDS * EACH} forked and {ROUNDS * EACH} fresh launches in turns, the forked ones from "
        f"{ROUNDS} parents. p of the tests of Brown and Forsythe (spread), Kolmogorov and Smirnov "
        "(distribution), Kruskal and Wallis (parents, minutes).",
        Sheet(["pool", "figure", *names], frozenset(names), lines),
        tables.measured_on(kept),
    ]


if __name__ == "__main__":
    tables.run("processes", table, measure)

"""Do a forked launch and a fresh interpreter measure the same? And does it matter which parent?

`ROUNDS` parents one after the other, each of which forks `EACH` launches of a cell in turns with as
many fresh ones. A figure of forked ones must lie where that of fresh ones does, spread alike, and
not hang together by parent any more than fresh ones of the same minutes do. Takes half an hour.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

from torchcompile_suite.analysis import change
from torchcompile_suite.cell import Launch
from torchcompile_suite.host.files import read_lines

from .collect import Job, Pool
from .pools import CELLS, NO_VECTOR_CHECK, POOLS, run_in_release

ROUNDS = 6
EACH = 4
FOLDER = POOLS.with_name("pools-processes")
NAMES = ("transformer", "tiny")
FIGURES = ("time ratio", "eager", "compiled", "warm compile", "memory")


def collect() -> None:
    """Fill the pools, a parent a round and cell."""
    for number in range(1, ROUNDS + 1):
        for name in NAMES:
            pool = Pool(name, CELLS[name], EACH * number, EACH * number)
            run_in_release(Job([pool], str(FOLDER), variables=NO_VECTOR_CHECK))


def logs(figure: str, launches: list[Launch], process: str) -> np.ndarray:
    """The figure's logs by parent: of shape (rounds, each)."""
    chosen = [one for one in launches if one.process == process]
    # In `change` a launch set aside has no value; nothing is set aside here.
    return np.log(change.values(figure, chosen)).reshape(ROUNDS, EACH)


def main() -> None:
    """Collect, and print the table."""
    collect()
    table = Table(title=f"{ROUNDS * EACH} forked and {ROUNDS * EACH} fresh launches in turns")
    for name in ("cell", "figure"):
        table.add_column(name)
    for name in (
        "forked over fresh",
        "95 % interval",
        "sd forked",
        "sd fresh",
        "same spread, p",
        "same distribution, p",
        "parents alike, p",
        "minutes alike, p",
    ):
        table.add_column(name, justify="right")
    for name in NAMES:
        launches = read_lines(FOLDER / f"{name}.jsonl", Launch)
        for figure in FIGURES:
            forked, fresh = (logs(figure, launches, kind) for kind in ("forked", "fresh"))
            # Welch: the two need not spread alike.
            found = stats.ttest_ind(forked.ravel(), fresh.ravel(), equal_var=False)
            interval = found.confidence_interval()
            table.add_row(
                name,
                figure,
                f"{np.exp(forked.mean() - fresh.mean()):.3f}",
                f"{np.exp(interval.low):.3f} to {np.exp(interval.high):.3f}",
                f"{forked.std(ddof=1):.1%}",
                f"{fresh.std(ddof=1):.1%}",
                # Brown and Forsythe's, which outliers do not lead astray.
                f"{stats.levene(forked.ravel(), fresh.ravel(), center='median').pvalue:.2f}",
                f"{stats.ks_2samp(forked.ravel(), fresh.ravel()).pvalue:.2f}",
                f"{stats.kruskal(*forked).pvalue:.2f}",
                f"{stats.kruskal(*fresh).pvalue:.2f}",
            )
    Console(width=150).print(table)


if __name__ == "__main__":
    main()

"""Between-launch spread of the time ratio: how large, and what longer timing leaves of it."""

from __future__ import annotations

import math

import numpy as np
from rich.console import Console
from rich.table import Table

from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import Launch

from .pools import CELLS, pool

RESAMPLES = 500


def log_ratios(launches: list[Launch], share: float = 1.0) -> np.ndarray:
    """Each launch's log ratio, from the first part of its pairs."""
    return np.array(
        [
            math.log(
                statistics.launch_ratio(one.pairs_s[: max(3, round(len(one.pairs_s) * share))])
            )
            for one in launches
        ]
    )


def within(launches: list[Launch], random: np.random.Generator) -> float:
    """Root mean square over launches of the bootstrapped standard error of their own ratio."""
    errors = []
    for one in launches:
        pairs = np.array(one.pairs_s)
        logs = np.log(pairs[:, 1] / pairs[:, 0])
        drawn = random.integers(0, len(logs), (RESAMPLES, len(logs)))
        errors.append(float(np.median(logs[drawn], axis=1).var()))
    return math.sqrt(float(np.mean(errors)))


def autocorrelation(x: np.ndarray) -> float:
    """Correlation of each launch with the next of its pool."""
    return float(np.corrcoef(x[:-1], x[1:])[0, 1])


def main() -> None:
    """Print the table."""
    random = np.random.default_rng(2024)
    console = Console(width=140)
    spread = Table("cell", title="Spread of the log ratio between forked launches")
    for name in (
        "launches",
        "ratio",
        "sd, 1/8 of pairs",
        "1/4",
        "1/2",
        "all",
        "robust (MAD)",
        "of it within a launch",
        "sd of latency",
        "sd of warm compile",
        "correlation with next",
    ):
        spread.add_column(name, justify="right")
    for name in CELLS:
        forked = pool(name)
        x = log_ratios(forked)
        cost = np.log([statistics.compile_costs([one], "warm")[0] for one in forked])
        latency = np.log([statistics.launch_latency(one.pairs_s) for one in forked])
        mad = 1.4826 * float(np.median(np.abs(x - np.median(x))))
        spread.add_row(
            name,
            str(len(forked)),
            f"{math.exp(x.mean()):.3f}",
            *(f"{log_ratios(forked, share).std(ddof=1):.2%}" for share in (1 / 8, 1 / 4, 1 / 2, 1)),
            f"{mad:.2%}",
            f"{within(forked, random):.2%}",
            f"{latency.std(ddof=1):.1%}",
            f"{cost.std(ddof=1):.1%}",
            f"{autocorrelation(x):+.2f}",
        )
    console.print(spread)


if __name__ == "__main__":
    main()

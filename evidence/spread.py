"""How much does the time ratio differ between launches? And what does longer timing leave of it?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from torchcompile_suite.analysis import statistics
from torchcompile_suite.measurement import Launch
from torchcompile_suite.presentation.sheets import Sheet

from . import tables
from .pools import every_pool

RESAMPLES = 500
# The parts of the pairs that the table looks at.
SHARES = {"1/8 of pairs": 1 / 8, "1/4": 1 / 4, "1/2": 1 / 2, "all": 1.0}


def log_ratios(launches: Sequence[Launch], share: float = 1.0) -> np.ndarray:
    """The log ratio of each launch, from the first ``share`` of its pairs, three at least."""
    return np.array(
        [
            math.log(
                statistics.launch_ratio(
                    launch.pairs_s[: max(3, round(len(launch.pairs_s) * share))]
                )
            )
            for launch in launches
        ]
    )


def within(launches: list[Launch], random: np.random.Generator) -> float:
    """The part of the spread that is inside a launch.

    The root mean square over launches of the bootstrapped standard error of the log ratio.
    """
    errors = [float(resampled(launch, RESAMPLES, random).var()) for launch in launches]
    return math.sqrt(float(np.mean(errors)))


def resampled(launch: Launch, times: int, random: np.random.Generator) -> np.ndarray:
    """So many bootstrapped log ratios of a launch, from its pairs."""
    pairs = np.array(launch.pairs_s)
    logs = np.log(pairs[:, 1] / pairs[:, 0])
    drawn = random.integers(0, len(logs), (times, len(logs)))
    medians: np.ndarray = np.median(logs[drawn], axis=1)
    return medians


def autocorrelation(x: np.ndarray) -> float:
    """Correlation of each launch with the next one of its pool."""
    return float(np.corrcoef(x[:-1], x[1:])[0, 1])


def table() -> list[tables.Part]:
    """A line for each pool."""
    random = np.random.default_rng(2024)
    names = [
        "launches",
        "ratio",
        *SHARES,
        "robust (MAD)",
        "inside a launch",
        "latency",
        "warm compile",
        "correlation with the next",
    ]
    lines = []
    pools = every_pool()
    for name, launches in pools.items():
        x = log_ratios(launches)
        cost = np.log([statistics.compile_costs([launch], "warm")[0] for launch in launches])
        latency = np.log([statistics.launch_latency(launch.pairs_s) for launch in launches])
        mad = 1.4826 * float(np.median(np.abs(x - np.median(x))))
        lines.append(
            [
                name,
                str(len(launches)),
                f"{math.exp(x.mean()):.3f}",
                *(f"{log_ratios(launches, share).std(ddof=1):.2%}" for share in SHARES.values()),
                f"{mad:.2%}",
                f"{within(launches, random):.2%}",
                f"{latency.std(ddof=1):.1%}",
                f"{cost.std(ddof=1):.1%}",
                f"{autocorrelation(x):+.2f}",
            ]
        )
    return [
        "Standard deviation between launches of the log ratio, if each launch had timed only the "
        "first part of its pairs; of the log latency and of the log warm compile cost.",
        Sheet(["pool", *names], frozenset(names), lines),
        tables.measured_on(launch for launches in pools.values() for launch in launches),
    ]


if __name__ == "__main__":
    tables.run("spread", table)

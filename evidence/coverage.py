"""How often does an interval contain the true value? Resampled from the pools.

The mean over a pool is taken as its true value. Each draw takes launches from the pool at random,
as a measurement would meet them. Each method then computes its 95 % interval of the time ratio:
from a fixed number of launches, and from as many as the stopping rule asks for. "In a row" takes
launches that really followed each other instead, so that the drift of the machine stays in; there
are only as many such draws as launches.

The confidence levels of our method were chosen with launches of an earlier method on another
machine. The pools test them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import t

from torchcompile_suite.analysis import statistics
from torchcompile_suite.engine import settings
from torchcompile_suite.measurement import Launch
from torchcompile_suite.presentation.sheets import Sheet

from . import tables
from .pools import every_pool
from .spread import log_ratios, resampled

DRAWS = 4000
RESAMPLES = 300
# The share of intervals that contain the true value is to lie between these.
AIM = (0.93, 0.97)
Array = np.ndarray
# (log ratios of the launches, their squared standard errors, bootstrapped log ratios) -> interval
Method = Callable[[Array, Array, Array, np.random.Generator], tuple[float, float]]


def t_on_launches(
    x: Array, _se2: Array, _boot: Array, _: np.random.Generator
) -> tuple[float, float]:
    """Student's t over launches: only the spread between launches counts."""
    interval = statistics.geometric_interval(np.exp(x).tolist(), statistics.CONFIDENCE)
    return math.log(interval.low), math.log(interval.high)


def hierarchical_bootstrap(
    x: Array, _se2: Array, boot: Array, random: np.random.Generator
) -> tuple[float, float]:
    """Launches resampled, and pairs within each; percentiles (Davison and Hinkley 1997, 3.8)."""
    n = len(x)
    launch = random.integers(0, n, (RESAMPLES, n))
    within = random.integers(0, boot.shape[1], (RESAMPLES, n))
    low, high = np.quantile(boot[launch, within].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def random_effects(
    x: Array, se2: Array, _boot: Array, _: np.random.Generator
) -> tuple[float, float]:
    """DerSimonian and Laird's weights with Hartung and Knapp's interval (Stat. Med. 20, 2001)."""
    n = len(x)
    w = 1 / se2
    mean = float((w * x).sum() / w.sum())
    q = float((w * (x - mean) ** 2).sum())
    between = max(0.0, (q - (n - 1)) / float(w.sum() - (w**2).sum() / w.sum()))
    w = 1 / (se2 + between)
    mean = float((w * x).sum() / w.sum())
    spread = float((w * (x - mean) ** 2).sum() / ((n - 1) * w.sum()))
    half = float(t.ppf(0.975, n - 1)) * math.sqrt(spread)
    return mean - half, mean + half


def corrected(x: Array, _se2: Array, _boot: Array, _: np.random.Generator) -> tuple[float, float]:
    """The suite's interval when the stopping rule decided the number of launches."""
    interval = statistics.sequential_interval(np.exp(x).tolist())
    return math.log(interval.low), math.log(interval.high)


def planned(x: Array, _se2: Array, _boot: Array, _: np.random.Generator) -> tuple[float, float]:
    """The suite's interval for a planned number of launches."""
    interval = statistics.geometric_interval(np.exp(x).tolist())
    return math.log(interval.low), math.log(interval.high)


METHODS: dict[str, Method] = {
    "t on launches": t_on_launches,
    "hierarchical bootstrap": hierarchical_bootstrap,
    "random effects": random_effects,
    "ours": corrected,
}


class Pool:
    """The launches of a pool, with what the methods need of each launch.

    ``x``: log ratios, one a launch; ``boot``: bootstrapped log ratios, launches x `RESAMPLES`;
    ``se2``: squared standard errors; ``truth``: the mean log ratio.
    """

    def __init__(self, launches: Sequence[Launch], random: np.random.Generator) -> None:
        self.x = log_ratios(launches)
        self.truth = float(self.x.mean())
        self.boot = np.array([resampled(launch, RESAMPLES, random) for launch in launches])
        self.se2 = self.boot.var(axis=1)

    def interval(
        self, method: Method, drawn: Array, random: np.random.Generator
    ) -> tuple[float, float]:
        return method(self.x[drawn], self.se2[drawn], self.boot[drawn], random)

    def contains(self, method: Method, drawn: Array, random: np.random.Generator) -> bool:
        """Whether the interval from the drawn launches contains the true value."""
        low, high = self.interval(method, drawn, random)
        return low <= self.truth <= high

    def stopped(self, method: Method, drawn: Array, random: np.random.Generator) -> Array:
        """The drawn launches up to the one after which the stopping rule ends."""
        for n in range(statistics.FIRST_LOOK, len(drawn) + 1):
            low, high = self.interval(method, drawn[:n], random)
            if math.exp((high - low) / 2) - 1 <= settings.PRECISION:
                break
        return drawn[:n]

    def single_process(self) -> float:
        """Share of launches whose own interval, from their own pairs, contains the true value."""
        intervals = np.quantile(self.boot, [0.025, 0.975], axis=1).T
        return float(np.mean([low <= self.truth <= high for low, high in intervals]))


def table() -> list[tables.Part]:
    """A line for each pool and method."""
    random = np.random.default_rng(2024)
    names = ["1 launch", "3 launches", "6 launches", "3 in a row", "stopping rule", "used"]
    columns = ["pool", "method", *names]
    lines = []
    outside = 0
    pools = every_pool()
    for name, launches in pools.items():
        drawn_from = Pool(launches, random)
        count = len(launches)
        alone = f"{drawn_from.single_process():.1%}"
        lines.append([name, "one process alone", alone, *[""] * (len(names) - 1)])
        for label, method in METHODS.items():
            shares = []
            fixed = planned if method is corrected else method
            for n in (3, 6):
                contained = sum(
                    drawn_from.contains(fixed, random.integers(0, count, n), random)
                    for _ in range(DRAWS)
                )
                shares.append(contained / DRAWS)
            row = sum(
                drawn_from.contains(method, np.arange(start, start + 3) % count, random)
                for start in range(count)
            )
            used, contained = [], 0
            for _ in range(DRAWS):
                drawn = random.integers(0, count, settings.MOST_LAUNCHES)
                drawn = drawn_from.stopped(method, drawn, random)
                used.append(len(drawn))
                contained += drawn_from.contains(method, drawn, random)
            shares.append(contained / DRAWS)
            three, six, stopped = (f"{share:.1%}" for share in shares)
            lines.append(
                [
                    *(name, label, "", three, six),
                    *(f"{row / count:.1%}", stopped, f"{np.mean(used):.1f}"),
                ]
            )
            if method is corrected:
                outside += sum(not AIM[0] <= share <= AIM[1] for share in shares)
    error, largest = (math.sqrt(share * (1 - share) / DRAWS) for share in (0.95, 0.5))
    error_in_a_row = math.sqrt(0.95 * 0.05 / 60)
    return [
        f"Share of nominal 95 % intervals that contain the true value, {DRAWS} draws a figure. "
        "used: launches until the stopping rule ended, on average.",
        Sheet(columns, frozenset(names), lines),
        f"Standard error of a share: {error:.1%} near 95%, up to {largest:.1%}; in a row, whose "
        f"windows overlap: {error_in_a_row:.1%} or more. Of ours, "
        f"{outside} of {3 * len(pools)} shares are outside {AIM[0]:.0%} to {AIM[1]:.0%}.",
        tables.measured_on(one for launches in pools.values() for one in launches),
    ]


if __name__ == "__main__":
    tables.run("coverage", table)

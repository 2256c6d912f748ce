"""How often does an interval hold the truth? Resampled from the pools, whose value is the truth.

Each draw takes launches from the pool at random, as a measurement would meet them, and asks each
method for its 95 % interval of the time ratio: from a fixed number of launches, and from as many as
the stopping rule wanted. "In a row" takes launches that really followed each other instead, so that
the machine's moods stay in; there are only as many of those as launches.

The confidences that ours asks t for were chosen on the second machine's pools; the first's, of the
method as it is now, try them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import t

from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import Launch
from torchcompile_suite.measuring import settings

from .pools import CELLS, OTHER_POOLS, pool

DRAWS = 4000
RESAMPLES = 300
Array = np.ndarray
# (log ratios of the launches, their squared standard errors, bootstrapped log ratios) -> interval
Method = Callable[[Array, Array, Array, np.random.Generator], tuple[float, float]]


def t_on_launches(
    x: Array, _se2: Array, _boot: Array, _: np.random.Generator
) -> tuple[float, float]:
    """Student's t over launches: the between-launch spread is all that counts."""
    found = statistics.geometric_interval(np.exp(x).tolist(), statistics.CONFIDENCE)
    return math.log(found.low), math.log(found.high)


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
    """What the suite reports when the stopping rule decided: t, asked for more than 95 %."""
    found = statistics.sequential_interval(np.exp(x).tolist())
    return math.log(found.low), math.log(found.high)


def planned(x: Array, _se2: Array, _boot: Array, _: np.random.Generator) -> tuple[float, float]:
    """What the suite reports of a planned number of launches."""
    found = statistics.geometric_interval(np.exp(x).tolist())
    return math.log(found.low), math.log(found.high)


METHODS: dict[str, Method] = {
    "t on launches": t_on_launches,
    "hierarchical bootstrap": hierarchical_bootstrap,
    "random effects": random_effects,
    "ours": corrected,
}


class Pool:
    """A pool's launches, with what the methods need of each."""

    def __init__(self, launches: Sequence[Launch], random: np.random.Generator) -> None:
        self.x = np.array([math.log(statistics.launch_ratio(one.pairs_s)) for one in launches])
        self.truth = float(self.x.mean())
        self.boot = np.array([self._resampled(one, random) for one in launches])
        self.se2 = self.boot.var(axis=1)

    @staticmethod
    def _resampled(launch: Launch, random: np.random.Generator) -> Array:
        pairs = np.array(launch.pairs_s)
        logs = np.log(pairs[:, 1] / pairs[:, 0])
        drawn = random.integers(0, len(logs), (RESAMPLES, len(logs)))
        found: Array = np.median(logs[drawn], axis=1)
        return found

    def interval(
        self, method: Method, drawn: Array, random: np.random.Generator
    ) -> tuple[float, float]:
        return method(self.x[drawn], self.se2[drawn], self.boot[drawn], random)

    def holds(self, method: Method, drawn: Array, random: np.random.Generator) -> bool:
        low, high = self.interval(method, drawn, random)
        return low <= self.truth <= high

    def stopped(self, method: Method, drawn: Array, random: np.random.Generator) -> Array:
        """The part of the drawn launches after which the stopping rule ends."""
        for n in range(statistics.FIRST_LOOK, len(drawn) + 1):
            low, high = self.interval(method, drawn[:n], random)
            if math.exp((high - low) / 2) - 1 <= settings.PRECISION:
                break
        return drawn[:n]


def single_process(pool: Pool, launches: Sequence[Launch]) -> float:
    """Share of launches whose own interval, from their own pairs alone, holds the pool's value."""
    held = 0
    for number in range(len(launches)):
        low, high = np.quantile(pool.boot[number], [0.025, 0.975])
        held += bool(low <= pool.truth <= high)
    return held / len(launches)


def main() -> None:
    """Print the table."""
    random = np.random.default_rng(2024)
    table = Table("cell", "launches", "method", title=f"Coverage of 95 % intervals, {DRAWS} draws")
    for name in ("n = 3", "n = 6", "in a row, n = 3", "stopping rule", "launches used"):
        table.add_column(name, justify="right")
    outside = 0
    pools = {name: pool(name) for name in CELLS}
    pools |= {f"{name}, {OTHER_POOLS.name}": pool(name, OTHER_POOLS) for name in CELLS}
    for name, launches in pools.items():
        drawn_from = Pool(launches, random)
        count = len(launches)
        alone = single_process(drawn_from, launches)
        table.add_row(
            name, str(count), "one process alone", f"{alone:.1%}", "", "", "", "", style="dim"
        )
        for label, method in METHODS.items():
            shares = []
            fixed = planned if method is corrected else method
            for n in (3, 6):
                held = sum(
                    drawn_from.holds(fixed, random.integers(0, count, n), random)
                    for _ in range(DRAWS)
                )
                shares.append(held / DRAWS)
            row = sum(
                drawn_from.holds(method, np.arange(start, start + 3) % count, random)
                for start in range(count)
            )
            used, held = [], 0
            for _ in range(DRAWS):
                drawn = random.integers(0, count, settings.MOST_LAUNCHES)
                drawn = drawn_from.stopped(method, drawn, random)
                used.append(len(drawn))
                held += drawn_from.holds(method, drawn, random)
            table.add_row(
                name,
                "",
                label,
                *(f"{share:.1%}" for share in shares),
                f"{row / count:.1%}",
                f"{held / DRAWS:.1%}",
                f"{np.mean(used):.1f}",
            )
            if method is corrected:
                outside += sum(not 0.93 <= share <= 0.97 for share in (*shares, held / DRAWS))
        table.add_section()
    console = Console(width=130)
    console.print(table)
    error = math.sqrt(0.95 * 0.05 / DRAWS)
    console.print(
        f"Standard error of each share: {error:.1%} (in a row: "
        f"{math.sqrt(0.95 * 0.05 / 60):.1%}). "
        f"Of ours, {outside} of {3 * len(pools)} lie outside 93-97 %.",
        highlight=False,
    )


if __name__ == "__main__":
    main()

"""Real launches to resample from: sixty of each of four different cells.

Writes ``evidence/pools/<cell>.jsonl``. Takes about forty minutes on two cores. An interrupted run
goes on where it stopped. Leave the machine alone meanwhile.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import Cell
from torchcompile_suite.measurement import Launch
from torchcompile_suite.presentation.sheets import Sheet

from . import collect, tables
from .collect import Pool

POOLS = Path(__file__).with_name("pools")

# A convolution net, a transformer, one fused kernel, and a function that is mostly overhead.
CELLS = {
    "conv": Cell("mobilenetv3_small_100", 1, "default"),
    "transformer": Cell("vit_tiny_patch16_224", 1, "default"),
    "pointwise": Cell("pointwise_chain", 1, "default"),
    "tiny": Cell("softmax_matmul", 1, "default"),
}
LAUNCHES = 60


def launches(name: str) -> list[Launch]:
    """All launches of one of the cells."""
    return collect.kept(POOLS, name)


def pool(name: str) -> list[Launch]:
    """The launches of one of the cells that count.

    A run would have repeated the others, because a neighbour disturbed them.
    """
    return [one for one in launches(name) if not statistics.disturbed(one, _quiet_s())]


def every_pool() -> dict[str, list[Launch]]:
    """The `pool` of each cell, by its name."""
    return {name: pool(name) for name in CELLS}


@cache
def _quiet_s() -> float | None:
    """Seconds of the calibration loop in the quietest launch of all pools; None if not known."""
    return statistics.quietest(one for name in CELLS for one in launches(name))


def measure() -> None:
    """Fill the pools."""
    collect.fill(POOLS, [Pool(name, cell, LAUNCHES) for name, cell in CELLS.items()])


def table() -> list[tables.Part]:
    """A line for each pool."""
    lines = [
        [name, str(cell), str(len(pool(name))), tables.measured_on(launches(name))]
        for name, cell in CELLS.items()
    ]
    columns = ["pool", "cell", "undisturbed", "measured"]
    return [Sheet(columns, frozenset(["undisturbed"]), lines)]


if __name__ == "__main__":
    tables.run("pools", table, measure)

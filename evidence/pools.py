"""Real launches to resample from: 24 of each of four different cells.

Writes ``evidence/pools/<cell>.jsonl``. Takes forty minutes on two cores. An interrupted run
goes on where it stopped. Leave the machine alone meanwhile.
"""

from __future__ import annotations

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
LAUNCHES = 24


def launches(name: str) -> list[Launch]:
    """All launches of one of the cells."""
    return collect.kept(POOLS, name)


def pool(name: str) -> list[Launch]:
    """The launches of one of the cells that count.

    A run would have repeated those that others disturbed. It repeats some of those with a slow
    calibration loop, too, and counts them if all are so, as here (`neighbours`).
    """
    return statistics.counted(one for one in launches(name) if not statistics.disturbed(one))


def every_pool() -> dict[str, list[Launch]]:
    """The `pool` of each cell, by its name."""
    return {name: pool(name) for name in CELLS}


def measure() -> None:
    """Fill the pools."""
    collect.fill(POOLS, [Pool(name, cell, LAUNCHES) for name, cell in CELLS.items()])


def table() -> list[tables.Part]:
    """A line for each pool."""
    lines = [
        [name, str(cell), str(len(pool(name))), tables.measured_on(launches(name))]
        for name, cell in CELLS.items()
    ]
    columns = ["pool", "cell", "count", "measured"]
    return [Sheet(columns, frozenset(["count"]), lines)]


if __name__ == "__main__":
    tables.run("pools", table, measure)

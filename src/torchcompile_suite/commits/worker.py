"""``python -m torchcompile_suite.commits.worker``: launches of one cell with this Python's torch.

Reads an `Order` from standard input. Writes each launch to standard output as a JSON line, as soon
as the launch ends. Stops after the first failed launch.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import msgspec

from ..cell import Cell, Plan
from ..measuring import processes
from ..measuring.launches import forks, launcher, make_launch


class Order(msgspec.Struct, frozen=True):
    """A request for N launches of a cell.

    ``cache`` is the folder of the compilers' caches. With ``cold``, each launch gets an empty
    folder of its own instead.
    """

    cell: Cell
    launches: int
    cache: str
    cold: bool = False
    plan: Plan = Plan()


def work(order: Order) -> None:
    """Make the launches, and write them to standard output."""
    if forks(order.cell):
        processes.preload()
    starter = launcher(order.cell)
    with tempfile.TemporaryDirectory(prefix="bisect-") as scratch:
        workspace = Path(scratch)
        for number in range(order.launches):
            cache = workspace / str(number) if order.cold else Path(order.cache)
            launch = make_launch(
                starter, order.cell, cache, workspace, plan=order.plan, observe=False
            )
            sys.stdout.buffer.write(msgspec.json.encode(launch) + b"\n")
            sys.stdout.buffer.flush()
            if not launch.outcome.ok:
                return


if __name__ == "__main__":
    work(msgspec.json.decode(sys.stdin.buffer.read(), type=Order))

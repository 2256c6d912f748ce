"""``python -m torchcompile_suite.commits.worker``: launches of one cell with this Python's torch.

Reads an `Order` on standard input; writes each launch to standard output, a JSON line, when it is
done. Ends after the first that failed, which is the last line then.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import msgspec

from ..cell import Cell, Plan
from ..measuring import processes
from ..measuring.launches import launcher, make_launch


class Order(msgspec.Struct, frozen=True):
    """So many launches of a cell. ``cache`` is the compilers' folder, empty before the first one;
    with ``cold`` each launch has an empty one of its own instead.
    """

    cell: Cell
    launches: int
    cache: str
    cold: bool = False
    plan: Plan = Plan()


def work(order: Order) -> None:
    """Make the launches."""
    if order.cell.device == "cpu" and order.cell.allocator == "system":
        processes.preload()
    starter = launcher(order.cell)
    with tempfile.TemporaryDirectory(prefix="bisect-") as scratch:
        workspace = Path(scratch)
        for number in range(order.launches):
            cache = workspace / str(number) if order.cold else Path(order.cache)
            made = make_launch(
                starter, order.cell, cache, workspace, plan=order.plan, observe=False
            )
            sys.stdout.buffer.write(msgspec.json.encode(made) + b"\n")
            sys.stdout.buffer.flush()
            if not made.outcome.ok:
                return


if __name__ == "__main__":
    work(msgspec.json.decode(sys.stdin.buffer.read(), type=Order))

"""``python -m torchcompile_suite.measuring.server``: launches with this Python's torch, on demand.

Reads an `Order` a line from standard input, and answers each with a `cell.Launch`. Torch is
imported once, before the first launch.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import msgspec

from ..cell import Cell, Launch, Outcome, Plan, Status
from ..host.orphans import die_with_parent
from . import processes
from .interpreter import Ended, Server
from .launches import forks, imports_of, launcher, make_launch
from .settings import LAUNCH_LIMIT_S

MODULE = "torchcompile_suite.measuring.server"


class Order(msgspec.Struct, frozen=True):
    """A request for one launch: see `launches.make_launch`. ``cache``: the compilers' caches."""

    cell: Cell
    cache: str
    plan: Plan = Plan()
    observe: bool = True
    limit_s: float = LAUNCH_LIMIT_S


class Launches:
    """Makes launches in another Python, with a server that starts at the first launch.

    The server stays for the next cell, because importing torch takes seconds. A cell that needs
    other libraries gets a new server: compile costs are compared only where the processes started
    with the same ones.
    """

    def __init__(self, python: Path) -> None:
        """Nothing starts yet."""
        self._python = python
        self._server: Server | None = None
        self._imported: tuple[str, ...] | None = None

    def make(self, order: Order) -> Launch:
        """The launch of the order. A server that cannot make it is a launch that crashed."""
        if forks(order.cell):
            imports = imports_of(order.cell)
            if self._imported not in (None, imports):
                self.close()
            self._imported = imports
        self._server = self._server or Server(self._python, MODULE)
        try:
            return msgspec.json.decode(self._server.ask(msgspec.json.encode(order)), type=Launch)
        except Ended as ended:
            self.close()
            reason = f"nothing was measured: {ended.completed.last_line}"
            return Launch("cold", Outcome(Status.CRASH, reason[:4000]))

    def close(self) -> None:
        """End the server and its processes."""
        if self._server is not None:
            self._server.close()
            self._server = self._imported = None


def main() -> None:
    """Serve until standard input ends."""
    die_with_parent()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print when they are imported is no answer
    with tempfile.TemporaryDirectory(prefix="launch-", ignore_cleanup_errors=True) as workspace:
        for line in sys.stdin.buffer:
            order = msgspec.json.decode(line, type=Order)
            if forks(order.cell) and "torch" not in sys.modules:
                processes.preload()
            launch = make_launch(
                launcher(order.cell),
                order.cell,
                Path(order.cache),
                Path(workspace),
                plan=order.plan,
                observe=order.observe,
                limit_s=order.limit_s,
            )
            answers.write(msgspec.json.encode(launch) + b"\n")
            answers.flush()


if __name__ == "__main__":
    main()

"""Launches forked from one process that has imported torch, as the suite made them at first.

They begin seconds earlier than fresh interpreters, and their numbers are not always those of a
script (docs/method.md, "Fresh processes"). The suite measures fresh processes only.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from torchcompile_suite.cell import Launch, Request
from torchcompile_suite.host.orphans import die_with_parent
from torchcompile_suite.launch import caches
from torchcompile_suite.launch.entry import import_quietly, work
from torchcompile_suite.measuring import turns
from torchcompile_suite.measuring.processes import Process, detach


def preload(imports: Sequence[str] = ()) -> None:
    """Prepare this process for forking launches: import torch, compute nothing."""
    die_with_parent()
    caches.drop()
    import_quietly(["torch", *imports])


class Forked:
    """Launches forked from this process, after `preload`. See `processes.Launcher`."""

    def run(self, request: Request, workspace: Path, limit_s: float) -> Launch:
        """Measure in two forks of this process."""
        return turns.launch(_start, request, workspace, limit_s)


def _start(log: Path) -> Process:
    log.write_bytes(b"")
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_main, args=(theirs, str(log)))
    process.start()
    theirs.close()
    assert process.pid is not None

    def join(limit_s: float | None) -> int | None:
        process.join(limit_s)
        return process.exitcode

    return Process(process.pid, ours, log, join)


def _main(connection: Connection, log: str) -> None:
    detach(log)
    work(connection, "forked")
    # The normal exit of the interpreter waits seconds for threads and compile workers of torch.
    os._exit(0)

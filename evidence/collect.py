"""Runs in the environment of a release: makes launches of a few cells, and keeps each as a line.

The cells take turns, so that the drift of the machine meets all of them alike. Only warm launches
are kept; the cold launch before them fills the cache.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from torchcompile_suite import workloads
from torchcompile_suite.cell import Cell, Launch, Plan
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.measuring import processes
from torchcompile_suite.measuring.launches import make_launch

from .forks import Forked, preload

LIMIT_S = 600.0
# prctl(2)
PR_SET_THP_DISABLE = 41


class Setting(msgspec.Struct, frozen=True):
    """What is done against noise.

    ``variables`` of the process, its niceness, whether the kernel may give it transparent huge
    pages, and seconds of rest before it.
    """

    variables: dict[str, str] = {}
    nice: int = 0
    huge_pages: bool = True
    rest_s: float = 0.0


class Pool(msgspec.Struct):
    """Launches of a cell, kept in one file. ``forked`` and ``fresh`` are the wanted numbers."""

    name: str
    cell: Cell
    forked: int = 0
    fresh: int = 0
    setting: Setting = Setting()

    def wanted(self, process: str) -> int:
        """The wanted number of forked or fresh launches."""
        return self.forked if process == "forked" else self.fresh


class Job(msgspec.Struct):
    """Pools to fill in a folder. ``variables`` are set in the environment of all launches.

    All forked launches have one parent, which imports what any of them needs. Put cells that need
    different libraries into different jobs, unless their compile costs and memory do not matter.
    """

    pools: list[Pool]
    folder: str
    plan: Plan = Plan()
    variables: dict[str, str] = {}

    def file(self, pool: Pool) -> Path:
        """The file of a pool."""
        return Path(self.folder, f"{pool.name}.jsonl")


def count(file: Path, process: str) -> int:
    """The number of forked or fresh launches that the pool has already."""
    return sum(1 for launch in read_lines(file, Launch) if launch.process == process)


def missing(job: Job, order: Sequence[str] = ("forked", "fresh")) -> list[tuple[Pool, str]]:
    """The pools that need another launch, each with the kind of process: one round of turns."""
    return [
        (pool, process)
        for pool in job.pools
        for process in order
        if count(job.file(pool), process) < pool.wanted(process)
    ]


def collect(job: Job) -> None:
    """Fill the pools up to the wanted numbers. May be interrupted and run again."""
    os.environ.update(job.variables)
    Path(job.folder).mkdir(parents=True, exist_ok=True)
    preload(sorted({name for pool in job.pools for name in _imports(pool.cell)}))
    with tempfile.TemporaryDirectory(prefix="evidence-") as scratch:
        caches: dict[Cell, Path] = {}
        order = ["forked", "fresh"]
        while turns := missing(job, order):
            order.reverse()
            for pool, process in turns:
                if pool.cell not in caches:
                    caches[pool.cell] = Path(scratch, str(len(caches)))
                    _launch(Pool("", pool.cell), "forked", caches[pool.cell], job.plan)
                launch = _launch(pool, process, caches[pool.cell], job.plan)
                append_line(job.file(pool), msgspec.json.encode(launch))
            counts = (
                f"{pool.name} {count(job.file(pool), process)} {process}" for pool, process in turns
            )
            print(", ".join(counts), flush=True)


def _imports(cell: Cell) -> list[str]:
    return list(workloads.get(cell.workload).imports)


def _launch(pool: Pool, process: str, cache: Path, plan: Plan) -> Launch:
    """One launch; the first one of a cache is cold. Exits if the launch fails."""
    starter: processes.Launcher = (
        Forked() if process == "forked" else processes.Fresh(pool.setting.variables)
    )
    with _quieted(pool.setting):
        launch = make_launch(
            starter, pool.cell, cache, cache.parent, plan=plan, observe=False, limit_s=LIMIT_S
        )
    if not launch.outcome.ok:
        sys.exit(f"{pool.cell}: {launch.outcome}")
    return launch


@contextlib.contextmanager
def _quieted(setting: Setting) -> Iterator[None]:
    """Apply the part of the setting that no variable can set to the processes started meanwhile."""
    time.sleep(setting.rest_s)
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        # A negative niceness needs root, as in most containers.
        os.setpriority(os.PRIO_PROCESS, 0, setting.nice)
        if libc.prctl(PR_SET_THP_DISABLE, int(not setting.huge_pages), 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl: cannot go without huge pages")
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, 0)
        libc.prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0)


if __name__ == "__main__":
    collect(msgspec.json.decode(sys.stdin.buffer.read(), type=Job))

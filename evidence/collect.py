"""Runs in a release's environment: launches of a few cells, in turns, one JSON line each.

In turns, so that the machine's moods fall on all of them alike. Only warm launches are kept: the
cold one before them fills the cache.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from torchcompile_suite import workloads
from torchcompile_suite.cell import Cell, Launch, Plan, Request
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.measuring import processes

LIMIT_S = 600.0
# prctl(2)
PR_SET_THP_DISABLE = 41


class Setting(msgspec.Struct, frozen=True):
    """What is done about noise: variables of the process, its niceness, whether the kernel may give
    it transparent huge pages, seconds of rest before it.
    """

    variables: dict[str, str] = {}
    nice: int = 0
    huge_pages: bool = True
    rest_s: float = 0.0


class Pool(msgspec.Struct):
    """Launches of a cell, kept in one file: how many there are to be of each kind."""

    name: str
    cell: Cell
    forked: int = 0
    fresh: int = 0
    setting: Setting = Setting()

    def wanted(self, process: str) -> int:
        """How many launches of that kind there are to be."""
        return self.forked if process == "forked" else self.fresh


class Job(msgspec.Struct):
    """Pools to fill in a folder. ``variables`` are set in all launches' environment.

    All forked launches have one parent, which imports what any of them needs: put cells that need
    different libraries into different jobs, unless their compile costs and memory do not matter.
    """

    pools: list[Pool]
    folder: str
    plan: Plan = Plan()
    variables: dict[str, str] = {}


def count(file: Path, process: str) -> int:
    """How many launches of that kind the pool holds already."""
    return sum(1 for launch in read_lines(file, Launch) if launch.process == process)


def collect(job: Job) -> None:
    """Fill the pools up to the wanted numbers. May be interrupted and run again."""
    os.environ.update(job.variables)
    folder = Path(job.folder)
    folder.mkdir(parents=True, exist_ok=True)
    processes.preload()
    with tempfile.TemporaryDirectory(prefix="evidence-") as scratch:
        caches: dict[Cell, str] = {}
        order = ["forked", "fresh"]
        while True:
            missing = [
                (pool, process)
                for pool in job.pools
                for process in order
                if count(folder / f"{pool.name}.jsonl", process) < pool.wanted(process)
            ]
            order.reverse()
            if not missing:
                return
            for pool, process in missing:
                workspace, cell = Path(scratch), pool.cell
                if cell not in caches:
                    caches[cell] = str(workspace / str(len(caches)))
                    Path(caches[cell]).mkdir()
                    _launch(Pool("", cell), "forked", "cold", caches[cell], workspace, job.plan)
                launch = _launch(pool, process, "warm", caches[cell], workspace, job.plan)
                append_line(folder / f"{pool.name}.jsonl", msgspec.json.encode(launch))
            print(
                ", ".join(
                    f"{pool.name} {count(folder / f'{pool.name}.jsonl', process)} {process}"
                    for pool, process in missing
                ),
                flush=True,
            )


def _launch(pool: Pool, process: str, kind: str, cache: str, workspace: Path, plan: Plan) -> Launch:
    request = Request(pool.cell, kind, cache, plan, observe=False)  # type: ignore[arg-type]
    starter: processes.Launcher = (
        processes.Forked(workloads.get(pool.cell.workload).imports)
        if process == "forked"
        else processes.Fresh(pool.setting.variables)
    )
    with _quieted(pool.setting):
        launch = starter.run(request, workspace, LIMIT_S)
    if not launch.outcome.ok:
        sys.exit(f"{pool.cell}: {launch.outcome.status.value}: {launch.outcome.reason}")
    return launch


@contextlib.contextmanager
def _quieted(setting: Setting) -> Iterator[None]:
    """Have processes started meanwhile inherit what no variable can set."""
    time.sleep(setting.rest_s)
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        # Needs the right to raise it again: root, as in most containers.
        os.setpriority(os.PRIO_PROCESS, 0, setting.nice)
        if libc.prctl(PR_SET_THP_DISABLE, int(not setting.huge_pages), 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl: cannot go without huge pages")
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, 0)
        libc.prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0)


if __name__ == "__main__":
    collect(msgspec.json.decode(sys.stdin.buffer.read(), type=Job))

"""Runs in a release's environment: launches of a few cells, in turns, one JSON line each.

In turns, so that the machine's moods fall on all of them alike. Only warm launches are kept: the
cold one before them fills the cache.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import msgspec

from torchcompile_suite import processes, workloads
from torchcompile_suite.cell import Cell, Launch, Plan, Request
from torchcompile_suite.files import append_line

LIMIT_S = 600.0


class Job(msgspec.Struct):
    """What to collect: cells as (name of the pool, cell), and how many launches each way.

    ``variables`` are set in the launches' environment.
    """

    pools: list[tuple[str, Cell]]
    folder: str
    forked: int = 0
    fresh: int = 0
    plan: Plan = Plan()
    variables: dict[str, str] = {}


def count(file: Path, process: str) -> int:
    """How many launches of that kind the pool holds already."""
    return sum(1 for launch in read(file) if launch.process == process)


def read(file: Path) -> list[Launch]:
    """The launches of a pool; none where there is no such file."""
    if not file.exists():
        return []
    return [msgspec.json.decode(line, type=Launch) for line in file.read_bytes().splitlines()]


def collect(job: Job) -> None:
    """Fill the pools up to the wanted numbers. May be interrupted and run again."""
    os.environ.update(job.variables)
    folder = Path(job.folder)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {"forked": job.forked, "fresh": job.fresh}
    processes.preload(
        sorted({name for _, cell in job.pools for name in workloads.get(cell.workload).imports})
    )
    launchers: dict[str, processes.Launcher] = {
        "forked": processes.Forked(()),
        "fresh": processes.Fresh(),
    }
    with tempfile.TemporaryDirectory(prefix="evidence-") as scratch:
        caches: dict[str, str] = {}
        order = list(wanted)
        while True:
            open_pools = [
                (name, cell, process)
                for name, cell in job.pools
                for process in order
                if count(folder / f"{name}.jsonl", process) < wanted[process]
            ]
            order.reverse()
            if not open_pools:
                return
            for name, cell, process in open_pools:
                workspace = Path(scratch)
                if name not in caches:
                    caches[name] = str(workspace / name)
                    Path(caches[name]).mkdir()
                    _launch(launchers["forked"], cell, "cold", caches[name], workspace, job.plan)
                launch = _launch(
                    launchers[process], cell, "warm", caches[name], workspace, job.plan
                )
                append_line(folder / f"{name}.jsonl", msgspec.json.encode(launch))
            print(
                ", ".join(
                    f"{name} {count(folder / f'{name}.jsonl', process)} {process}"
                    for name, _, process in open_pools
                ),
                flush=True,
            )


def _launch(
    launcher: processes.Launcher, cell: Cell, kind: str, cache: str, workspace: Path, plan: Plan
) -> Launch:
    request = Request(cell, kind, cache, plan)  # type: ignore[arg-type]
    launch = launcher.run(request, workspace, LIMIT_S)
    if not launch.outcome.ok:
        sys.exit(f"{cell}: {launch.outcome.status.value}: {launch.outcome.reason}")
    return launch


if __name__ == "__main__":
    collect(msgspec.json.decode(sys.stdin.buffer.read(), type=Job))

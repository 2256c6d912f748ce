"""Real launches to resample from: sixty of each of four different cells.

Writes ``evidence/pools/<cell>.jsonl``. Takes about forty minutes on two cores. An interrupted run
goes on where it stopped. Leave the machine alone meanwhile.
"""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import Cell, Launch
from torchcompile_suite.host.files import read_lines
from torchcompile_suite.measuring import interpreter
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.releases import catalogue, environments

from . import tables
from .collect import Job, Pool, missing

ROOT = Path(__file__).resolve().parents[1]
POOLS = Path(__file__).with_name("pools")


class Machine(NamedTuple):
    """A machine with pools of all cells. ``power``: its pools of `evidence.power`, if it has any.

    The first one is measured by the newest method. The confidence levels of the suite's intervals
    were chosen with the pools of the last one.
    """

    name: str
    pools: Path
    power: Path | None = None


MACHINES = (
    Machine("EPYC 26, method 3", POOLS, POOLS.with_name("pools-power")),
    Machine("Xeon, method 2", POOLS.with_name("pools-xeon"), POOLS.with_name("pools-power-xeon")),
    Machine("EPYC 25, method 1", POOLS.with_name("pools-epyc")),
)
ENVIRONMENT = ROOT / ".asv" / "evidence-env"
# Import path of the suite and of this package, for a process in that environment.
PYTHONPATH = f"{interpreter.SOURCE}{os.pathsep}{ROOT}"

# A convolution net, a transformer, one fused kernel, and a function that is mostly overhead.
CELLS = {
    "conv": Cell("mobilenetv3_small_100", 1, "default"),
    "transformer": Cell("vit_tiny_patch16_224", 1, "default"),
    "pointwise": Cell("pointwise_chain", 1, "default"),
    "tiny": Cell("softmax_matmul", 1, "default"),
}
LAUNCHES = 60
# Without this variable every process starts another one, which imports torch, to learn which
# vector instructions the processor has.
NO_VECTOR_CHECK = {"TORCHINDUCTOR_VEC_ISA_OK": "1"}


def pool(name: str, folder: Path = POOLS) -> list[Launch]:
    """The forked launches of one of the cells that count.

    A run would have repeated the others, because a neighbour disturbed them.
    """
    quiet_s = _quiet_s(folder)
    return [one for one in forked(name, folder) if not statistics.disturbed(one, quiet_s)]


def every_pool() -> dict[tuple[str, str], list[Launch]]:
    """The `pool` of each machine and cell, by their names."""
    return {
        (machine.name, name): pool(name, machine.pools) for machine in MACHINES for name in CELLS
    }


def forked(name: str, folder: Path) -> list[Launch]:
    """All forked launches of one of the cells."""
    launches = read_lines(folder / f"{name}.jsonl", Launch)
    return [launch for launch in launches if launch.process == "forked"]


@cache
def _quiet_s(folder: Path) -> float | None:
    """Seconds of the calibration loop in the quietest launch of the folder; None if not known."""
    return statistics.quietest(one for name in CELLS for one in forked(name, folder))


def run_in_release(job: Job) -> None:
    """Fill the pools in the environment of the newest release, which is made or updated first.

    Nothing is installed if the pools are full.
    """
    if not missing(job):
        return
    python, installed = environments.install(catalogue.read()[-1], ENVIRONMENT)
    print(installed, flush=True)
    subprocess.run(
        [str(python), "-m", "evidence.collect"],
        input=msgspec.json.encode(job),
        env=interpreter.environment(python, {"PYTHONPATH": PYTHONPATH}),
        check=True,
    )


def measure() -> None:
    """Fill the pools."""
    pools = [Pool(name, cell, forked=LAUNCHES) for name, cell in CELLS.items()]
    run_in_release(Job(pools, str(POOLS), variables=NO_VECTOR_CHECK))


def table() -> list[tables.Part]:
    """A line for each pool."""
    lines = []
    for machine in MACHINES:
        for name, cell in CELLS.items():
            launches = forked(name, machine.pools)
            count = str(len(pool(name, machine.pools)))
            lines.append([machine.name, name, str(cell), count, tables.measured_on(launches)])
    columns = ["machine", "pool", "cell", "undisturbed", "measured"]
    return [Sheet(columns, frozenset(["undisturbed"]), lines)]


if __name__ == "__main__":
    tables.run("pools", table, measure)

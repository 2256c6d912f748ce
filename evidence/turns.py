"""How long should eager and compiled calls take turns? What a mode leaves behind costs the other.

Caches and the allocator's pages are as the call before left them. Call by call, each mode meets
what the other left; its user never does. `PROCESSES` processes of each of four cells measure with
turns of each length, in an order that changes. Takes ten minutes; leave the machine alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from torchcompile_suite import elsewhere
from torchcompile_suite.releases import catalogue, environments

from .pools import CELLS, ENVIRONMENT, NO_VECTOR_CHECK, ROOT

PROCESSES = 6
# Seconds; the last is as good as alone.
TURNS = (0.0, 0.02, 0.1, 0.3, 2.0)


def main() -> None:
    """Measure, and print the table."""
    python, _ = environments.install(catalogue.read()[-1], ENVIRONMENT)
    table = Table(title=f"Time ratio by length of turns, {PROCESSES} processes")
    table.add_column("cell")
    for turn_s in TURNS[:-1]:
        table.add_column(f"{turn_s:g} s", justify="right")
        table.add_column(f"over {TURNS[-1]:g} s", justify="right")
        table.add_column("sd", justify="right")
    for heading in (f"{TURNS[-1]:g} s", "sd"):
        table.add_column(heading, justify="right")
    for name, cell in CELLS.items():
        logs = np.array(_logs(python.absolute(), cell.workload))
        line = [name]
        for one in logs.T[:-1]:
            difference = one - logs.T[-1]
            error = difference.std(ddof=1) / np.sqrt(PROCESSES)
            line += [
                f"{np.exp(one.mean()):.3f}",
                f"{np.exp(difference.mean()):.3f} ± {error:.3f}",
                f"{one.std(ddof=1):.1%}",
            ]
        last = logs.T[-1]
        table.add_row(*line, f"{np.exp(last.mean()):.3f}", f"{last.std(ddof=1):.1%}")
        print(name, flush=True)
    Console(width=150).print(table)


def _logs(python: Path, workload: str) -> list[list[float]]:
    """The log ratio of each length of turns, a list a process."""
    found = []
    with tempfile.TemporaryDirectory(prefix="evidence-") as folder:
        variables = elsewhere.environment(
            python,
            {
                **NO_VECTOR_CHECK,
                "PYTHONPATH": f"{elsewhere.SOURCE}{os.pathsep}{ROOT}",
                "TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache",
            },
        )
        for number in range(PROCESSES):
            order = [(number + shift) % len(TURNS) for shift in range(len(TURNS))]
            said = subprocess.run(
                [
                    str(python), "-m", "evidence.peers.turns", workload,
                    *(str(TURNS[index]) for index in order),
                ],
                env=variables, stdout=subprocess.PIPE, check=True, cwd=ROOT,
            ).stdout  # fmt: skip
            by_index = dict(zip(order, json.loads(said), strict=True))
            found.append(
                [float(np.log(by_index[i][1] / by_index[i][0])) for i in range(len(TURNS))]
            )
    return found


if __name__ == "__main__":
    main()

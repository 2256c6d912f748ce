"""How long should eager and compiled calls take turns? What a mode leaves behind costs the other.

Caches and predictors are as the call before left them. Call by call, each mode meets what the other
left; its user never does. `PROCESSES` processes of each of four cells measure with turns of each
length, in an order that changes. Takes twenty minutes; leave the machine alone.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.measuring import interpreter
from torchcompile_suite.releases import catalogue, environments

from .peers import SETTLES
from .pools import CELLS, ENVIRONMENT, NO_VECTOR_CHECK, PYTHONPATH, ROOT

PROCESSES = 8
# Seconds; 0 is one call.
TURNS = (0.0, 0.06, 0.1, 0.3, 2.0)
# Of `SETTLES`.
SHOWN = (0.0, 0.02, 0.1)
# Turn and settling time after which what the other mode left behind is gone. Turns of 2 s meet too
# different moods of the machine to be a reference.
ALONE = (TURNS.index(0.3), SETTLES.index(0.1))
KEPT = Path(__file__).with_name("turns.jsonl")


class Process(msgspec.Struct):
    """The time ratios that one process found, a list by settling time for each of `TURNS`."""

    cell: str
    ratios: list[list[float]]


def main() -> None:
    """Measure what is missing, and print the table."""
    found = read_lines(KEPT, Process)
    missing = [
        (number, name)
        for number in range(PROCESSES)
        for name in CELLS
        if sum(1 for one in found if one.cell == name) <= number
    ]
    if missing:
        python, _ = environments.install(catalogue.read()[-1], ENVIRONMENT)
        with tempfile.TemporaryDirectory(prefix="evidence-") as folder:
            for number, name in missing:
                one = Process(name, _measure(python.absolute(), name, number, folder))
                append_line(KEPT, msgspec.json.encode(one))
                print(f"{name} {number + 1}", flush=True)
    print_table(read_lines(KEPT, Process))


def _measure(python: Path, name: str, number: int, folder: str) -> list[list[float]]:
    """One process's ratios; what it compiles goes to the folder."""
    order = [(number + shift) % len(TURNS) for shift in range(len(TURNS))]
    said = subprocess.run(
        [
            str(python), "-m", "evidence.peers.turns", CELLS[name].workload,
            *(str(TURNS[index]) for index in order),
        ],
        env=interpreter.environment(
            python,
            {
                **NO_VECTOR_CHECK,
                "PYTHONPATH": PYTHONPATH,
                "TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache",
            },
        ),
        stdout=subprocess.PIPE, check=True, cwd=ROOT,
    ).stdout  # fmt: skip
    by_index = dict(zip(order, json.loads(said), strict=True))
    return [by_index[index] for index in range(len(TURNS))]


def print_table(found: list[Process]) -> None:
    """A line for each way of taking turns."""
    table = Table(
        "turn",
        "not counted",
        title=f"Time ratio, {PROCESSES} processes a cell; and over the one"
        f" of turns of {TURNS[ALONE[0]]:g} s of which {SETTLES[ALONE[1]]:g} s do not count",
    )
    for name in CELLS:
        table.add_column(name, justify="right")
        table.add_column("over", justify="right")
        table.add_column("sd", justify="right")
    for index, turn_s in enumerate(TURNS):
        for at, settle_s in enumerate(SETTLES):
            if settle_s not in SHOWN or (settle_s and settle_s >= turn_s):
                continue
            line = [f"{turn_s:g} s" if turn_s else "one call", f"{settle_s:g} s"]
            for name in CELLS:
                mine = [one.ratios for one in found if one.cell == name]
                logs = np.log([ratios[index][at] for ratios in mine])
                over = logs - np.log([ratios[ALONE[0]][ALONE[1]] for ratios in mine])
                error = over.std(ddof=1) / np.sqrt(len(over))
                line += [
                    f"{np.exp(logs.mean()):.3f}",
                    f"{np.exp(over.mean()):.3f} ± {error:.3f}",
                    f"{logs.std(ddof=1):.1%}",
                ]
            table.add_row(*line)
    Console(width=170).print(table)


if __name__ == "__main__":
    main()

"""How long should a turn of eager or compiled calls be? One mode leaves caches that slow the other.

A call finds caches and predictors as the call before left them. If the modes alternate call by
call, each mode finds those of the other mode. A user of one mode never does. `PROCESSES` processes
of each of four cells measure with turns of each length, in changing order. Takes twenty minutes;
leave the machine alone meanwhile.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import msgspec
import numpy as np

from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.presentation.sheets import Sheet

from . import collect, tables
from .pools import CELLS
from .turns_runner import SETTLES

PROCESSES = 8
# Seconds; 0 is one call.
TURNS = (0.0, 0.06, 0.1, 0.3, 2.0)
# The part of `SETTLES` that the table shows.
SHOWN = (0.0, 0.02, 0.1)
# Length of a turn and settling time after which nothing of the other mode is left in the caches.
# Turns of 2 s are no reference: the machine drifts between them.
ALONE = (TURNS.index(0.3), SETTLES.index(0.1))
KEPT = Path(__file__).with_name("turns.jsonl")


class Process(msgspec.Struct):
    """The time ratios of one process: for each of `TURNS` a list by settling time."""

    cell: str
    ratios: list[list[float]]


def measure() -> None:
    """Measure what is missing."""
    known = read_lines(KEPT, Process)
    missing = [
        (number, name)
        for number in range(PROCESSES)
        for name in CELLS
        if sum(1 for process in known if process.cell == name) <= number
    ]
    if missing:
        python = collect.newest()
        with tempfile.TemporaryDirectory(prefix="evidence-") as folder:
            for number, name in missing:
                process = Process(name, _measure(python, name, number, folder))
                append_line(KEPT, msgspec.json.encode(process))
                print(f"{name} {number + 1}", flush=True)


def _measure(python: Path, name: str, number: int, folder: str) -> list[list[float]]:
    """The ratios of one process; ``folder`` keeps its compiled code."""
    order = [(number + shift) % len(TURNS) for shift in range(len(TURNS))]
    printed = subprocess.run(
        [
            str(python), "-m", "evidence.turns_runner", CELLS[name].workload,
            *(str(TURNS[index]) for index in order),
        ],
        env=collect.variables(python, {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache"}),
        stdout=subprocess.PIPE, check=True, cwd=collect.ROOT,
    ).stdout  # fmt: skip
    by_index = dict(zip(order, json.loads(printed), strict=True))
    return [by_index[index] for index in range(len(TURNS))]


def table() -> list[tables.Part]:
    """A line for each length of a turn and settling time."""
    processes = read_lines(KEPT, Process)
    names = [f"{name}{figure}" for name in CELLS for figure in ("", ": over", ": sd")]
    lines = []
    for index, turn_s in enumerate(TURNS):
        for at, settle_s in enumerate(SETTLES):
            if settle_s not in SHOWN or (settle_s and settle_s >= turn_s):
                continue
            line = [f"{turn_s:g} s" if turn_s else "one call", f"{settle_s:g} s"]
            for name in CELLS:
                ratios = [process.ratios for process in processes if process.cell == name]
                logs = np.log([by_turn[index][at] for by_turn in ratios])
                over = logs - np.log([by_turn[ALONE[0]][ALONE[1]] for by_turn in ratios])
                error = over.std(ddof=1) / np.sqrt(len(over))
                line += [
                    f"{np.exp(logs.mean()):.3f}",
                    f"{np.exp(over.mean()):.3f} ± {error:.3f}",
                    f"{logs.std(ddof=1):.1%}",
                ]
            lines.append(line)
    return [
        f"The time ratio over {PROCESSES} processes a cell. over: divided by the ratio of turns "
        f"of {TURNS[ALONE[0]]:g} s whose first {SETTLES[ALONE[1]]:g} s do not count, with its "
        "standard error. sd: standard deviation of the log ratio between processes.",
        Sheet(["turn", "not counted", *names], frozenset(names), lines),
    ]


if __name__ == "__main__":
    tables.run("turns", table, measure)

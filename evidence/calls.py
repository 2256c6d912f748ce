"""Which probe of the host explains the time of a call?

A process calls a model in turns of eager and compiled code, and reads the suite's probes before and
after each sample of calls. A sample takes two milliseconds, or one call. The second reading of the
last sample of a turn comes after the first call of the other side. So this looks closer than
a launch, which reads before and after each turn. Takes a quarter of an hour; leave the machine
alone meanwhile.
"""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median, stdev

import msgspec

from torchcompile_suite.cell import Cell
from torchcompile_suite.host import machine, probes
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.host.probes import Reading
from torchcompile_suite.presentation.sheets import Sheet

from . import agreement, collect, places, tables

CELLS = [one for one in agreement.CELLS if one.phase == "inference"][:12]
SIDES = ("eager", "compiled")
KEPT = Path(__file__).with_suffix(".jsonl")


class Explained(msgspec.Struct):
    """Of a cell, for each of `SIDES`.

    ``spread``: of the log time of a sample. ``by``: the share of its variance that a probe
    explains, and ``all`` of them. ``crowded``: the time with a neighbour on a core over that
    without, both near; None where one has fewer than 20 samples. ``share``: of readings with one.
    """

    cell: Cell
    torch: str
    cpu: str
    samples: list[int]
    spread: list[float]
    by: list[dict[str, float]]
    crowded: list[float | None]
    share: float


def measure() -> None:
    """Measure the cells that are missing. May be interrupted and run again."""
    python = collect.newest(CELLS)
    for cell in CELLS:
        if cell in {one.cell for one in read_lines(KEPT, Explained)}:
            continue
        with tempfile.TemporaryDirectory(prefix="calls-") as folder:
            command = [str(python), "-m", "evidence.calls_runner", cell.workload]
            printed = subprocess.run(
                [*command, str(cell.batch_size)],
                env=collect.variables(python, {"TORCHINDUCTOR_CACHE_DIR": folder}),
                stdout=subprocess.PIPE, check=True, cwd=collect.ROOT,
            ).stdout  # fmt: skip
        torch, rows = json.loads(printed)
        append_line(KEPT, msgspec.json.encode(_explained(cell, torch, rows)))
        print(cell, flush=True)


def _explained(cell: Cell, torch: str, rows: Sequence[tuple[int, float, list[float]]]) -> Explained:
    """``rows``: of each sample its side, seconds a call, and the reading before it."""
    readings = [Reading(*one) for _, _, one in rows]
    at = probes.places(readings)
    crowded = [bool(each and each > probes.CROWDED) for each in probes.over_quiet(readings)]
    found = Explained(
        cell, torch, machine.cpu_model(), [], [], [], [], probes.crowded(readings) or 0.0
    )
    known = {
        name: [math.log(probe(one)) for one in readings] for name, probe in places.PROBES.items()
    }
    for side in range(len(SIDES)):
        # The last sample has no reading after it.
        own = [i for i, (which, _, _) in enumerate(rows[:-1]) if which == side]
        logs = [math.log(rows[i][1]) for i in own]
        y = places.within([logs])
        by = {name: places.within([[x[i] + x[i + 1] for i in own]]) for name, x in known.items()}
        place = [
            places.within([[float(at[i] == name) + float(at[i + 1] == name) for i in own]])
            for name in ("far", "shared")
        ]
        beside, without = (
            [
                log
                for i, log in zip(own, logs, strict=True)
                if at[i] == at[i + 1] == "near" and crowded[i] is crowded[i + 1] is says
            ]
            for says in (True, False)
        )
        found.samples.append(len(own))
        found.spread.append(stdev(logs))
        found.by.append(
            {
                **{name: places.r2(y, [x], 1) for name, x in by.items()},
                "place": places.r2(y, place, 1),
                "all": places.r2(y, [*by.values(), *place], 1),
            }
        )
        enough = min(len(beside), len(without)) >= 20
        found.crowded.append(math.exp(median(beside) - median(without)) if enough else None)
    return found


def table() -> list[tables.Part]:
    """A line for each cell and side."""
    kept = read_lines(KEPT, Explained)
    names = [*kept[0].by[0]]
    lines = [
        [
            *(str(one.cell), side, str(one.samples[i]), f"{one.spread[i]:.0%}"),
            *(f"{one.by[i][name]:.0%}" for name in names),
            *(f"{x:.2f}" if (x := one.crowded[i]) else "", f"{one.share:.0%}"),
        ]
        for one in kept
        for i, side in enumerate(SIDES)
    ]
    columns = ["samples", "spread", *names, "crowded over not", "crowded"]
    machines = sorted({f"PyTorch {one.torch} on {one.cpu}" for one in kept})
    return [
        "How much of the variance of the log time of a sample each probe explains. place: near, "
        "far or on one core. crowded over not: the time with a neighbour on a core over that "
        "without, near. crowded: the share of readings with a neighbour.",
        Sheet(["cell", "side", *columns], frozenset(columns), lines),
        f"{'; '.join(machines)}.",
    ]


if __name__ == "__main__":
    tables.run("calls", table, measure)

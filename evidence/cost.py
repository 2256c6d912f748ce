"""What does an answer cost? A time ratio within 3 %, and every metric, of the same four cells.

Ours against plain ASV classes, `torch.utils.benchmark` and pyperf (`evidence.peers`), each repeated
over processes until its interval is as narrow, or `LIMIT_S` are over; and against the floor:
imports, model building, one cold compile and the timed calls. All by the same rule and the same
Student's t, a process giving one value. Takes forty minutes; leave the machine alone.

What favours the others: none checks its results, counts graphs, or looks at other processes, and
pyperf is not asked for memory.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from torchcompile_suite import workloads
from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import Cell, Measurement
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.measuring import interpreter, settings
from torchcompile_suite.releases import catalogue, environments

from .peers import ROUNDS, WORKLOAD_VARIABLE
from .pools import CELLS, ENVIRONMENT, PYTHONPATH

# As long as our own cells are allowed to take.
LIMIT_S = settings.BUDGET_S
KEPT = Path(__file__).with_name("cost.jsonl")
PEERS = Path(__file__).with_name("peers")


class Spent(msgspec.Struct):
    """What one way spent on a cell: seconds, processes whose value counts, and the ratio they gave.

    ``floor_s`` and ``stages_s`` (where the processes' time went) are known of ours alone.
    """

    way: str
    cell: str
    seconds: float
    processes: int
    ratio: statistics.Interval
    floor_s: float | None = None
    stages_s: dict[str, float] = {}

    @property
    def half_width(self) -> float:
        """Of the ratio's interval."""
        return statistics.half_width(self.ratio)

    @property
    def needed_s(self) -> float:
        """Seconds until the interval would have been narrow enough: it narrows as the root of the
        processes. Those spent, where it was.
        """
        return self.seconds * max(1.0, (self.half_width / settings.PRECISION) ** 2)


class Place(NamedTuple):
    """Where a peer runs: the release's Python, its variables, a folder of its own."""

    python: Path
    variables: dict[str, str]
    folder: Path

    def run(self, *arguments: str) -> bytes:
        """Run a program to its end; its standard output. Raises CalledProcessError."""
        return subprocess.run(
            arguments, cwd=self.folder, env=self.variables, stdout=subprocess.PIPE, check=True
        ).stdout


def plain_asv(place: Place) -> Iterator[list[float]]:
    """Three processes of each mode a run, their samples appended to those of the runs before."""
    asv = [sys.executable, "-m", "asv"]
    (place.folder / "benchmarks").mkdir()
    (place.folder / "benchmarks" / "__init__.py").touch()
    shutil.copy(PEERS / "plain.py", place.folder / "benchmarks")
    config = {
        "version": 1,
        "project": "plain",
        "repo": ".",
        "branches": ["main"],
        "environment_type": "existing",
    }
    (place.folder / "asv.conf.json").write_text(json.dumps(config))
    place.run("git", "init", "--quiet", "--initial-branch=main")
    place.run("git", "add", "benchmarks", "asv.conf.json")
    place.run("git", "commit", "--quiet", "--message=plain")
    commit = place.run("git", "rev-parse", "HEAD").decode().strip()
    place.run(*asv, "machine", "--yes")
    # What does not go by the ratio is measured once.
    once: tuple[str, ...] = ()
    for processes in itertools.count(ROUNDS, ROUNDS):
        place.run(
            *asv, "run", f"--environment=existing:{place.python}", f"--set-commit-hash={commit}",
            "--append-samples", *once,
        )  # fmt: skip
        once = ("--bench=time_call",)
        (file,) = place.folder.glob(f"results/*/{commit[:8]}*.json")
        found = json.loads(file.read_text())
        at = found["result_columns"].index("samples")
        eager, compiled = found["results"]["plain.Inference.time_call"][at]
        # In the order of the processes, from each as many as from the others.
        yield [
            float(np.median(compiled_s) / np.median(eager_s))
            for eager_s, compiled_s in zip(
                np.array_split(eager, processes), np.array_split(compiled, processes), strict=True
            )
        ]


def autorange(place: Place) -> Iterator[list[float]]:
    """A process, which measures both, is a value."""
    found = []
    while True:
        said = place.run(
            str(place.python), "-m", "evidence.peers.autorange", place.variables[WORKLOAD_VARIABLE]
        )
        eager_s, compiled_s, *_ = json.loads(said)
        found.append(compiled_s / eager_s)
        yield found


def with_pyperf(place: Place) -> Iterator[list[float]]:
    """Three processes of each mode, and then one by one, with the loops found at first."""
    target = place.folder / "pyperf"
    place.run("uv", "pip", "install", "--quiet", "--no-deps", f"--target={target}", "pyperf")
    place.variables["PYTHONPATH"] += f"{os.pathsep}{target}"
    script = [str(place.python), str(PEERS / "with_pyperf.py"), "--quiet", "--copy-env"]
    file = place.folder / "found.json"
    more = ["--processes=3"]
    while True:
        place.run(*script, *more, f"--append={file}")
        values: dict[str, list[float]] = {"eager": [], "compiled": []}
        for benchmark in json.loads(file.read_text())["benchmarks"]:
            metadata = benchmark.get("metadata", {})
            for run in benchmark["runs"]:
                if "values" in run:
                    name = metadata.get("name") or run["metadata"]["name"]
                    values[name].append(median(run["values"]))
        more = ["--processes=1"]
        yield [c / e for e, c in zip(values["eager"], values["compiled"], strict=True)]


WAYS: dict[str, Callable[[Place], Iterator[list[float]]]] = {
    "plain ASV": plain_asv,
    "torch.utils.benchmark": autorange,
    "pyperf": with_pyperf,
}
OURS = "ours"


def spent_by(way: str, cell: Cell, python: Path) -> Spent:
    """Measure a cell the way of a peer, until precise or out of time."""
    with tempfile.TemporaryDirectory(prefix="evidence-") as folder:
        variables = interpreter.environment(
            python,
            {
                "PYTHONPATH": PYTHONPATH,
                # ASV takes the other one away.
                "ASV_PYTHONPATH": PYTHONPATH,
                "HOME": folder,
                "TMPDIR": folder,
                "TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache",
                "GIT_AUTHOR_NAME": "evidence",
                "GIT_AUTHOR_EMAIL": "evidence@example.org",
                "GIT_COMMITTER_NAME": "evidence",
                "GIT_COMMITTER_EMAIL": "evidence@example.org",
                WORKLOAD_VARIABLE: cell.workload,
            },
        )
        start = time.monotonic()
        for ratios in WAYS[way](Place(python, variables, Path(folder))):
            interval = statistics.sequential_interval(ratios)
            seconds = time.monotonic() - start
            enough = (
                len(ratios) >= statistics.FIRST_LOOK
                and statistics.half_width(interval) <= settings.PRECISION
            )
            if enough or (seconds > LIMIT_S and len(ratios) >= statistics.FIRST_LOOK):
                break
    return Spent(way, str(cell), round(seconds, 1), len(ratios), interval)


def spent_by_us(cell: Cell, python: Path) -> Spent:
    """Measure it with a session of the suite, as ASV's first process of the cell does."""
    libraries = ["torch", *workloads.get(cell.workload).imports]
    start = time.monotonic()
    subprocess.run([python, "-c", f"import {', '.join(libraries)}"], check=True)
    import_s = time.monotonic() - start
    start = time.monotonic()
    said = interpreter.ask(python, "evidence.peers.ours", msgspec.json.encode(cell))
    seconds = time.monotonic() - start
    made = msgspec.json.decode(said.out, type=Measurement)
    stages: dict[str, float] = {"imports": import_s}
    for launch in made.launches:
        for name, each in launch.stages_s.items():
            key = f"{launch.kind} {name}" if name in ("compiler", "compile") else name
            stages[key] = stages.get(key, 0.0) + each
    cold = next(one for one in made.launches if one.kind == "cold")
    floor_s = import_s + cold.stages_s["build"] + stages["pairs"]
    floor_s += cold.stages_s["compiler"] + cold.stages_s["compile"]
    ratio = statistics.measured_ratio(made.launches, made.sequential)
    return Spent(
        OURS,
        str(cell),
        round(seconds, 1),
        len(statistics.counted(made.launches)),
        ratio,
        round(floor_s, 1),
        {name: round(value, 1) for name, value in stages.items()},
    )


def main() -> None:
    """Measure what is missing, and print the tables."""
    known = {(one.way, one.cell) for one in read_lines(KEPT, Spent)}
    missing = [
        (way, cell)
        for cell in CELLS.values()
        for way in (OURS, *WAYS)
        if (way, str(cell)) not in known
    ]
    if missing:
        python, _ = environments.install(catalogue.read()[-1], ENVIRONMENT)
        python = python.absolute()
        for way, cell in missing:
            one = spent_by_us(cell, python) if way == OURS else spent_by(way, cell, python)
            append_line(KEPT, msgspec.json.encode(one))
            print(f"{way}, {cell}: {one.seconds} s, ±{one.half_width:.1%}", flush=True)
    print_tables(read_lines(KEPT, Spent))


def print_tables(found: list[Spent]) -> None:
    """Cost a cell and way, and where ours went."""
    console = Console(width=140)
    table = Table(title=f"Seconds to a ratio within {settings.PRECISION:.0%}, and every metric")
    for name in ("cell", "way", "processes", "ratio", "±", "seconds", "to 3 %", "ours is"):
        table.add_column(name, justify="left" if name in ("cell", "way") else "right")
    by_cell = {
        cell: [one for one in found if one.cell == cell] for cell in {o.cell: 0 for o in found}
    }
    for cell, ways in by_cell.items():
        ours = next(one for one in ways if one.way == OURS)
        for one in ways:
            reached = one.half_width <= settings.PRECISION
            table.add_row(
                cell,
                one.way,
                str(one.processes),
                f"{one.ratio.value:.3f}",
                f"{one.half_width:.1%}",
                f"{one.seconds:.0f}",
                f"{one.seconds:.0f}" if reached else f"≈ {one.needed_s:.0f}",
                "" if one is ours else f"{ours.needed_s / one.needed_s:.2f}",
            )
    console.print(table)
    floor = Table(title="Ours over the floor, and where the seconds went")
    for name in ("cell", "launches", "seconds", "floor", "ours is"):
        floor.add_column(name, justify="left" if name == "cell" else "right")
    stages = list(dict.fromkeys(name for one in found for name in one.stages_s))
    for name in stages:
        floor.add_column(name, justify="right")
    for one in found:
        if one.floor_s:
            floor.add_row(
                one.cell,
                str(one.processes),
                f"{one.seconds:.0f}",
                f"{one.floor_s:.0f}",
                f"{one.seconds / one.floor_s:.2f}",
                *(f"{one.stages_s.get(name, 0.0):.0f}" for name in stages),
            )
    Console(width=60 + 12 * len(stages)).print(floor)


if __name__ == "__main__":
    main()

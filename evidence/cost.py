"""What does an answer cost? A time ratio within 3 %, and every metric, of the same four cells.

Compares the suite with itself before method 3, with plain ASV classes, `torch.utils.benchmark` and
pyperf (`evidence.peers`).
Each repeats processes until its interval is narrow enough, or until `LIMIT_S` are over. All follow
the same rule and the same Student's t; a process gives one value. The floor is the time of the
imports, of building the model, of one cold compile and of the timed calls. Takes forty minutes;
leave the machine alone meanwhile.

The comparison favours the others: none checks its results, counts graphs, or looks at other
processes, and pyperf does not measure memory.
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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import numpy as np

from torchcompile_suite import workloads
from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import Cell, Measurement
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.measuring import interpreter, settings
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.releases import catalogue, environments

from . import tables
from .peers import ROUNDS, WORKLOAD_VARIABLE
from .pools import CELLS, ENVIRONMENT, PYTHONPATH

# The time that a cell of the suite is allowed to take.
LIMIT_S = settings.BUDGET_S
KEPT = Path(__file__).with_name("cost.jsonl")
# The suite by method 2 and its peers, on another machine.
WITH_PEERS = KEPT.with_name("cost-method-2.jsonl")
PEERS = Path(__file__).with_name("peers")


class Spent(msgspec.Struct):
    """The cost of one cell with one tool.

    ``processes``: those whose value counts; ``ratio``: the result. ``floor_s`` and ``stages_s``
    (the seconds of all processes by stage) are known for the suite only.
    """

    tool: str = msgspec.field(name="way")
    cell: str
    seconds: float
    processes: int
    ratio: statistics.Interval
    floor_s: float | None = None
    stages_s: dict[str, float] = {}

    @property
    def half_width(self) -> float:
        """Half of the width of the ratio's interval, relative to the ratio."""
        return statistics.half_width(self.ratio)

    @property
    def needed_s(self) -> float:
        """Seconds after which the interval would be narrow enough; those spent if it is.

        An interval narrows with the root of the number of processes.
        """
        return self.seconds * max(1.0, (self.half_width / settings.PRECISION) ** 2)


class Place(NamedTuple):
    """Where a peer runs: the Python of the release, the variables, a folder for the peer alone."""

    python: Path
    variables: dict[str, str]
    folder: Path

    def run(self, *arguments: str) -> bytes:
        """Run a program to its end and return its output. Raises CalledProcessError."""
        return subprocess.run(
            arguments, cwd=self.folder, env=self.variables, stdout=subprocess.PIPE, check=True
        ).stdout


def plain_asv(place: Place) -> Iterator[list[float]]:
    """Three processes of each mode a run; each run appends its samples to the earlier ones."""
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
    # Later runs measure only the times that the ratio needs.
    selection: tuple[str, ...] = ()
    for processes in itertools.count(ROUNDS, ROUNDS):
        place.run(
            *asv, "run", f"--environment=existing:{place.python}", f"--set-commit-hash={commit}",
            "--append-samples", *selection,
        )  # fmt: skip
        selection = ("--bench=time_call",)
        (file,) = place.folder.glob(f"results/*/{commit[:8]}*.json")
        result = json.loads(file.read_text())
        at = result["result_columns"].index("samples")
        eager, compiled = result["results"]["plain.Inference.time_call"][at]
        # The samples are in the order of the processes, and each process gave equally many.
        yield [
            float(np.median(compiled_s) / np.median(eager_s))
            for eager_s, compiled_s in zip(
                np.array_split(eager, processes), np.array_split(compiled, processes), strict=True
            )
        ]


def autorange(place: Place) -> Iterator[list[float]]:
    """One process measures both modes and gives one value."""
    ratios = []
    while True:
        printed = place.run(
            str(place.python), "-m", "evidence.peers.autorange", place.variables[WORKLOAD_VARIABLE]
        )
        eager_s, compiled_s, *_ = json.loads(printed)
        ratios.append(compiled_s / eager_s)
        yield ratios


def with_pyperf(place: Place) -> Iterator[list[float]]:
    """Three processes of each mode, then one by one, with the loop counts of the first run."""
    target = place.folder / "pyperf"
    place.run("uv", "pip", "install", "--quiet", "--no-deps", f"--target={target}", "pyperf")
    place.variables["PYTHONPATH"] += f"{os.pathsep}{target}"
    script = [str(place.python), str(PEERS / "with_pyperf.py"), "--quiet", "--copy-env"]
    file = place.folder / "results.json"
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


PEER_TOOLS: dict[str, Callable[[Place], Iterator[list[float]]]] = {
    "plain ASV": plain_asv,
    "torch.utils.benchmark": autorange,
    "pyperf": with_pyperf,
}
OURS = "ours"
# The suite as it was before method 3: the last commit that timed both sides in one process.
METHOD_2, METHOD_2_COMMIT = "ours, method 2", "3e190b66a47e4c3e23d1bcc0ccb5cd7d9f946dde"


def spent_by(tool: str, cell: Cell, python: Path) -> Spent:
    """Measure a cell with a peer, until the ratio is precise or the time is over."""
    with tempfile.TemporaryDirectory(prefix="evidence-") as folder:
        variables = interpreter.environment(
            python,
            {
                "PYTHONPATH": PYTHONPATH,
                # ASV removes PYTHONPATH.
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
        for ratios in PEER_TOOLS[tool](Place(python, variables, Path(folder))):
            interval = statistics.sequential_interval(ratios)
            seconds = time.monotonic() - start
            enough = (
                len(ratios) >= statistics.FIRST_LOOK
                and statistics.half_width(interval) <= settings.PRECISION
            )
            if enough or (seconds > LIMIT_S and len(ratios) >= statistics.FIRST_LOOK):
                break
    return Spent(tool, str(cell), round(seconds, 1), len(ratios), interval)


def spent_by_method_2(cell: Cell, python: Path) -> Spent:
    """Measure a cell with the sources of `METHOD_2_COMMIT`."""
    with tempfile.TemporaryDirectory(prefix="evidence-") as folder:
        archive = subprocess.run(
            ["git", "archive", METHOD_2_COMMIT, "src", "evidence"], check=True, capture_output=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        older = {"PYTHONPATH": f"{folder}/src{os.pathsep}{folder}"}
        return spent_by_us(METHOD_2, cell, python, older)


def spent_by_us(
    tool: str, cell: Cell, python: Path, variables: Mapping[str, str] = MappingProxyType({})
) -> Spent:
    """Measure a cell with a session of the suite, as the first process that ASV starts does.

    ``variables`` name other sources of the suite.
    """
    libraries = ["torch", *workloads.get(cell.workload).imports]
    start = time.monotonic()
    subprocess.run([python, "-c", f"import {', '.join(libraries)}"], check=True)
    import_s = time.monotonic() - start
    start = time.monotonic()
    # Older sources do not know every axis.
    named = ("workload", "batch_size", "mode", *sorted(cell.differs()))
    order = msgspec.json.encode({name: getattr(cell, name) for name in named})
    answer = interpreter.ask(python, "evidence.peers.ours", order, variables)
    seconds = time.monotonic() - start
    measurement = msgspec.json.decode(answer.out, type=Measurement)
    stages: dict[str, float] = {"imports": import_s}
    for launch in measurement.launches:
        for name, taken_s in launch.stages_s.items():
            key = f"{launch.kind} {name}" if name in ("compiler", "compile") else name
            stages[key] = stages.get(key, 0.0) + taken_s
    cold = next(launch for launch in measurement.launches if launch.kind == "cold")
    # Method 2 named the stage of the turns after its pairs.
    floor_s = import_s + cold.stages_s["build"] + stages.get("turns", stages.get("pairs", 0.0))
    floor_s += cold.stages_s["compiler"] + cold.stages_s["compile"]
    ratio = statistics.measured_ratio(measurement.launches, measurement.sequential)
    return Spent(
        tool,
        str(cell),
        round(seconds, 1),
        len(statistics.counted(measurement.launches)),
        ratio,
        round(floor_s, 1),
        {name: round(value, 1) for name, value in stages.items()},
    )


def measure() -> None:
    """Measure what is missing."""
    known = {(spent.tool, spent.cell) for spent in read_lines(KEPT, Spent)}
    missing = [
        (tool, cell)
        # The two methods right after each other, before the drift of half an hour.
        for tools in ((OURS, METHOD_2), PEER_TOOLS)
        for cell in CELLS.values()
        for tool in tools
        if (tool, str(cell)) not in known
    ]
    if not missing:
        return
    python, _ = environments.install(catalogue.read()[-1], ENVIRONMENT)
    python = python.absolute()
    for tool, cell in missing:
        if tool == OURS:
            spent = spent_by_us(OURS, cell, python)
        elif tool == METHOD_2:
            spent = spent_by_method_2(cell, python)
        else:
            spent = spent_by(tool, cell, python)
        append_line(KEPT, msgspec.json.encode(spent))
        print(f"{tool}, {cell}: {spent.seconds} s, ±{spent.half_width:.1%}", flush=True)


def _compared(kept: list[Spent]) -> Sheet:
    """A line for each cell and tool; ours is compared with each other one."""
    ours = {spent.cell: spent for spent in kept if spent.tool == OURS}
    names = ["processes", "ratio", "±", "seconds", "to 3 %", "ours over it"]
    lines = []
    for cell in CELLS.values():
        for spent in kept:
            if spent.cell == str(cell):
                reached = spent.half_width <= settings.PRECISION
                share = ours[spent.cell].needed_s / spent.needed_s
                lines.append(
                    [
                        spent.cell,
                        spent.tool,
                        str(spent.processes),
                        f"{spent.ratio.value:.3f}",
                        f"{spent.half_width:.1%}",
                        f"{spent.seconds:.0f}",
                        f"{spent.seconds:.0f}" if reached else f"≈ {spent.needed_s:.0f}",
                        "" if spent.tool == OURS else f"{share:.2f}",
                    ]
                )
    return Sheet(["cell", "tool", *names], frozenset(names), lines)


def table() -> list[tables.Part]:
    """The cost by cell and tool; the stages of the suite's own processes; the cost by method 2."""
    kept = read_lines(KEPT, Spent)
    ours = {spent.cell: spent for spent in kept if spent.tool == OURS}
    # The stages that took a second or so.
    stages = list(
        dict.fromkeys(
            name
            for spent in ours.values()
            for name, taken_s in spent.stages_s.items()
            if taken_s >= 0.5
        )
    )
    floor = ["launches", "seconds", "floor", "ours over it", *stages]
    floor_lines = [
        [
            spent.cell,
            str(spent.processes),
            f"{spent.seconds:.0f}",
            f"{spent.floor_s:.0f}",
            f"{spent.seconds / spent.floor_s:.2f}",
            *(f"{spent.stages_s.get(name, 0.0):.0f}" for name in stages),
        ]
        for spent in ours.values()
        if spent.floor_s
    ]
    return [
        f"Seconds to a ratio within {settings.PRECISION:.0%}, and every metric. "
        f"≈: estimated, because {LIMIT_S:.0f} s were not enough.",
        _compared(kept),
        "Ours over the floor, and the seconds of all its processes by stage.",
        Sheet(["cell", *floor], frozenset(floor), floor_lines),
        "By method 2, beside other tools, on the Intel Xeon.",
        _compared(read_lines(WITH_PEERS, Spent)),
    ]


if __name__ == "__main__":
    tables.run("cost", table, measure)

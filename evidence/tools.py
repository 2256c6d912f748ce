"""Four benchmarks of one model: PyTorch's dynamo runner, timm's benchmark.py, plain scripts, ours.

Each runs with the defaults of malloc, and with the environment variables that settle the heap.
Writes the table of docs/four-benchmarks.md. Takes half an hour; leave the machine alone meanwhile.
"""

from __future__ import annotations

import csv
import itertools
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import DEFAULT_HEAP, Cell
from torchcompile_suite.host import heap
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.measurement import Launch
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.releases import catalogue
from torchcompile_suite.request import Request

from . import collect, tables
from .agreement import PLAIN
from .collect import ROOT, launch

CELLS = (Cell("mobilenetv2_100", 4, "default"), Cell("resnet18", 1, "default"))
ENDS = ("default", "settled")
REPEATS = 3
KEPT = Path(__file__).with_name("tools.jsonl")
PAGE = ROOT / "docs" / "four-benchmarks.md"
FOLDER = ROOT / ".asv" / "tools"


class Source(NamedTuple):
    """A file or folder of a repository on GitHub, at one commit."""

    repository: str
    commit: str
    path: str


DYNAMO = Source(
    "pytorch/benchmark",
    "0e83c440a51cd63464fee34724d01b7c814ce39b",
    "userbenchmark/dynamo/dynamobench",
)
TIMM = Source(
    "huggingface/pytorch-image-models", "aa4b5850c1543fa488abf260f18390eda46cf85d", "benchmark.py"
)
# The runner's list of exceptions, which its repository lacks. None of our models is in PyTorch's.
NO_EXCEPTIONS = {
    "skip": {"all": [], "device": {"cpu": [], "cpu_aarch64": []}},
    "batch_size": {"divisors": {}},
    "tolerance": {
        "freezing": [],
        "highest_training": [],
        "even_higher": [],
        "even_higher_max_autotune": [],
        "higher_training": [],
        "higher_amp": [],
        "higher_fp16_xpu": [],
    },
    "accuracy": {"skip": {"eager_not_deterministic": []}},
    "require_larger_multiplier_for_smaller_tensor": [],
    "emulate_precision_casts": [],
    "dtype": {"force_amp_for_fp16_bf16_models": []},
    "scaled_compute_loss": [],
}
# What the dynamo runner imports beside torch and timm.
LIBRARIES = (
    *("pandas==2.3.3", "scipy==1.16.3", "python-dateutil==2.9.0.post0", "pytz==2025.2"),
    *("tzdata==2025.2", "six==1.17.0", "tabulate==0.9.0"),
)


class Run(msgspec.Struct):
    """One answer of a tool: seconds a call of both sides, and how long the answer took."""

    cell: Cell
    tool: str
    end: str
    eager_s: float
    mode_s: float
    seconds: float
    torch: str

    @property
    def ratio(self) -> float:
        """Compiled over eager."""
        return self.mode_s / self.eager_s


class Place(NamedTuple):
    """The Python of the release, the variables of the processes, a folder for caches, and which end
    of the heap is asked for.
    """

    python: Path
    variables: dict[str, str]
    folder: Path
    end: str

    def run(self, *arguments: str, cwd: Path | None = None) -> str:
        """Run a Python program to its end and return its output. Raises CalledProcessError."""
        return subprocess.run(
            [str(self.python), *arguments],
            cwd=cwd or self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        ).stdout


def dynamo_runner(place: Place, cell: Cell) -> tuple[float, float]:
    """Eager and compiled in one process, call by call in turns: the medians of 30 calls each."""
    runner = _fetched(DYNAMO)
    (runner / "timm_models_list.txt").write_text(f"{cell.workload} {cell.batch_size}\n")
    (runner / "timm_models.yaml").write_bytes(msgspec.json.encode(NO_EXCEPTIONS))  # YAML, too
    # Random weights: nothing is downloaded, and the speed is the same.
    script = runner / "timm_models.py"
    script.write_text(script.read_text().replace("pretrained=True)", "pretrained=False)"))
    output = place.folder / "dynamo.csv"
    output.unlink(missing_ok=True)
    place.run(
        "timm_models.py", "--performance", "--inference", "--inductor", "--device=cpu",
        "--float32", f"--batch-size={cell.batch_size}", f"--only={cell.workload}",
        f"--output={output}",
        cwd=runner,
    )  # fmt: skip
    (row,) = csv.DictReader(output.read_text().splitlines())
    compiled_s = float(row["abs_latency"]) / 1e3
    return compiled_s * float(row["speedup"]), compiled_s


def timm_benchmark(place: Place, cell: Cell) -> tuple[float, float]:
    """One process of each: the mean of 40 calls after 10."""
    script = _fetched(TIMM)
    means_s = []
    for more in ((), ("--torchcompile",)):
        printed = place.run(
            str(script), f"--model={cell.workload}", "--bench=inference", "--device=cpu",
            f"--batch-size={cell.batch_size}", "--no-retry", *more,
        )  # fmt: skip
        means_s.append(json.loads(printed.partition("--result")[2])["infer_step_time"] / 1e3)
    return means_s[0], means_s[1]


def plain_scripts(place: Place, cell: Cell) -> tuple[float, float]:
    """One process of each: the median over stretches of 50 ms, after a second."""
    of_side = {}
    for side in ("eager", "compiled"):
        printed = place.run(str(PLAIN), cell.workload, str(cell.batch_size), side)
        of_side[side] = float(printed.splitlines()[-1].split()[0])
    return of_side["eager"], of_side["compiled"]


def this_suite(place: Place, cell: Cell) -> tuple[float, float]:
    """A measurement as `try` makes it: at least three launches."""
    allocator = DEFAULT_HEAP if place.end == "default" else "system"
    cell = msgspec.structs.replace(cell, allocator=allocator)
    cache = place.folder / "suite"
    launches: list[Launch] = []
    while not statistics.precise(launches, 0.05) and len(launches) < 6:
        kind = "warm" if cache.exists() else "cold"
        launches.append(launch(place.python, Request(cell, kind, str(cache), observe=False)))  # type: ignore[arg-type]
    eager_s = statistics.measured_eager(launches).value
    return eager_s, eager_s * statistics.measured_ratio(launches).value


TOOLS: dict[str, Callable[[Place, Cell], tuple[float, float]]] = {
    "PyTorch's dynamo runner": dynamo_runner,
    "timm's benchmark.py": timm_benchmark,
    "plain scripts, each side alone": plain_scripts,
    "this suite": this_suite,
}


def _fetched(source: Source) -> Path:
    """The source's file or folder, downloaded once."""
    folder = FOLDER / source.repository.replace("/", "+")
    if not (folder / source.path).exists():
        folder.mkdir(parents=True, exist_ok=True)
        url = f"https://github.com/{source.repository}"
        for arguments in (
            ("init", "--quiet"),
            ("fetch", "--quiet", "--depth=1", url, source.commit),
            ("checkout", "--quiet", source.commit, "--", source.path),
        ):
            subprocess.run(["git", "-C", str(folder), *arguments], check=True)
    return folder / source.path


def _libraries() -> Path:
    target = FOLDER / "libraries"
    if not target.exists():
        subprocess.run(
            ["uv", "pip", "install", "--quiet", "--no-deps", f"--target={target}", *LIBRARIES],
            check=True,
        )
    return target


def measure() -> None:
    """Make the missing runs. May be interrupted and run again."""
    release = catalogue.read()[-1]
    python = collect.newest()
    libraries = _libraries()
    for number, cell, (tool, answer), end in itertools.product(
        range(REPEATS), CELLS, TOOLS.items(), ENDS
    ):
        if len(_made(cell, tool, end)) > number:
            continue
        with tempfile.TemporaryDirectory(prefix="tools-") as folder:
            variables = {
                # Ours settles the heap itself.
                **(heap.VARIABLES if end == "settled" and answer is not this_suite else {}),
                "PYTHONPATH": str(libraries),
                "TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache",
            }
            place = Place(python, collect.variables(python, variables), Path(folder), end)
            start = time.monotonic()
            eager_s, mode_s = answer(place, cell)
        made = Run(cell, tool, end, eager_s, mode_s, time.monotonic() - start, release.version)
        append_line(KEPT, msgspec.json.encode(made))
        print(f"{cell}, {tool}, {end}: {made.ratio:.3f} in {made.seconds:.0f} s", flush=True)


def _made(cell: Cell, tool: str, end: str) -> list[Run]:
    runs = read_lines(KEPT, Run)
    return [run for run in runs if (run.cell, run.tool, run.end) == (cell, tool, end)]


def table() -> list[tables.Part]:
    """A line for each cell and tool."""
    figures = [
        f"{end}: {name}" for end in ENDS for name in ("eager ms", "compiled ms", "compiled/eager")
    ]
    lines = []
    for cell, tool in itertools.product(CELLS, TOOLS):
        line = [f"{cell.workload}, batch {cell.batch_size}", tool]
        seconds = []
        for end in ENDS:
            runs = _made(cell, tool, end)
            if not runs:
                line += ["", "", ""]
                continue
            ratios = [run.ratio for run in runs]
            line += [
                f"{median(run.eager_s for run in runs) * 1e3:.1f}",
                f"{median(run.mode_s for run in runs) * 1e3:.1f}",
                f"{median(ratios):.2f}"
                + (f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else ""),
            ]
            seconds += [run.seconds for run in runs]
        lines.append([*line, f"{median(seconds):.0f}" if seconds else ""])
    columns = ["cell", "benchmark", *figures, "seconds an answer"]
    return [
        "default: malloc as a script gets it. settled: with the environment variables. "
        "Each figure is the median of the answers, with the smallest and the largest if there are "
        "several.",
        Sheet(columns, frozenset([*figures, "seconds an answer"]), lines),
        f"PyTorch {', '.join(sorted({run.torch for run in read_lines(KEPT, Run)}))}.",
    ]


if __name__ == "__main__":
    os.environ.setdefault("GIT_TERMINAL_PROMPT", "0")
    tables.run("tools", table, measure, PAGE)

"""How do the report's time and memory grow with what it shows? On synthetic results.

Every synthetic measurement is a real one from results/ under another name, machine and release, its
times multiplied by a random factor, so that sizes and spreads are real. Each size is published in a
process of its own; the figures are those of `torchcompile_suite.site.build` alone.

``python -m evidence.scale`` grows to a hundred cells; ``--full`` goes on to 12 releases x 10
machines x 1000 cells, which needs some gigabytes of disk and takes long.
"""

from __future__ import annotations

import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console
from rich.table import Table

from torchcompile_suite.cell import Launch, Measurement
from torchcompile_suite.cli.history import newest_patches
from torchcompile_suite.modes import MODES
from torchcompile_suite.releases import catalogue, ledger
from torchcompile_suite.results import records
from torchcompile_suite.site import build, paths


class Size(NamedTuple):
    """How much is measured."""

    machines: int
    releases: int
    cells: int

    @property
    def measurements(self) -> int:
        """The number of measurements."""
        return self.machines * self.releases * self.cells


SIZES = [Size(1, 12, 10), Size(1, 12, 30), Size(1, 12, 100), Size(3, 12, 100)]
FULL = [Size(1, 12, 300), Size(1, 12, 1000), Size(10, 12, 1000)]


class Cost(msgspec.Struct):
    """What publishing took: seconds, bytes, files."""

    seconds: float
    peak_bytes: int
    pages: int
    written_bytes: int
    first_page_bytes: int


def fill(results: Path, size: Size) -> None:
    """Write so many measurements below ``results``."""
    chosen = random.Random(1)
    real = [one.measurement for one in records.read(Path("results")).records]
    real = [one for one in real if one.outcome.ok]
    releases = newest_patches(catalogue.read())[-size.releases :]
    commits = {release.version: sha for sha, release in ledger.compute()[0].items()}
    kinds = [chosen.choice(real) for _ in range(size.cells)]
    modes = [mode for mode in MODES if mode != "eager"]
    for machine in range(size.machines):
        folder = results / f"machine-{machine}"
        folder.mkdir(parents=True)
        (folder / "machine.json").write_text(f'{{"machine": "{folder.name}", "version": 1}}')
        for release in releases:
            file = records.path(folder, commits[release.version], "virtualenv-py3.11")
            with file.open("wb") as stream:
                for number, kind in enumerate(kinds):
                    name = f"synthetic-{number // len(modes):04}"
                    made = _like(kind, name, modes[number % len(modes)], release.version, chosen)
                    stream.write(msgspec.json.encode(made) + b"\n")


def _like(
    kind: Measurement, name: str, mode: str, release: str, chosen: random.Random
) -> Measurement:
    cell = msgspec.structs.replace(kind.cell, workload=name, batch_size=1, mode=mode)
    factors = [chosen.lognormvariate(0, 0.02), chosen.lognormvariate(0, 0.05)]
    launches = [_launch(each, release, factors) for each in kind.launches]
    return msgspec.structs.replace(kind, cell=cell, launches=launches)


def _launch(launch: Launch, release: str, factors: list[float]) -> Launch:
    environment = launch.environment
    if environment is not None:
        environment = msgspec.structs.replace(environment, torch=release)
    pairs = [(eager * factors[0], mode * factors[1]) for eager, mode in launch.pairs_s]
    return msgspec.structs.replace(launch, pairs_s=pairs, environment=environment)


def publish(results: Path, folder: Path) -> Cost:
    """Build the report and say what it took."""
    started = time.perf_counter()
    content = build.build(results, folder)
    seconds = time.perf_counter() - started
    assert content.problems == [], content.problems[0]
    files = [file for file in folder.rglob("*") if file.is_file()]
    first = [folder / paths.OVERVIEW, folder / "site.css"]
    return Cost(
        seconds,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        sum(file.suffix == ".html" for file in files),
        sum(file.stat().st_size for file in files),
        sum(file.stat().st_size for file in first),
    )


def main() -> None:
    """Print the table, a line a size."""
    if sys.argv[1:2] == ["--one"]:
        sys.stdout.buffer.write(msgspec.json.encode(publish(Path(sys.argv[2]), Path(sys.argv[3]))))
        return
    table = Table(title="The report's cost, by what it shows")
    for name in ("machines", "releases", "cells", "measurements", "records MB"):
        table.add_column(name, justify="right")
    for name in ("seconds", "ms each", "peak MB", "pages", "site MB", "first page KB"):
        table.add_column(name, justify="right")
    for size in SIZES + (FULL if "--full" in sys.argv else []):
        with tempfile.TemporaryDirectory(dir=".") as scratch:
            results = Path(scratch, "results")
            fill(results, size)
            read = sum(file.stat().st_size for file in results.rglob("*.jsonl"))
            command = [
                sys.executable,
                "-m",
                "evidence.scale",
                "--one",
                str(results),
                f"{scratch}/site",
            ]
            said = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
            cost = msgspec.json.decode(said, type=Cost)
            shutil.rmtree(results)
        table.add_row(
            *map(str, size),
            f"{size.measurements:,}",
            f"{read / 1e6:.1f}",
            f"{cost.seconds:.1f}",
            f"{cost.seconds / size.measurements * 1e3:.1f}",
            f"{cost.peak_bytes / 1e6:.0f}",
            f"{cost.pages:,}",
            f"{cost.written_bytes / 1e6:.1f}",
            f"{cost.first_page_bytes / 1e3:.0f}",
        )
        # A size may take an hour, and an interrupted run has shown what it knows.
        print(f"{size.measurements:,} measurements: {cost.seconds:.1f} s", flush=True)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()

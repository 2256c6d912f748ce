"""How do the time and the memory of the report grow with the number of results? Synthetic results.

A synthetic measurement is a real one from results/ with another name, machine and release. Its
times are multiplied by a random factor. So sizes and spreads are real. Each size is published in a
process of its own; the figures are those of `torchcompile_suite.site.build` alone.

``python -m evidence.scale`` goes up to a hundred cells. ``--full`` goes on to 12 releases x 10
machines x 1000 cells, which needs some gigabytes of disk and takes long.
"""

from __future__ import annotations

import os
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

from torchcompile_suite.cell import METHOD, Launch, Measurement
from torchcompile_suite.cli.history import newest_patches
from torchcompile_suite.host import machine
from torchcompile_suite.modes import EAGER, MODES
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.releases import catalogue, ledger
from torchcompile_suite.results import records, sealing, segments
from torchcompile_suite.site import build, paths

from . import tables


class Size(NamedTuple):
    """The number of machines, releases and cells."""

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
    """The cost of publishing: seconds, bytes, files."""

    seconds: float
    peak_bytes: int
    pages: int
    written_bytes: int
    first_page_bytes: int


def fill(results: Path, size: Size) -> None:
    """Write the measurements of this size below ``results``."""
    chosen = random.Random(1)
    real = [record.measurement for record in records.read(Path("results")).records]
    # The report leaves out times of older methods, so these would not be shown.
    real = [
        measurement
        for measurement in real
        if measurement.outcome.ok
        and all(launch.method == METHOD for launch in measurement.launches)
    ]
    releases = newest_patches(catalogue.read())[-size.releases :]
    commits = {release.version: sha for sha, release in ledger.compute()[0].items()}
    kinds = [chosen.choice(real) for _ in range(size.cells)]
    modes = [mode for mode in MODES if mode != EAGER]
    for number in range(size.machines):
        folder = results / f"machine-{number}"
        folder.mkdir(parents=True)
        (folder / "machine.json").write_text(f'{{"machine": "{folder.name}", "version": 1}}')
        for release in releases:
            file = records.path(folder, commits[release.version], "virtualenv-py3.11")
            with file.open("wb") as stream:
                for index, kind in enumerate(kinds):
                    name = f"synthetic-{index // len(modes):04}"
                    made = _like(kind, name, modes[index % len(modes)], release.version, chosen)
                    stream.write(msgspec.json.encode(made) + b"\n")
        sealing.seal(folder)


def _like(
    kind: Measurement, name: str, mode: str, release: str, chosen: random.Random
) -> Measurement:
    cell = msgspec.structs.replace(kind.cell, workload=name, batch_size=1, mode=mode)
    factors = [chosen.lognormvariate(0, 0.02), chosen.lognormvariate(0, 0.05)]
    launches = [_launch(launch, release, factors) for launch in kind.launches]
    return msgspec.structs.replace(kind, cell=cell, launches=launches)


def _launch(launch: Launch, release: str, factors: list[float]) -> Launch:
    environment = launch.environment
    if environment is not None:
        environment = msgspec.structs.replace(environment, torch=release)
    pairs = [(eager * factors[0], mode * factors[1]) for eager, mode in launch.pairs_s]
    return msgspec.structs.replace(launch, pairs_s=pairs, environment=environment)


def publish(results: Path, folder: Path) -> Cost:
    """Build the report; what it cost."""
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
    """Publish the table: a line a size."""
    if sys.argv[1:2] == ["--one"]:
        sys.stdout.buffer.write(msgspec.json.encode(publish(Path(sys.argv[2]), Path(sys.argv[3]))))
        return
    columns = ["machines", "releases", "cells", "measurements", "records MB"]
    columns += ["seconds", "ms each", "peak MB", "pages", "site MB", "first page KB"]
    lines = []
    for size in SIZES + (FULL if "--full" in sys.argv else []):
        with tempfile.TemporaryDirectory(dir=".") as scratch:
            results = Path(scratch, "results")
            fill(results, size)
            read = sum(file.stat().st_size for file in results.rglob(f"*{segments.SUFFIX}"))
            command = [
                sys.executable,
                "-m",
                "evidence.scale",
                "--one",
                str(results),
                f"{scratch}/site",
            ]
            printed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
            cost = msgspec.json.decode(printed, type=Cost)
            shutil.rmtree(results)
        lines.append(
            [
                *map(str, size),
                f"{size.measurements:,}",
                f"{read / 1e6:.1f}",
                f"{cost.seconds:.1f}",
                f"{cost.seconds / size.measurements * 1e3:.1f}",
                f"{cost.peak_bytes / 1e6:.0f}",
                f"{cost.pages:,}",
                f"{cost.written_bytes / 1e6:.1f}",
                f"{cost.first_page_bytes / 1e3:.0f}",
            ]
        )
        # Printed at once: a size may take an hour, and the run may be interrupted.
        print(f"{size.measurements:,} measurements: {cost.seconds:.1f} s", flush=True)
    where = f"{machine.cpu_model()}, {os.cpu_count()} processors."
    tables.publish("scale", [Sheet(columns, frozenset(columns), lines), where])


if __name__ == "__main__":
    main()

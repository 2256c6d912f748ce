"""How do the time and the memory of publishing grow with the number of results? Synthetic results.

A synthetic measurement is a real one from results/ with another name, machine and release. Its
times are multiplied by random factors. So sizes and spreads are real. Each command runs as a user
runs it, in a process of its own, with an empty cache at first:

- ``asv publish``, cold; again, with nothing new; after one more segment
- ``torchcompile-suite report`` of two releases
- the first page and the largest view in Chromium, if there is one: bytes, compressed as hosts of
  static pages do, and seconds until everything is drawn

``python -m evidence.scale`` measures 1/100 and 1/10 of 10 machines x 12 releases x 1000 cells;
``--full`` also the whole, which needs some gigabytes of disk and half an hour. ``--no-asv`` builds
the report alone, without ASV's own pages.
"""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil

from torchcompile_suite.asv.export import BENCHMARKS
from torchcompile_suite.cli.history import newest_patches
from torchcompile_suite.host import machine
from torchcompile_suite.measurement import METHOD, Launch, Measurement
from torchcompile_suite.modes import EAGER, MODES
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.releases import catalogue, ledger
from torchcompile_suite.results import records, segments
from torchcompile_suite.results.segments import Header, canonical

from . import tables

ROOT = Path(__file__).parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LAUNCHES = 5
# Cells of the segment that is added.
ADDED = 10
# Seconds between two looks at the memory.
WATCH_S = 0.25


class Size(NamedTuple):
    """The number of machines, releases and cells."""

    machines: int
    releases: int
    cells: int

    @property
    def measurements(self) -> int:
        """The number of measurements."""
        return self.machines * self.releases * self.cells


SIZES = [Size(1, 12, 100), Size(3, 12, 333)]
FULL = [Size(10, 12, 1000)]
BUILD = (
    "import sys; from pathlib import Path; from torchcompile_suite.site import build;"
    "build.build(Path('results'), Path('html/report'))"
)


class Cost(NamedTuple):
    """What a command cost: seconds of the clock and of processors, and the memory of all its
    processes together at the worst moment.
    """

    seconds: float
    processor_seconds: float
    peak_bytes: int

    def __str__(self) -> str:
        """The seconds, those of processors in brackets."""
        return f"{self.seconds:.1f} ({self.processor_seconds:.1f})"


def real_measurements() -> list[Measurement]:
    """The measurements that the synthetic ones are made of. Others would not be shown."""
    found = [record.measurement for record in records.read(ROOT / "results").records]
    return [
        one
        for one in found
        if one.outcome.ok
        and one.cell.mode != EAGER
        and not one.cell.differs()
        and all(launch.method == METHOD for launch in one.launches)
    ]


def fill(results: Path, size: Size) -> None:
    """Write the measurements of this size below ``results``, as segments."""
    chosen = random.Random(1)
    real = real_measurements()
    releases = newest_patches(catalogue.read())[-size.releases :]
    kinds = [chosen.choice(real) for _ in range(size.cells)]
    for number in range(size.machines):
        folder = results / f"machine-{number}"
        folder.mkdir(parents=True)
        facts = {"machine": folder.name, "version": 1, "cpu": f"Synthetic {number}"}
        (folder / "machine.json").write_bytes(msgspec.json.encode(facts))
        for release in releases:
            add(folder, release.version, kinds, chosen)
    shutil.copy2(ROOT / "results" / BENCHMARKS, results / BENCHMARKS)


def add(folder: Path, release: str, kinds: list[Measurement], chosen: random.Random) -> None:
    """Add segments with a measurement of each kind to a machine."""
    commit = next(sha for sha, one in ledger.compute()[0].items() if one.version == release)
    header = Header(folder.name, release, commit[: records.COMMIT_DIGITS], "virtualenv-py3.11")
    for piece in segments.pieces(lines(kinds, release, chosen)):
        head = msgspec.json.encode(header, order="sorted")
        content = b"".join(line + b"\n" for line in (head, *piece))
        # The suite compresses harder, which takes ten times as long.
        data = lzma.compress(content, preset=0)
        file = folder / release / segments.name_of(data)
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)


def lines(kinds: Iterable[Measurement], release: str, chosen: random.Random) -> Iterator[bytes]:
    """The lines of a segment."""
    modes = [mode for mode in MODES if mode != EAGER]
    for index, kind in enumerate(kinds):
        name = f"synthetic-{index // len(modes):04}"
        made = _like(kind, name, modes[index % len(modes)], release, chosen)
        yield canonical(msgspec.json.encode(made))


def _like(
    kind: Measurement, name: str, mode: str, release: str, chosen: random.Random
) -> Measurement:
    cell = msgspec.structs.replace(kind.cell, workload=name, batch_size=1, mode=mode)
    factors = [chosen.lognormvariate(0, 0.02), chosen.lognormvariate(0, 0.05)]
    cold, *warm = (launch for launch in kind.launches if not launch.disturbed)
    launches = [cold, *(chosen.choice(warm or [cold]) for _ in range(LAUNCHES - 1))]
    started = f"2026-11-{chosen.randrange(1, 28):02}T{chosen.randrange(24):02}:00:00+00:00"
    return msgspec.structs.replace(
        kind,
        cell=cell,
        launches=[_launch(launch, release, factors, chosen) for launch in launches],
        started_at=started,
    )


def _launch(launch: Launch, release: str, factors: list[float], chosen: random.Random) -> Launch:
    environment = launch.environment
    if environment is not None:
        environment = msgspec.structs.replace(environment, torch=release)
    own = chosen.lognormvariate(0, 0.01)
    pairs = [(eager * factors[0] * own, mode * factors[1] * own) for eager, mode in launch.pairs_s]
    return msgspec.structs.replace(launch, pairs_s=pairs, environment=environment)


def run(folder: Path, *command: str) -> Cost:
    """Run Python with the arguments in the folder, with a cache of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    # A user's Python keeps its bytecode.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *command], cwd=folder, env=environment, stdout=subprocess.DEVNULL
    )
    held = [0]
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(WATCH_S):
            held.append(_held(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        _, status, used = os.wait4(process.pid, 0)
    finally:
        taken = time.perf_counter() - started
        ended.set()
        watcher.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    # The largest process alone may have its peak between two looks.
    peak = max(*held, used.ru_maxrss * 1024)
    return Cost(taken, used.ru_utime + used.ru_stime, peak)


def _held(pid: int) -> int:
    """The bytes of a process and its descendants. Pages that they share count once."""
    total = 0
    with contextlib.suppress(psutil.Error):
        first = psutil.Process(pid)
        for process in (first, *first.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                total += process.memory_full_info().pss
    return total


def publish(folder: Path, asv: bool) -> Cost:
    """Publish the results of the folder."""
    if asv:
        return run(folder, "-m", "asv", "publish")
    shutil.rmtree(folder / "html", ignore_errors=True)
    return run(folder, "-c", BUILD)


class Views(NamedTuple):
    """The bytes of the first page and of the largest view, and the slowest one's seconds."""

    first_bytes: int
    largest_bytes: int
    slowest_s: float


def look(report: Path) -> Views | None:
    """Load views of the first machine in Chromium; None without one."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        return None
    from playwright.sync_api import Response, sync_playwright

    names = ["index.html", "models.html", "cost.html", "compiler.html", "compare.html"]
    names.append("cell.html#machine=machine-0&cell=synthetic-0000, batch 1, default")
    taken: list[tuple[int, float]] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name in names:
            page = browser.new_page()
            files: list[str] = []

            def loaded(response: Response, files: list[str] = files) -> None:
                files.append(response.url)

            page.on("response", loaded)
            started = time.perf_counter()
            page.goto(f"{report.as_uri()}/{name}")
            page.wait_for_selector("#view[aria-busy=false]")
            page.wait_for_selector("html[data-drawn]")
            page.wait_for_selector("figure:not([data-drawn])", state="detached")
            seconds = time.perf_counter() - started
            paths = {url.removeprefix("file://").partition("#")[0] for url in files}
            sizes = [len(gzip.compress(Path(path).read_bytes(), 6)) for path in paths]
            taken.append((sum(sizes), seconds))
            page.close()
        browser.close()
    return Views(taken[0][0], max(size for size, _ in taken), max(each for _, each in taken))


def measure(size: Size, asv: bool) -> list[str]:
    """A line of the table."""
    with tempfile.TemporaryDirectory(dir=".") as scratch:
        folder = Path(scratch).absolute()
        shutil.copy2(ROOT / "asv.conf.json", folder)
        shutil.copytree(ROOT / "benchmarks", folder / "benchmarks")
        results = folder / "results"
        fill(results, size)
        read = sum(file.stat().st_size for file in results.rglob(f"*{segments.SUFFIX}"))
        print(f"{size.measurements:,} measurements: {read / 1e6:.0f} MB", flush=True)
        costs = [publish(folder, asv), publish(folder, asv)]
        newest = newest_patches(catalogue.read())[-2:]
        add(results / "machine-0", newest[1].version, real_measurements()[:ADDED], random.Random(2))
        costs.append(publish(folder, asv))
        asked = ["report", *(one.tag for one in newest), "--machine", "machine-0"]
        report = run(folder, "-m", "torchcompile_suite", *asked, "--format", "json")
        files = [file for file in (folder / "html").rglob("*") if file.is_file()]
        views = look(folder / "html" / "report")
        line = [
            *map(str, size),
            f"{size.measurements:,}",
            f"{read / 1e6:.0f}",
            *map(str, costs),
            f"{max(cost.peak_bytes for cost in costs) / 2**20:.0f}",
            str(report),
            f"{len(files):,}",
            f"{sum(file.stat().st_size for file in files) / 1e6:.1f}",
            *(
                ["-", "-", "-"]
                if views is None
                else [
                    f"{views.first_bytes / 1e3:.0f}",
                    f"{views.largest_bytes / 1e3:.0f}",
                    f"{views.slowest_s:.2f}",
                ]
            ),
        ]
        # Printed at once: a size may take long, and the run may be interrupted.
        print(" ".join(line), flush=True)
        return line


def main() -> None:
    """Publish the table: a line a size."""
    asv = "--no-asv" not in sys.argv
    columns = ["machines", "releases", "cells", "measurements", "results MB"]
    columns += ["cold s", "again s", "one more segment s", "peak MiB", "report s"]
    columns += ["files", "html MB", "first page KB", "largest view KB", "slowest view s"]
    made = [measure(size, asv) for size in SIZES + (FULL if "--full" in sys.argv else [])]
    where = f"{machine.cpu_model()}, {os.cpu_count()} processors."
    tables.publish("scale", [Sheet(columns, frozenset(columns), made), where])


if __name__ == "__main__":
    main()

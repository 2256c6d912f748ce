"""What does each release launch on an H100, without an H100? All workloads, five releases.

Each release generates the code of all workloads in one process, in mode default and with CUDA
graphs. The kept data has every count, and the seconds that each cell took.

``python -m evidence.launches --again 60`` generates that many of the cells a second time, on one
core: on another machine, too, the counts and the code must be the same.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

import msgspec

from torchcompile_suite import matrix, workloads
from torchcompile_suite.analysis import generated
from torchcompile_suite.cell import Cell
from torchcompile_suite.engine.launches import Generator
from torchcompile_suite.engine.processes import Environment
from torchcompile_suite.host import machine
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.launch.messages import Order
from torchcompile_suite.measurement import Outcome
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.presentation.wording import plural
from torchcompile_suite.releases import catalogue, environments

from . import tables

KEPT = Path(__file__).with_name("launches.jsonl")
RELEASES = ("v2.4", "v2.6", "v2.9", "v2.12", "v2.15")
MODES = ("default", "reduce-overhead")
# The most that a workload should take.
AIM_S = 15.0


class Line(msgspec.Struct, frozen=True):
    """A cell of a release: what was counted, the digest of the code, and the seconds it took.

    ``host``: the processor and the number of cores that the process could use.
    """

    release: str
    cell: Cell
    outcome: Outcome
    counts: dict[str, int]
    breaks: int
    skips: list[str]
    assumed: list[str]
    sha256: str
    taken_s: float
    host: str

    @property
    def key(self) -> tuple[str, Cell]:
        """What was generated."""
        return self.release, self.cell

    def same(self, other: Line) -> bool:
        """Whether the outcome, all counts and the code are the same."""
        mine, others = (
            (one.outcome, one.counts, one.breaks, one.skips, one.assumed, one.sha256)
            for one in (self, other)
        )
        return mine == others


def names() -> list[str]:
    """The workloads, but for those whose graphs are too small to say anything of a launch."""
    small = {"overhead", "attention"}
    return [name for name in workloads.names() if workloads.get(name).family not in small]


def cells() -> Iterator[Cell]:
    """Every workload in both modes, and every training step in mode default."""
    for mode in MODES:
        for name in names():
            yield matrix.CODEGEN.cell(name, mode, matrix.GENERATED_TARGET)
    for name in workloads.tagged("training"):
        yield matrix.TRAINING_CODEGEN.cell(name, "default", matrix.GENERATED_TARGET)


def measure() -> None:
    """Generate what is missing. A release is installed for it, if it is not there."""
    done = {line.key for line in read_lines(KEPT, Line)}
    for name in RELEASES:
        release = catalogue.find(name)
        missing = [cell for cell in cells() if (release.version, cell) not in done]
        if missing:
            _measure(release, missing)


def repeat(count: int) -> None:
    """Generate so many of the kept cells once more, on one core."""
    chosen = random.Random(1).sample(
        sorted({line.key for line in read_lines(KEPT, Line)}, key=str), count
    )
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for name in RELEASES:
        release = catalogue.find(name)
        again = [cell for version, cell in chosen if version == release.version]
        if again:
            _measure(release, again)


def _measure(release: catalogue.Release, missing: list[Cell]) -> None:
    python = environments.ready(release)
    with closing(Generator(Environment(python), matrix.GENERATED_TARGET)) as generator:
        for cell in missing:
            start = time.monotonic()
            launch = generator.make(Order(cell))
            made = launch.generated
            line = Line(
                release.version,
                cell,
                launch.outcome,
                {} if made is None else generated.counts_of(made),
                0 if made is None else len(made.graph_breaks),
                [] if made is None else made.cudagraph_skips,
                [] if made is None else made.assumed,
                "" if made is None else " ".join(code.source_sha256 for code in made.parts),
                round(time.monotonic() - start, 2),
                f"{machine.cpu_model()}, {plural(len(os.sched_getaffinity(0)), 'core')}",
            )
            append_line(KEPT, msgspec.json.encode(line))
            figure = line.counts.get(generated.LAUNCHES, launch.outcome.reason)
            print(f"{release.version} {cell}: {figure}")


def table() -> list[tables.Part]:
    """A line for each workload; a paragraph with every gap and its reason."""
    made = defaultdict(list)
    for line in read_lines(KEPT, Line):
        made[line.key].append(line)
    known = {key: lines[0] for key, lines in made.items()}
    releases = [catalogue.find(name).version for name in RELEASES]
    gaps: dict[str, list[str]] = {}
    parts: list[tables.Part] = [
        "Launches of one call on cuda:sm90, without and with CUDA graphs (a graph is one launch); "
        "training: forward + backward. A dash is a gap, a question mark is not generated yet.",
        Sheet(
            ["workload", *releases],
            frozenset(releases),
            [
                [name, *(_figure(known, release, name, gaps) for release in releases)]
                for name in names()
            ],
        ),
        Sheet(
            ["training", *releases],
            frozenset(releases),
            [
                [name, *(_training(known, release, name, gaps) for release in releases)]
                for name in workloads.tagged("training")
            ],
        ),
    ]
    every = list(cells())
    shares = [
        f"{release}: {_gaps(known, release, every)} of "
        f"{plural(sum((release, cell) in known for cell in every), 'cell')}"
        for release in releases
    ]
    parts.append(f"Gaps: {', '.join(shares)}.")
    parts += [f"- {reason}: {', '.join(where)}" for reason, where in sorted(gaps.items())]
    return [*parts, *_seconds(known.values()), *_repeated(made.values())]


def _seconds(lines: Iterable[Line]) -> list[tables.Part]:
    """A line for each machine and phase: what a cell takes."""
    by_host = defaultdict(list)
    for line in lines:
        by_host[line.host, line.cell.phase].append(line.taken_s)
    columns = ["machine", "phase", "cells", "median s", "at most 15 s", "most s"]
    rows = [
        [
            *host,
            str(len(taken)),
            f"{median(taken):.1f}",
            f"{sum(one <= AIM_S for one in taken) / len(taken):.0%}",
            f"{max(taken):.1f}",
        ]
        for host, taken in sorted(by_host.items())
    ]
    return [Sheet(columns, frozenset(columns[2:]), rows)] if rows else []


def _repeated(made: Iterable[list[Line]]) -> list[tables.Part]:
    """A sentence about the cells that were generated more than once; none if there is none."""
    pairs = [(lines[0], other) for lines in made for other in lines[1:]]
    if not pairs:
        return []
    hosts = sorted({f"{first.host} and {other.host}" for first, other in pairs})
    same = sum(first.same(other) for first, other in pairs)
    return [
        f"{len(pairs)} cells were generated a second time ({'; '.join(hosts)}): {same} have the "
        "same counts and the same code."
    ]


def _gaps(known: dict[tuple[str, Cell], Line], release: str, every: list[Cell]) -> int:
    return sum(
        1
        for cell in every
        if (line := known.get((release, cell))) is not None and not line.outcome.ok
    )


def _figure(
    known: dict[tuple[str, Cell], Line], release: str, name: str, gaps: dict[str, list[str]]
) -> str:
    texts = []
    counts = (generated.LAUNCHES, generated.WITH_CUDA_GRAPHS)
    for mode, count in zip(MODES, counts, strict=True):
        cell = matrix.CODEGEN.cell(name, mode, matrix.GENERATED_TARGET)
        texts.append(_text(known.get((release, cell)), count, f"{name} {mode} {release}", gaps))
    return " / ".join(texts)


def _training(
    known: dict[tuple[str, Cell], Line], release: str, name: str, gaps: dict[str, list[str]]
) -> str:
    cell = matrix.TRAINING_CODEGEN.cell(name, "default", matrix.GENERATED_TARGET)
    line = known.get((release, cell))
    text = _text(line, generated.LAUNCHES, f"{name} training {release}", gaps)
    if line is None or not line.outcome.ok:
        return text
    backward = line.counts.get("of them backward", 0)
    return f"{line.counts[generated.LAUNCHES] - backward} + {backward}"


def _text(line: Line | None, count: str, where: str, gaps: dict[str, list[str]]) -> str:
    if line is None:
        return "?"
    if not line.outcome.ok:
        gaps.setdefault(str(line.outcome), []).append(where)
        return "-"
    return str(line.counts[count])


def main() -> None:
    """Generate, and write the tables."""
    parser = argparse.ArgumentParser(prog="python -m evidence.launches")
    parser.add_argument("--again", type=int, metavar="CELLS", help="Generate so many once more.")
    parser.add_argument("--kept", action="store_true", help="Measure nothing; use the kept data.")
    chosen = parser.parse_args()
    if chosen.again:
        repeat(chosen.again)
    elif not chosen.kept:
        measure()
    tables.publish("launches", table())


if __name__ == "__main__":
    main()

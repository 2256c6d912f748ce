"""What does the state of the heap explain? Four puzzles of earlier measurements, at both ends.

- `pointwise_chain` had a second state, in which only eager was six times slower.
- The training step of `relevance_information` had an interval of 17 to 168 %.
- The peak memory of `resnet18` came in jumps of 27 MB.
- The eager call of `operator_stochastic` takes longer since PyTorch 2.7.

The first three are cells of the newest release, the last one is an eager cell of three releases.
Each has launches with a settled heap and with the default heap, in turns. If a puzzle is one of
malloc, it is gone with a settled heap. Takes half an hour; leave the machine alone meanwhile.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import DEFAULT_HEAP, Cell
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.measurement import Launch
from torchcompile_suite.modes import EAGER
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.releases import catalogue, environments

from . import collect, tables

ENDS = {"settled": "system", "default": DEFAULT_HEAP}
LAUNCHES = 6
OPERATOR = Cell("operator_stochastic", 1, EAGER)
NEWEST = catalogue.read()[-1].tag
KEPT = Path(__file__).with_name("causes.jsonl")


class Puzzle(NamedTuple):
    """A cell of a release."""

    cell: Cell
    release: str


PUZZLES = (
    Puzzle(Cell("pointwise_chain", 1, "default"), NEWEST),
    Puzzle(Cell("relevance_information", 4, "default", phase="training"), NEWEST),
    Puzzle(Cell("resnet18", 1, "default"), NEWEST),
    *(Puzzle(OPERATOR, release) for release in ("v2.6", "v2.9", NEWEST)),
)


class Made(msgspec.Struct):
    """A launch of a puzzle at one end of the heap."""

    release: str
    end: str
    cell: Cell
    launch: Launch


def measure() -> None:
    """Make the missing launches. May be interrupted and run again."""
    pythons = {
        release: environments.ready(catalogue.find(release)).absolute()
        for release in {puzzle.release for puzzle in PUZZLES}
    }
    with tempfile.TemporaryDirectory(prefix="causes-") as scratch:
        for number in range(LAUNCHES):
            for at, puzzle in enumerate(PUZZLES):
                cache = Path(scratch, str(at))
                for end, allocator in ENDS.items():
                    if len(_made(puzzle, end)) > number:
                        continue
                    cell = msgspec.structs.replace(puzzle.cell, allocator=allocator)
                    python = pythons[puzzle.release]
                    made = collect.warm(python, cell, cache)
                    kept = Made(puzzle.release, end, puzzle.cell, made)
                    append_line(KEPT, msgspec.json.encode(kept))
                    print(f"{puzzle.release}, {puzzle.cell}, {end}", flush=True)


def _made(puzzle: Puzzle, end: str) -> list[Launch]:
    return [
        made.launch
        for made in read_lines(KEPT, Made)
        if (made.cell, made.release, made.end) == (puzzle.cell, puzzle.release, end)
    ]


def _figures(launches: Sequence[Launch]) -> Iterator[str]:
    """The columns of a line, each as the range over the launches."""
    yield f"{np.std(np.log([statistics.ratio_of(one) for one in launches]), ddof=1):.1%}"
    yield _range([statistics.eager_latency_of(one) * 1e3 for one in launches], "{:.3g}".format)
    yield _range([statistics.latency_of(one) * 1e3 for one in launches], "{:.3g}".format)
    for name in ("eager_paging", "paging"):
        pagings = [getattr(one, name) for one in launches]
        yield _range([paging.faults for paging in pagings if paging], "{:,.0f}".format)
    for name in ("eager_peak_memory_bytes", "peak_memory_bytes"):
        peaks = [getattr(one, name) for one in launches]
        yield _range([peak / 1e6 for peak in peaks if peak is not None], "{:,.0f}".format)


def _range(values: Sequence[float], text: Callable[[float], str]) -> str:
    """The least and the greatest of the values; empty without values."""
    if not values:
        return ""
    least, most = text(min(values)), text(max(values))
    return least if least == most else f"{least} to {most}"


def table() -> list[tables.Part]:
    """A line for each puzzle and end."""
    lines = []
    for puzzle in PUZZLES:
        for end in ENDS:
            launches = _made(puzzle, end)
            if len(launches) > 1:
                version = catalogue.find(puzzle.release).version
                figures = _figures(launches)
                lines.append([str(puzzle.cell), version, end, str(len(launches)), *figures])
    names = [
        *("launches", "sd of ratio", "eager ms", "compiled ms", "faults, eager", "compiled"),
        *("MB, eager", "MB, compiled"),
    ]
    return [
        "Least and greatest over launches. sd: standard deviation of the log ratio. faults: page "
        "faults a call. MB: peak of the resident set of a process that runs only that side.",
        Sheet(["cell", "PyTorch", "heap", *names], frozenset(names), lines),
        tables.measured_on(made.launch for made in read_lines(KEPT, Made)),
    ]


if __name__ == "__main__":
    tables.run("causes", table, measure)

"""Are the counted bytes those that PyTorch's own GPU tests expect?

``test/inductor/test_perf.py`` says for small functions how many numbers Inductor's kernels read and
write on CUDA: exact integers, checked by PyTorch on real GPUs. `expected_functions` has the
functions and the values. Here they go through the suite's own path, without a GPU, on three
releases.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec

from torchcompile_suite import matrix
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.launch.messages import TARGET_VARIABLE
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.releases import catalogue, environments

from . import tables
from .collect import variables

KEPT = Path(__file__).with_name("expected.jsonl")
RELEASES = ("v2.4", "v2.9", "v2.15")


class Line(msgspec.Struct, frozen=True):
    """An expected value: of a test, the number of the value in it, and what was counted.

    ``fault``: why nothing was counted.
    """

    release: str
    test: str
    number: int
    expected: int
    counted: int | None = None
    fault: str = ""


def measure() -> None:
    """Count what is missing."""
    done = {line.release for line in read_lines(KEPT, Line)}
    for name in RELEASES:
        release = catalogue.find(name)
        if release.version in done:
            continue
        python = environments.ready(release)
        counted = subprocess.run(
            [str(python), "-m", "evidence.expected_runner"],
            env=variables(python, {TARGET_VARIABLE: matrix.GENERATED_TARGET}),
            stdout=subprocess.PIPE,
            check=True,
        )
        for text in counted.stdout.splitlines():
            line = Line(release=release.version, **msgspec.json.decode(text))
            append_line(KEPT, msgspec.json.encode(line))


def table() -> list[tables.Part]:
    """The sums, and a line for each value that differs or was not counted."""
    lines = read_lines(KEPT, Line)
    sums = []
    for release in dict.fromkeys(line.release for line in lines):
        own = [line for line in lines if line.release == release]
        equal = sum(line.counted == line.expected for line in own)
        other = sum(bool(line.fault) for line in own)
        sums.append([release, *map(str, (len(own), equal, len(own) - equal - other, other))])
    columns = ["release", "values", "equal", "differ", "not counted"]
    unequal = [
        [line.release, line.test, str(line.expected), str(line.counted), line.fault]
        for line in lines
        if line.counted != line.expected
    ]
    parts: list[tables.Part] = [
        "Numbers of 4 bytes that the kernels of a function read and write.",
        Sheet(columns, frozenset(columns[1:]), sums),
    ]
    if unequal:
        shown = ["release", "test", "expected", "counted", "why"]
        parts.append(Sheet(shown, frozenset(shown[2:4]), unequal))
    return parts


if __name__ == "__main__":
    tables.run("expected", table, measure)

"""Does the suite find the graph breaks that PyTorch's own tables expect?

``benchmarks/dynamo/ci_expected_accuracy`` has a number for each model of the dashboard and each
release: the sum of a counter over a run that compiles more than the model. `plain/ci_breaks.py`
counts that way; `ci_breaks_runner` lets the suite count the places in the same module. So a row has
PyTorch's number, what is counted here their way, and the suite's places.

``pytorch_tables/README.md`` says where the tables are from and how they count.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from torchcompile_suite.engine import processes
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.releases import apart, catalogue, environments, stamp

from . import break_tables, tables
from .break_tables import NOT_RUN, RELEASES
from .collect import ROOT, variables

KEPT = Path(__file__).with_name("ci_breaks.jsonl")
LIBRARY = "transformers"
TABLES = ("huggingface", "torchbench", "timm")
# The transformers that PyTorch's runs had then, and its tokenizers. Until August 2025 that was
# 243e186e, a commit between 4.38.2 and 4.39; then 4.54 (pytorch#159291).
OLD = ("transformers==4.38.2", "tokenizers==0.15.2")
THEIRS = {"2.4.1": OLD, "2.6.0": OLD, "2.9.1": ("transformers==4.54.0", "tokenizers==0.21.4")}

# Why a model breaks here as often as it does, where PyTorch's table has another number.
EXPLAINED = {
    "vision_maskrcnn": (
        "It depends on the boxes: with box_score_thresh=0 it is 28 in 2.4.1 and 29 in 2.9.1, as in "
        "the tables; here 0.05, random weights and a random image."
    )
}
# By release and model. The partial table of 2.7.1 has the number that was counted here.
UNEXPLAINED = {("2.6.0", "hf_BigBird"): "Not explained."}
# Where the suite lists no place, and what it says instead.
MISSED = {
    "microbench_unbacked_tolist_sum": (
        "It breaks in a loop, so its frame is left to eager: a launch fails with 0 graphs, and "
        "says that it is a loop."
    )
}


class Row(msgspec.Struct, frozen=True):
    """A line of PyTorch's tables."""

    release: str
    table: str
    model: str
    expected: int


class Line(msgspec.Struct, frozen=True):
    """A model that was counted.

    ``counted``, ``graphs``, ``reasons``: as PyTorch's runner counts. ``places``: the suite's.
    ``fault``: why nothing was counted.
    """

    release: str
    table: str
    model: str
    counted: int | None = None
    graphs: int = 0
    reasons: list[str] = []
    places: list[str] = []
    fault: str = ""


def rows() -> Iterator[Row]:
    """Those of the releases, inference on the CPU, that PyTorch's run did not skip."""
    files = {f"cpu_inductor_{table}_inference": table for table in TABLES}
    for line in break_tables.source():
        release, table = RELEASES.get(line["release"]), files.get(line["file"])
        if release and table and line["accuracy"] not in NOT_RUN:
            yield Row(release, table, line["name"], int(line["graph_breaks"]))


def measure() -> None:
    """Count what is missing. May be interrupted and run again."""
    done = {(line.release, line.table, line.model) for line in read_lines(KEPT, Line)}
    for version in RELEASES.values():
        for table in TABLES:
            missing = [
                row.model
                for row in rows()
                if (row.release, row.table) == (version, table)
                and (version, table, row.model) not in done
            ]
            if missing:
                _count(version, table, missing)


def _count(version: str, table: str, models: list[str]) -> None:
    python = environments.ready(catalogue.find(version))
    more = {"OMP_NUM_THREADS": "1"}
    if table != "timm":
        apart.provide(python, (LIBRARY,))
        folders = [_theirs(python, version), stamp.apart(LIBRARY, python.parents[1])]
        more["PYTHONPATH"] = processes.import_path(*folders)
    command = [str(python), "-W", "ignore", "-m", "evidence.ci_breaks_runner", table, *models]
    with subprocess.Popen(
        command, cwd=ROOT, env=variables(python, more), stdout=subprocess.PIPE
    ) as counting:
        assert counting.stdout is not None
        for text in counting.stdout:
            line = Line(release=version, **msgspec.json.decode(text))
            append_line(KEPT, msgspec.json.encode(line))


def _theirs(python: Path, version: str) -> Path:
    """The folder of the older transformers, which is made if it is missing."""
    pins = THEIRS[version]
    folder = ROOT / ".asv" / pins[0]
    if not folder.exists():
        how = ["--no-deps", "--target", str(folder), "--python", str(python), *pins]
        subprocess.run([sys.executable, "-m", "uv", "pip", "install", *how], check=True)
    return folder


def pairs() -> list[tuple[Row, Line]]:
    """The rows for which there is a line."""
    kept = {(line.release, line.table, line.model): line for line in read_lines(KEPT, Line)}
    return [
        (row, line)
        for row in rows()
        if (line := kept.get((row.release, row.table, row.model))) is not None
    ]


def table() -> list[tables.Part]:
    """The sums of each release and table, and a line for each model that breaks or differs."""
    known = pairs()
    compared = [(row, line) for row, line in known if not line.fault]
    columns = ["release", "table", "rows", "compared", "with breaks", "equal", "explained"]
    columns.append("the suite agrees")
    sums = []
    for release, name in dict.fromkeys((row.release, row.table) for row, _ in known):
        own = [pair for pair in compared if (pair[0].release, pair[0].table) == (release, name)]
        listed = sum((row.release, row.table) == (release, name) for row, _ in known)
        figures = (listed, *_sums(own))
        sums.append([release, name, *map(str, figures)])
    sums.append(["all", "", str(len(known)), *map(str, _sums(compared))])
    shown = [
        "release",
        "model",
        "PyTorch's table",
        "counted so",
        "the suite's places",
        "what breaks",
    ]
    return [
        Sheet(columns, frozenset(columns[2:]), sums),
        "Models that break, and those that differ:",
        Sheet(shown, frozenset(shown[2:5]), [_shown(*pair) for pair in compared if _worth(*pair)]),
        _not_compared(known),
    ]


def _sums(own: list[tuple[Row, Line]]) -> tuple[int, ...]:
    return (
        len(own),
        sum(bool(row.expected or line.counted) for row, line in own),
        sum(line.counted == row.expected for row, line in own),
        sum(line.counted != row.expected and row.model in EXPLAINED for row, line in own),
        sum(agrees(line) for _, line in own),
    )


def agrees(line: Line) -> bool:
    """Whether the suite finds breaks where there are some, at most as often as they are counted."""
    return bool(line.places) == bool(line.counted) and len(line.places) <= (line.counted or 0)


def _worth(row: Row, line: Line) -> bool:
    return bool(row.expected or line.counted) or not agrees(line)


def _shown(row: Row, line: Line) -> list[str]:
    places = "; ".join(dict.fromkeys(place.partition(": ")[0] for place in line.places))
    known = EXPLAINED.get(row.model) or UNEXPLAINED.get((row.release, row.model), "")
    why = known if line.counted != row.expected else ""
    why = why if agrees(line) else MISSED.get(row.model, "")
    numbers = (row.expected, line.counted, len(line.places))
    return [row.release, row.model, *map(str, numbers), f"{why} {places}".strip()]


def _not_compared(known: list[tuple[Row, Line]]) -> str:
    """The models that were not counted, by the reason."""
    models: dict[str, set[str]] = {}
    for row, line in known:
        if line.fault:
            models.setdefault(line.fault.partition(": ")[2], set()).add(row.model)
    told = (f"{why} ({', '.join(sorted(names))})" for why, names in models.items())
    return f"Not compared: {'; '.join(told)}."


if __name__ == "__main__":
    tables.run("ci_breaks", table, measure)

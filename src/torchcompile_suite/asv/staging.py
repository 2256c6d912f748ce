"""The results that ASV reads: a temporary folder with what is sound, and nothing else.

ASV stops at the first file that it cannot read. So `asv publish`, `asv compare` and `asv show` read
a folder with the result files that are made from the measurements (`export`).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from .. import matrix
from ..host import machine
from ..host.files import write_atomically
from ..results import descriptions, parsing, records
from ..results.parsing import Problem
from . import export
from .repository import known_commits

# ASV's pages show these metrics of inference and training. ASV writes a file for each benchmark and
# machine: with all questions html/ would grow by 23 files a machine. The report has them all.
PUBLISHED = {
    *("track_latency", "track_time_ratio", "track_peak_memory"),
    *("track_cold_compile", "track_warm_compile"),
}
_MODELS = (matrix.INFERENCE.name, matrix.TRAINING.name)

Axes: TypeAlias = Mapping[str, list[list[str]]]
"""The values on each axis of a benchmark that were measured, by benchmark."""


class Staged(NamedTuple):
    """What is there to read, and the folder of results itself.

    - ``machines``: the names of those that ASV can read. ``files``: the result files.
    - ``problems``: what is left out, and why.
    """

    results: Path
    machines: list[str]
    files: list[Path]
    problems: list[Problem]


@contextmanager
def staged(conf: Any, *, every: bool = True) -> Iterator[Staged]:
    """While it is entered, ``conf.results_dir`` has files that are made from the measurements.

    Without ``every`` the list of benchmarks has those of `is_published` only.
    """
    results = Path(conf.results_dir)
    with tempfile.TemporaryDirectory(prefix="torchcompile-suite-results-") as folder:
        stage = _fill(Path(folder), results, conf, every)
        conf.results_dir = folder
        try:
            yield stage
        finally:
            conf.results_dir = str(results)


def restore(conf: Any, machine_name: str = "") -> None:
    """Write the files of ASV's that the machine's folder lacks, or that of any: `asv run NEW` looks
    there what was measured.
    """
    with staged(conf) as stage:
        for file in stage.files:
            if machine_name not in ("", file.parent.name):
                continue
            missing = stage.results / file.parent.name / file.name
            if not missing.exists():
                write_atomically(missing, file.read_bytes())


def _fill(folder: Path, results: Path, conf: Any, every: bool) -> Staged:
    """Make the result files in ``folder``, and the descriptions of the machines."""
    problems: list[Problem] = []
    described = machines(results, problems)
    commits = known_commits(conf)
    made: dict[Path, Axes] = {}
    for one in export.derive(results, described, commits, Path(conf.benchmark_dir), problems):
        file = folder / one.path
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(one.content)
        made[file] = axes_of(one.content)
    for file in described:
        # ASV's pages make HTML of these, and use nothing else of them but the name.
        fields = descriptions.read(file.parent).fields
        safe = {key: escape(one) if isinstance(one, str) else one for key, one in fields.items()}
        copy = folder / file.parent.name / file.name
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(json.dumps(safe))
    _stage_benchmarks(folder, results, made.values(), every)
    names = [file.parent.name for file in described]
    return Staged(results, names, list(made), list(dict.fromkeys(problems)))


def machines(results: Path, problems: list[Problem]) -> list[Path]:
    """The machine.json of each machine that ASV can read. The others are added to ``problems``."""
    found = []
    folders, links = records.machine_folders(results)
    problems += links
    for file in (folder / machine.FILE for folder in folders):
        if not os.path.lexists(file):
            continue
        with parsing.named(f"{file.parent.name}/{file.name}", problems):
            fields = descriptions.read(file.parent).fields
            if (version := fields.pop("version", None)) != 1:
                raise ValueError(f"the version of the file is {version!r}, not 1")
            # ASV uses the other fields as parameters of graphs.
            for key, value in fields.items():
                if not isinstance(value, str):
                    raise ValueError(f"{key} must be text")
            found.append(file)
    return found


def axes_of(data: bytes) -> Axes:
    """The axes of each benchmark in a result file that `export` has made."""
    content = json.loads(data)
    at = content["result_columns"].index("params")
    return {name: line[at] for name, line in content["results"].items()}


def _stage_benchmarks(folder: Path, results: Path, made: Iterable[Axes], every: bool) -> None:
    """Put the list of benchmarks into ``folder``. Its axes have what was measured, and no more.

    A run records its own axes only, and results of other machines may have other workloads.
    """
    file = results / export.BENCHMARKS
    if not file.is_file():
        return
    staged = folder / export.BENCHMARKS
    try:
        content = export.read_object(file)
        fit_axes(content, made)
    except (ValueError, LookupError, TypeError):
        staged.symlink_to(file.resolve())  # ASV says what is wrong with it
        return
    # Benchmarks that are not the suite's are always there.
    ours = [name for name in content if matrix.find(name) is not None]
    for name in ours if not every else ():
        if not is_published(name):
            del content[name]
    staged.write_text(json.dumps(content))


def fit_axes(benchmarks: dict[str, Any], results: Iterable[Axes]) -> None:
    """Let the axes of ``benchmarks``, the content of benchmarks.json, have what was measured.

    The workloads of other machines are appended to the first axis, sorted. What no result has is
    removed: ASV keeps a value for each place of the grid, in memory and in its files. A benchmark
    without results keeps its axes, and so does one with other axes than its results.
    """
    measured: dict[str, list[set[str]]] = {}
    for one in results:
        for name, own in one.items():
            known = measured.setdefault(name, [set() for _ in own])
            for values, axis in zip(known, own, strict=True):
                values.update(axis)
    for name, known in measured.items():
        params = benchmarks[name]["params"] if name in benchmarks else []
        if not params or len(params) != len(known):
            continue
        first, *others = params
        here = [[*first, *sorted(known[0].difference(first))], *others]
        benchmarks[name]["params"] = [
            [value for value in axis if value in values] or axis
            for axis, values in zip(here, known, strict=True)
        ]


def is_published(benchmark: str) -> bool:
    """Whether ASV's pages show a benchmark of the suite, a ``module.Class.method``."""
    question, _, metric = benchmark.rpartition(".")
    return question in _MODELS and metric in PUBLISHED

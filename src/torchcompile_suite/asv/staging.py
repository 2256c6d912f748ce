"""The results that ASV reads: a temporary folder with what is sound, and nothing else.

ASV stops at the first file that it cannot read. So `asv publish`, `asv compare` and `asv show` read
a folder with the result files that are made from the measurements (`export`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from .. import matrix
from ..host.files import write_atomically
from ..results.records import Problem
from . import export, files
from .errors import user_errors
from .repository import known_commits

# ASV's pages show these metrics of inference and training. ASV writes a file for each benchmark and
# machine: with all questions html/ would grow by 23 files a machine. The report has them all.
PUBLISHED = {
    *("track_latency", "track_time_ratio", "track_peak_memory"),
    *("track_cold_compile", "track_warm_compile"),
}
_MODELS = (matrix.INFERENCE.name, matrix.TRAINING.name)


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

    Without ``every`` the list of benchmarks has those of `is_published` only. Raises UserError.
    """
    results = Path(conf.results_dir)
    with tempfile.TemporaryDirectory(prefix="torchcompile-suite-results-") as folder:
        with user_errors():
            stage = _fill(Path(folder), results, conf, every)
        conf.results_dir = folder
        try:
            yield stage
        finally:
            conf.results_dir = str(results)


def restore(conf: Any) -> None:
    """Write the files of ASV's that results/ lacks: `asv run NEW` looks there what was measured."""
    with staged(conf) as stage, user_errors():
        for file in stage.files:
            missing = stage.results / file.parent.name / file.name
            if not missing.exists():
                write_atomically(missing, file.read_bytes())


def _fill(folder: Path, results: Path, conf: Any, every: bool) -> Staged:
    """Make the result files in ``folder``, and link the descriptions of the machines."""
    problems: list[Problem] = []
    described = files.machines(results, problems)
    commits = known_commits(conf)
    made: dict[Path, files.Axes] = {}
    for one in export.derive(results, described, commits, Path(conf.benchmark_dir), problems):
        file = folder / one.path
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(one.content)
        made[file] = files.axes(one.content)
    for file in described:
        link = folder / file.parent.name / file.name
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(file.resolve())
    _stage_benchmarks(folder, results, made.values(), every)
    names = [file.parent.name for file in described]
    return Staged(results, names, list(made), list(dict.fromkeys(problems)))


def _stage_benchmarks(folder: Path, results: Path, made: Iterable[files.Axes], every: bool) -> None:
    """Put the list of benchmarks into ``folder``. Its axes have what was measured, and no more.

    A run records its own axes only, and results of other machines may have other workloads.
    """
    file = results / files.BENCHMARKS
    if not file.is_file():
        return
    staged = folder / files.BENCHMARKS
    try:
        content = files.read_object(file)
        files.fit_axes(content, made)
    except (ValueError, LookupError, TypeError):
        staged.symlink_to(file.resolve())  # ASV says what is wrong with it
        return
    for name in [] if every else _unpublished(content):
        del content[name]
    staged.write_text(json.dumps(content))


def is_published(benchmark: str) -> bool:
    """Whether ASV's pages show a benchmark of the suite, a ``module.Class.method``."""
    question, _, metric = benchmark.rpartition(".")
    return question in _MODELS and metric in PUBLISHED


def _unpublished(names: Iterable[str]) -> list[str]:
    """The benchmarks of the suite that ASV's pages lack."""
    return [name for name in names if matrix.find(name) is not None and not is_published(name)]

"""The results that ASV reads: a temporary folder with what is sound, and nothing else.

ASV stops at the first file that it cannot read. So `asv publish`, `asv compare` and `asv show` read
a folder with the result files that are made from the measurements (`export`), and links to ASV's
own sound files where there are no measurements.
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
from ..releases import ledger
from ..results import asv_files, regular
from ..results.records import Problem
from . import export
from .errors import user_errors
from .repository import of_releases

# ASV's pages show these metrics of inference and training. ASV writes a file for each benchmark and
# machine: with all questions html/ would grow by 23 files a machine. The report has them all.
PUBLISHED = {
    *("track_latency", "track_time_ratio", "track_peak_memory"),
    *("track_cold_compile", "track_warm_compile"),
}
_MODELS = (matrix.INFERENCE.name, matrix.TRAINING.name)


class Staged(NamedTuple):
    """What the checks found, and the folder of results itself."""

    checked: asv_files.Checked
    results: Path


@contextmanager
def staged(conf: Any, *, every: bool = True) -> Iterator[Staged]:
    """While it is entered, ``conf.results_dir`` has sound files only.

    Without ``every`` the list of benchmarks has those of `is_published` only. Raises UserError.
    """
    results = Path(conf.results_dir)
    with tempfile.TemporaryDirectory(prefix="torchcompile-suite-results-") as folder:
        with user_errors():
            checked = _fill(Path(folder), results, conf, every)
        conf.results_dir = folder
        try:
            yield Staged(checked, results)
        finally:
            conf.results_dir = str(results)


def restore(conf: Any) -> None:
    """Write the files of ASV's that results/ lacks: `asv run NEW` looks there what was measured."""
    with staged(conf) as stage, user_errors():
        for file in stage.checked.results:
            missing = stage.results / file.parent.name / file.name
            if not missing.exists():
                write_atomically(missing, file.read_bytes())


def _fill(folder: Path, results: Path, conf: Any, every: bool) -> asv_files.Checked:
    """Put the sound files of ``results`` into ``folder``. Returns all that is there."""
    commits = ledger.compute()[0] if of_releases(conf) else None
    checked = asv_files.check(results, commits)
    if commits is not None:
        package = Path(conf.benchmark_dir)
        machines = checked.machines.values()
        for made in export.derive(results, machines, commits, package, checked.problems):
            file = folder / made.path
            checked.results.pop(results / made.path, None)
            try:
                content = asv_files.result(made.content, file.parent.name, commits)
            except ValueError as error:
                checked.problems.append(Problem(str(made.path), str(error)))
                continue
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(made.content)
            checked.results[file] = asv_files.without_samples(content)
    checked.problems[:] = dict.fromkeys(checked.problems)
    for file in sorted(checked.files):
        link = folder / file.parent.name / file.name
        if file != link:
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(file.resolve())
    _stage_benchmarks(folder, results, checked, every)
    return checked


def _stage_benchmarks(folder: Path, results: Path, checked: asv_files.Checked, every: bool) -> None:
    """Put the list of benchmarks into ``folder``. Its axes have what was measured, and no more.

    A run records its own axes only, and results of other machines may have other workloads.
    """
    file = results / asv_files.BENCHMARKS
    if not regular.is_regular(file):
        return
    staged = folder / asv_files.BENCHMARKS
    try:
        content = asv_files.read_object(file)
        results_of_all = list(checked.results.values())
        changed = asv_files.add_workloads(content, results_of_all)
        changed |= asv_files.keep_measured(content, results_of_all)
        if not every:
            changed |= bool([content.pop(name) for name in _unpublished(content)])
    except ValueError:
        changed = False  # ASV says what is wrong with it
    if changed:
        staged.write_text(json.dumps(content))
    else:
        staged.symlink_to(file.resolve())


def is_published(benchmark: str) -> bool:
    """Whether ASV's pages show a benchmark of the suite, a ``module.Class.method``."""
    question, _, metric = benchmark.rpartition(".")
    return question in _MODELS and metric in PUBLISHED


def _unpublished(names: Iterable[str]) -> list[str]:
    """The benchmarks of the suite that ASV's pages lack."""
    return [name for name in names if matrix.find(name) is not None and not is_published(name)]

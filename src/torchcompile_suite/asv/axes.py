"""The axes of the benchmarks: what ASV discovers here, and what earlier runs recorded."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asv.benchmarks import Benchmarks

from ..results import asv_files
from . import interleaved, tables


def discover(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Benchmarks.discover`, which keeps the workloads of earlier runs on the axes.

    ASV rewrites benchmarks.json and each result file with the axes of the current run. So a run
    without somebody's workload file would erase what was measured of its workloads. A missing value
    is appended to the first axis. This leaves the places of the others as they are. It is never
    selected.
    """

    def discover(
        cls: type[Benchmarks],
        conf: Any,
        repo: Any,
        environments: Any,
        commit_hash: Any,
        regex: Any = None,
        check: bool = False,
    ) -> Benchmarks:
        here = original(cls, conf, repo, environments, commit_hash, None, check)
        recorded = asv_files.recorded_benchmarks(Path(conf.results_dir))
        kept = [_with_recorded_values(one, recorded.get(name)) for name, one in here.items()]
        benchmarks = cls(conf, kept, regex=regex)
        for name, selected in benchmarks.benchmark_selection.items():
            if selected is None:
                continue
            points = math.prod(map(len, here[name]["params"]))
            selected[:] = [index for index in selected if index < points]
            if not selected:
                benchmarks.pop(name, None)
        benchmarks.commits = list(commit_hash)  # for the progress of the run
        tables.select(benchmarks.benchmark_selection)
        interleaved.discovered(conf, repo, environments, commit_hash, benchmarks)
        return benchmarks

    return discover


def _with_recorded_values(benchmark: dict[str, Any], recorded: dict[str, Any] | None) -> Any:
    params = benchmark["params"]
    before = (recorded or {}).get("params")
    if not params or not before or len(params) != len(before):
        return benchmark
    gone = [value for value in before[0] if value not in params[0]]
    return {**benchmark, "params": [[*params[0], *gone], *params[1:]]}

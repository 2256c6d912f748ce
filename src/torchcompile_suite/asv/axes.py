"""The axes of the benchmarks: what ASV discovers here, and what earlier runs recorded."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asv import util
from asv.benchmarks import Benchmarks
from asv.environment import ExistingEnvironment

from .. import matrix
from ..host.files import write_or_say
from . import export, runner
from .errors import user_errors


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
        # The benchmarks are the same in each environment, and their releases may hang.
        try:
            here = original(cls, conf, repo, [_Here(conf)], commit_hash[:1], None, check)
        except util.UserError as error:  # a benchmark that is not ours may import the project
            if isinstance(error.__context__, KeyboardInterrupt):
                raise
            here = original(cls, conf, repo, environments, commit_hash, None, check)
        recorded = export.recorded_benchmarks(Path(conf.results_dir))
        kept = [_with_recorded_values(one, recorded.get(name)) for name, one in here.items()]
        # `asv find` measures the core of a benchmark that is named without parameters.
        narrowed = matrix.narrowed(regex) if isinstance(regex, str) else regex
        benchmarks = Discovered(conf, kept, regex=narrowed)
        for name, selected in benchmarks.benchmark_selection.items():
            if selected is None:
                continue
            points = math.prod(map(len, here[name]["params"]))
            selected[:] = [index for index in selected if index < points]
            if not selected:
                benchmarks.pop(name, None)
        if (run := runner.current()) is not None:
            run.commits, run.environments = list(commit_hash), list(environments)
        return benchmarks

    return discover


class _Here(ExistingEnvironment):  # type: ignore[misc]
    """This Python."""

    # ASV finds environments by this name. It is that of no configuration.
    tool_name = "torchcompile-suite"

    def __init__(self, conf: Any) -> None:
        super().__init__(conf, sys.executable, {}, {})


class Discovered(Benchmarks):  # type: ignore[misc]
    """ASV's list of benchmarks. A full disk must not truncate its file."""

    def save(self) -> None:
        """See `Benchmarks.save`."""
        path = Path(self.get_benchmark_file_path(self._conf.results_dir))
        content = {**self._all_benchmarks, "version": self.api_version}
        with user_errors():
            data = json.dumps(content, indent=4, sort_keys=True).encode()
            write_or_say(path, data, "nothing was changed")


def _with_recorded_values(benchmark: dict[str, Any], recorded: dict[str, Any] | None) -> Any:
    params = benchmark["params"]
    before = (recorded or {}).get("params")
    if not params or not before or len(params) != len(before):
        return benchmark
    gone = [value for value in before[0] if value not in params[0]]
    return {**benchmark, "params": [[*params[0], *gone], *params[1:]]}

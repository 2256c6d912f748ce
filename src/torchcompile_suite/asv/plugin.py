"""What ASV needs from the suite: a repository of releases, a stable machine, a careful run.

With asv.conf.json the repository is the ledger of releases; with asv.commits.conf.json it is a
clone of PyTorch, whose commits are laid over the releases and nightlies that they descend from.

The only module that imports asv. ASV loads it (``plugins`` in asv.conf.json) and calls `setup`
before it opens the repository. Where ASV has no hook, a method is wrapped here, and only here;
each says why.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from asv import util
from asv.benchmarks import Benchmarks
from asv.commands import publish
from asv.commands.find import Find
from asv.commands.run import Run
from asv.console import log
from asv.environment import Environment
from asv.machine import Machine, MachineCollection
from asv.plugins import regressions
from asv.publishing import OutputPublisher
from asv.results import Results

from ..commits import overlay
from ..commits.clone import Clone
from ..errors import SuiteError
from ..host import machine
from ..host.files import write_atomically
from ..launch import progress
from ..measuring.settings import (
    BUDGET_VARIABLE,
    LAUNCHES_VARIABLE,
    PREFIX,
    RESULTS_VARIABLE,
    REUSE_VARIABLE,
)
from ..releases import catalogue, ledger
from ..results import asv_files, records

try:
    from .. import matrix, workloads
except SuiteError as error:  # a workload file of the user's that cannot be used
    raise util.UserError(str(error)) from None

LEDGER = Path(".asv/ledger")
DRIFT_VARIABLE = PREFIX + "ALLOW_NATIVE_DRIFT"
# A bare run is a survey of the whole core within the hour: most cells get the three launches that
# an interval needs, and --bench gives the chosen ones the time to be surer.
CORE_BUDGET_S = 30


def setup() -> None:
    """Prepare this process; ASV calls it once, in the folder of asv.conf.json."""
    try:
        ledger.build(LEDGER)
        if files := workloads.files():
            os.environ[workloads.VARIABLE] = os.pathsep.join(str(file.resolve()) for file in files)
        Machine.hardcoded_machine_name = machine.detect().machine
    except (SuiteError, OSError) as error:
        raise util.UserError(str(error)) from None
    Machine.get_defaults = staticmethod(lambda: machine.detect()._asdict())
    Machine.load = classmethod(_load_machine)
    Machine.save = _save_machine
    Run.run = classmethod(_run)
    Find.run = classmethod(_find)
    Environment.install_project = _install_project
    Results.get_result_value = _get_result_value
    publish.Publish.run = classmethod(_publish)
    Benchmarks.__init__ = _init_benchmarks
    util.write_json = _write_json


class Report(OutputPublisher):  # type: ignore[misc]
    """ASV calls each publisher at ``asv publish``: this one makes its pages work offline and adds
    the report. It is the last, after which ASV writes its index of all benchmarks.
    """

    name = "report"
    button_label = "Report"
    description = "What the results say"
    order = 100

    @classmethod
    def publish(cls, conf: Any, _repo: Any, benchmarks: Benchmarks, graphs: Any, _: Any) -> None:
        """Write the report beside ASV's pages and tell of every file that was left out."""
        # ASV's pages would ask for the graphs of those without a result in vain.
        for name in [each for each in benchmarks if not graphs.get_graph_group(each)]:
            del benchmarks[name]
        # Drawing takes a second to import, which no other command of ASV's should pay.
        from ..site import build
        from . import pages

        html = Path(conf.html_dir)
        try:
            pages.localise(html, conf.project, report=_of_releases(conf))
            if not _of_releases(conf):
                return  # the report compares releases; commits have ASV's own pages
            content = build.build(Path(conf.results_dir), html / "report", _left_out)
        except SuiteError as error:
            raise util.UserError(str(error)) from None
        except OSError as error:
            raise util.UserError(
                f"cannot write {error.filename}: {error.strerror}; mend it and publish again"
            ) from None
        for problem in content.problems[len(_left_out) :]:
            log.warning(f"left out: {problem}")


_asv_load_machine = Machine.load.__func__
_asv_run = Run.run.__func__
_asv_find = Find.run.__func__
_asv_install_project = Environment.install_project
_asv_publish = publish.Publish.run.__func__
_asv_machine_files = publish.iter_machine_files
_asv_get_result_value = Results.get_result_value
_asv_init_benchmarks = Benchmarks.__init__


def _load_machine(
    cls: type[Machine], /, *, machine_name: str | None = None, **options: Any
) -> Machine:
    """`Machine.load`, filling in this machine's stable identity instead of asking questions.

    What the user told ``asv machine`` still wins; otherwise ``~/.asv-machine.json`` is neither
    needed nor written.
    """
    described = options.get("force_interactive") or any(name in options for name, _ in cls.fields)
    if machine_name is not None and not described:
        try:
            MachineCollection.load(machine_name, _path=options.get("_path"))
            described = True
        except util.UserError:
            pass
    try:
        here = machine.detect(machine_name)
    except machine.MachineError as error:
        raise util.UserError(str(error)) from None
    if described:
        loaded = _asv_load_machine(cls, machine_name=machine_name, **options)
        # ASV's own description knows no device, and CPU and GPU must not share a series.
        loaded.__dict__.setdefault("device", here.device)
    else:
        loaded = cls()
        loaded.__dict__.update(here._asdict())
    return loaded


def _save_machine(self: Machine, results_dir: str) -> None:
    """`Machine.save`, keeping the fields of a machine's first run for ever.

    ASV splits a series when any of them changes. This is also where the run's results folder is
    first known, so the benchmarks are told of it here.
    """
    folder = Path(results_dir).resolve() / self.machine
    file = folder / "machine.json"
    try:
        recorded = json.loads(file.read_text())
    except FileNotFoundError:
        recorded = {}
    except (OSError, ValueError) as error:
        raise util.UserError(
            f"{file} cannot be read ({error}); restore it, for instance with git checkout"
        ) from None
    if recorded:
        try:
            machine.check_same(recorded, self.__dict__)
        except machine.MachineError as error:
            raise util.UserError(str(error)) from None
        recorded.pop("version", None)
        self.__dict__.update(recorded)
    else:
        util.write_json(str(file), self.__dict__, self.api_version)
    os.environ[RESULTS_VARIABLE] = str(folder)


def _run(cls: type[Run], /, conf: Any, **options: Any) -> Any:
    """`Run.run`, with samples kept, progress shown, and existing results skipped cell by cell.

    - Without ``--bench`` it measures the core. The axes stay what they are, so that no run
      publishes a narrower matrix than another.
    - ASV drops the samples unless asked; ``asv compare`` judges better with them.
    - ASV's own ``--skip-existing`` skips a whole benchmark as soon as one parameter was measured
      and counts a failure as existing. Ours asks the records: what is settled is looked up, what
      failed or is missing is measured, so an interrupted history is completed.
    """
    skip = options.pop("skip_successful", False) | options.pop("skip_failed", False)
    os.environ[REUSE_VARIABLE] = "1" if skip else "0"
    if options.get("quick"):
        os.environ.setdefault(LAUNCHES_VARIABLE, "2")  # a cold and a warm one: every metric, once
    options["record_samples"] = True
    _with_nightlies(conf)
    if not options.get("bench"):
        options["bench"] = matrix.core_patterns()
        os.environ.setdefault(BUDGET_VARIABLE, str(CORE_BUDGET_S))
        log.info(
            f"Measuring the core, {len(matrix.core_cells())} cells; "
            "--bench selects others, and --bench . everything."
        )
    found = options.setdefault("_returns", {})
    with progress.listening(progress.Progress(lambda: _cells(found), log.info).hear):
        return _asv_run(cls, conf=conf, **options)


def _find(cls: type[Find], /, conf: Any, range_spec: str, bench: str, **options: Any) -> Any:
    """`Find.run`; of a benchmark named without parameters it measures the core's cells alone."""
    bench = matrix.narrowed(bench)
    with progress.listening(progress.Progress(lambda: 0, log.info).hear):
        return _asv_find(cls, conf, range_spec, bench, **options)


def _of_releases(conf: Any) -> bool:
    """Whether ASV works on the ledger, and not on a clone of PyTorch."""
    return Path(conf.repo).absolute() == LEDGER.absolute()


def _with_nightlies(conf: Any) -> None:
    """Have ASV look at the branch of nightlies, which is there as soon as one was added."""
    if _of_releases(conf) and catalogue.nightlies():
        conf.branches = [ledger.BRANCH, ledger.NIGHTLY_BRANCH]


def _install_project(self: Environment, conf: Any, repo: Any, commit_hash: str) -> None:
    """`Environment.install_project`, laying a commit of PyTorch over its base.

    Nothing is checked out: a work tree of PyTorch comes with gigabytes of submodules. A commit that
    is refused counts as installed, for the environment says so to whoever would measure in it, so
    that the reason is recorded and ``asv find`` goes on to another commit.
    """
    if _of_releases(conf) or conf.build_command:
        _asv_install_project(self, conf, repo, commit_hash)
        return
    self._set_commit_hash(commit_hash)
    self._set_build_dirs(None, None)
    if self._get_installed_commit_hash() == commit_hash:
        return
    self._set_installed_commit_hash(None)
    log.info(f"Laying {repo.get_decorated_hash(commit_hash, 8)} over its base")
    try:
        overlay.install(
            Clone(Path(repo._path)),
            commit_hash,
            Path(self._path),
            allow_native_drift=os.environ.get(DRIFT_VARIABLE) == "1",
        )
    except overlay.Refused as refused:
        log.warning(f"not measured: {refused}")
    except SuiteError as error:
        raise util.UserError(str(error)) from None
    self._set_installed_commit_hash(commit_hash)


# What `Report` is to say of files that ASV was not shown.
_left_out: list[records.Problem] = []


def _publish(cls: type[publish.Publish], /, conf: Any, *arguments: Any, **options: Any) -> Any:
    """`Publish.run` on the files that are sound: ASV stops at the first that is not.

    The others are named and left out, and the rest publishes.
    """
    _with_nightlies(conf)
    commits = ledger.compute()[0] if _of_releases(conf) else None
    good, problems = asv_files.sound(Path(conf.results_dir), commits)
    _left_out[:] = problems
    for problem in problems:
        log.warning(f"left out: {problem}")

    def machine_files(folder: str) -> Iterator[str]:
        return (file for file in _asv_machine_files(folder) if Path(file) in good)

    def iter_results(_conf: Any, repo: Any, range_spec: Any = None) -> Iterator[Results]:
        hashes = None if range_spec is None else repo.get_hashes_from_range(range_spec)
        for file in sorted(good):
            if file.name != "machine.json":
                result = Results.load(str(file))
                if hashes is None or result.commit_hash in hashes:
                    yield result

    def every_result(_folder: str) -> Iterator[Results]:
        return iter_results(conf, None)

    publish.iter_machine_files = machine_files
    regressions.iter_results = every_result
    cls.iter_results = staticmethod(iter_results)
    return _asv_publish(cls, conf, *arguments, **options)


def _cells(found: dict[str, Any]) -> int:
    """How many cells each release of this run has; 0 before ASV has discovered them."""
    benchmarks = found.get("benchmarks")
    if benchmarks is None:
        return 0
    selection = benchmarks.benchmark_selection
    return len(
        {
            matrix.cell_at(name, index) or (name.rpartition(".")[0], index)
            for name in benchmarks
            for index in selection[name] or [None]
        }
    )


def _init_benchmarks(
    self: Benchmarks, conf: Any, benchmarks: list[dict[str, Any]], regex: Any = None
) -> None:
    """`Benchmarks`, with the workloads of earlier runs kept on the axes.

    ASV rewrites benchmarks.json and each result under the axes of the run at hand, so a run without
    somebody's workload file would erase what was measured of it. What is missing now is appended to
    the first axis, which leaves the others' places as they are, and never selected.
    """
    recorded = _recorded_benchmarks(Path(conf.results_dir) / "benchmarks.json")
    here = {each["name"]: math.prod(map(len, each["params"])) for each in benchmarks}
    kept = [_with_recorded_values(each, recorded.get(each["name"])) for each in benchmarks]
    _asv_init_benchmarks(self, conf, kept, regex)
    for name, selected in self._benchmark_selection.items():
        if selected is None:
            continue
        selected[:] = [index for index in selected if index < here[name]]
        if not selected:
            self.pop(name, None)


def _recorded_benchmarks(file: Path) -> dict[str, Any]:
    """What benchmarks.json holds; nothing where there is none, or none that can be read."""
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return {name: each for name, each in content.items() if isinstance(each, dict)}


def _with_recorded_values(benchmark: dict[str, Any], recorded: dict[str, Any] | None) -> Any:
    params = benchmark["params"]
    before = (recorded or {}).get("params")
    if not params or not before or len(params) != len(before):
        return benchmark
    gone = [value for value in before[0] if value not in params[0]]
    return {**benchmark, "params": [[*params[0], *gone], *params[1:]]}


def _get_result_value(self: Results, key: str, params: Any) -> Any:
    """`Results.get_result_value`, telling "never measured" from "failed".

    ASV says None for both, so that adding a workload would turn every older release's results
    into "n/56 failed" as soon as one more of its cells is measured.
    """
    values = _asv_get_result_value(self, key, params)
    if not isinstance(values, list):
        return values
    known = set(itertools.product(*self._benchmark_params[key]))
    return [
        math.nan if value is None and point not in known else value
        for value, point in zip(values, itertools.product(*params), strict=True)
    ]


@functools.wraps(util.write_json)
def _write_json(
    path: str, data: Any, api_version: int | None = None, compact: bool = False
) -> None:
    """`util.write_json`, all or nothing: a full disk must not cut a result file short."""
    if api_version is not None:
        data = {**data, "version": api_version}
    text = json.dumps(data) if compact else json.dumps(data, indent=4, sort_keys=True)
    try:
        write_atomically(Path(path), text.encode(), sync=False)
    except OSError as error:
        raise util.UserError(
            f"cannot write {path}: {error.strerror}; nothing was changed"
        ) from None

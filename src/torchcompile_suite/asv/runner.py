"""`run_benchmarks`, replaced: the suite measures its own benchmarks, and ASV runs all others.

ASV would start a process for each metric of each cell. Here each cell is measured once and
recorded, and ASV's results are made of the records (`export`): `asv run` writes what `asv publish`
derives.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from asv.commands.run import Run as AsvRun
from asv.console import log
from asv.repo import get_repo
from asv.results import Results
from asv.runner import BenchmarkResult
from asv_runner.statistics import compute_stats

from .. import matrix
from ..cell import Cell
from ..engine.alone import Alone
from ..engine.processes import of_release
from ..engine.progress import CellProgress, measurement_line
from ..engine.settings import BUDGET_VARIABLE, LAUNCHES_VARIABLE, Settings
from ..errors import SuiteError
from ..host import machine
from ..presentation.wording import printable
from ..results import descriptions, records, sealing
from ..results.records import COMMIT_DIGITS
from . import export, interleaved
from .environment import OverlayEnvironment, ReleaseEnvironment
from .export import Recorded
from .reading import shown, summed_up
from .repository import add_nightlies
from .staging import restore

# A run without --bench measures the whole core within an hour: most cells get the three launches
# that an interval needs. Cells that --bench names get more time and narrower intervals.
CORE_BUDGET_S = 30


@dataclass
class Run:
    """A run of ASV's.

    - ``reuse``: whether what is recorded is not measured again.
    - ``in_turns``: whether releases take turns. ``taken``: the environments whose releases have
      taken theirs.
    - ``compares``: whether ASV compares two commits afterwards (`asv continuous`).
    - ``commits``, ``environments``: what it measures; empty until ASV has found the benchmarks.
    """

    reuse: bool = False
    in_turns: bool = False
    taken: set[str] = field(default_factory=set)
    compares: bool = False
    commits: list[str] = field(default_factory=list)
    environments: list[Any] = field(default_factory=list)
    # The text of a recorded outcome may be a stranger's.
    progress: CellProgress = field(
        default_factory=lambda: CellProgress(lambda text: log.info(printable(text)))
    )


_run: ContextVar[Run | None] = ContextVar("run", default=None)
# `asv find` measures one commit after the other, and does not know how many.
_finding = Run(compares=True)


# Options of `asv run` that would record wrong results, or that have no effect here.
_REFUSED = {
    "dry_run": "--dry-run has no use here: a measurement is recorded, and ASV's files are made of "
    "the records; to measure and record nothing: torchcompile-suite try",
    "set_commit_hash": "--set-commit-hash would record one release's numbers as another's; name "
    "the release: asv run v2.9^!",
    "attribute": "--attribute and --cpu-affinity change no measurement here; for the variables "
    "that do, see docs/measure-releases.md, and for processors: taskset -c 0-3 asv run ...",
}


def current() -> Run | None:
    """The run of `asv run` in progress. None in other commands, such as `asv find`."""
    return _run.get()


def run(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Run.run`, which measures the core without ``--bench``, and skips cell by cell.

    - The axes stay the same, so that no run publishes a narrower matrix than another.
    - ``--interleave-rounds`` measures the releases in turns (`interleaved`).
    - ASV's own ``--skip-existing`` skips a whole benchmark as soon as one parameter was measured,
      and counts a failure as existing. Ours asks the records: a settled cell is looked up, and a
      failed or missing one is measured. So the next run completes an interrupted history.
    """

    def run(cls: type[AsvRun], conf: Any, **options: Any) -> Any:
        skip = options.pop("skip_successful", False) | options.pop("skip_failed", False)
        for name, reason in _REFUSED.items():
            if options.get(name):
                raise SuiteError(reason)
        for name in ("append_samples", "profile"):
            if options.get(name):
                log.warning(f"--{name.replace('_', '-')} does nothing in the suite's benchmarks")
        if options.get("quick"):
            # A cold and a warm launch give each metric once.
            os.environ.setdefault(LAUNCHES_VARIABLE, "2")
            log.warning("--quick: two launches a cell; as the newest, they count from now on")
        if overlooked := machine.overlooked():
            log.warning(overlooked)
        add_nightlies(conf)
        if not options.get("bench"):
            options["bench"] = matrix.core_patterns()
            os.environ.setdefault(BUDGET_VARIABLE, str(CORE_BUDGET_S))
            log.info(
                f"Measuring the core, {len(matrix.core_cells())} cells, and generating code for "
                f"{len(matrix.core_generated())}; --bench selects others, and --bench . everything."
            )
        here = machine.detect(options.get("machine")).machine
        if options.get("range_spec") == "EXISTING":  # of any machine, says ASV
            restore(conf)
        elif options.get("range_spec") == "NEW" or options.get("skip_existing_commits"):
            restore(conf, here)
        elif options.get("range_spec") == "TAGS":
            # ASV would take their names for commits; a release may have several.
            options["range_spec"] = [*reversed(dict.fromkeys(get_repo(conf).get_tags().values()))]
        # ASV would install in other processes, and the environment moves from folder to folder.
        options["parallel"] = 1
        # Nothing begins where the device that is to be measured is missing.
        machine.need(machine.device_kind())
        _forget_torn(Path(conf.results_dir, here))
        in_turns = options.pop("interleave_rounds", False)
        if in_turns is None:  # `asv continuous` compares times
            in_turns = conf.environment_type == ReleaseEnvironment.tool_name
        compares = options.get("_returns") is not None
        token = _run.set(Run(reuse=skip, in_turns=in_turns, compares=compares))
        try:
            return original(cls, conf=conf, **options)
        finally:
            _run.reset(token)

    return run


def _forget_torn(folder: Path) -> None:
    """Remove ASV's files that a full disk has left half: they are made of the records again."""
    for file in folder.glob("[0-9a-f]" * COMMIT_DIGITS + "-*.json"):
        try:
            export.read_object(file)
        except ValueError:
            file.unlink()


def run_benchmarks(original: Callable[..., Any]) -> Callable[..., Any]:
    """`run_benchmarks`, which measures the suite's own benchmarks."""

    def run(benchmarks: Any, env: Any, results: Any = None, **options: Any) -> Results:
        ours = [name for name in benchmarks if matrix.find(name) is not None]
        if len(ours) < len(benchmarks):
            results = original(benchmarks.filter_out(ours), env, results=results, **options)
        if ours:
            try:
                _measure(benchmarks, sorted(ours), env, results)
            except KeyboardInterrupt:
                # `asv find` and `asv continuous` have no such option.
                only = "" if (current() or _finding).compares else " with --skip-existing"
                raise SuiteError(f"interrupted; to continue: the same command{only}") from None
        return results

    return run


def _measure(benchmarks: Any, names: list[str], env: Any, results: Any) -> None:
    """Measure the selected cells of our benchmarks, and fill ASV's results with the records."""
    if not isinstance(env, ReleaseEnvironment | OverlayEnvironment):
        raise SuiteError(
            f"-E {env.tool_name} has no release to record; measure your own environment with: "
            "torchcompile-suite try"
        )
    conf = benchmarks._conf
    folder = Path(conf.results_dir, results.params["machine"])
    record = records.path(folder, results.commit_hash, env.name)
    selection = {name: benchmarks.benchmark_selection[name] for name in names}
    cells = _cells(selection)
    machine.need(machine.device_kind())
    _seal(folder)
    try:
        _record(conf, env, record, cells)
    finally:
        _seal(folder)
    recorded = export.read(records.files(folder)[0][record])[0]
    known = [name for name in export.recorded_benchmarks(folder.parent) if matrix.find(name)]
    package = Path(benchmarks.benchmark_dir)
    export.fill(results, sorted({*known, *names}), package, recorded)
    for name in names:
        _show(benchmarks[name], selection[name], package, recorded, results)


def _record(conf: Any, env: Any, record: Path, cells: list[Cell]) -> None:
    """Measure the cells in ASV's environment, unless the file has what the run wants."""
    run = current() or _finding
    on = machine.device_kind()
    cells = [msgspec.structs.replace(cell, device=on) for cell in cells]
    run.progress.expect(cells, len(run.commits) * len(run.environments))
    python = Path(env.find_executable("python"))
    alone = Alone(of_release(python, env.env_vars), Settings.from_environment(), record)
    if run.in_turns and env.name not in run.taken:
        timed = [cell for cell in cells if not cell.target]
        interleaved.measure(conf, env, run.commits, record.parent, timed, run.reuse)
        run.taken.add(env.name)
    overlay = descriptions.overlay(python.parent.parent)
    for cell in cells:
        known = None
        if run.in_turns and not cell.target:
            known = records.newest(record, cell)
        elif run.reuse:
            known = alone.recorded(cell)
        if known is not None:
            text = f"{measurement_line(known)} (measured before)"
            run.progress.finished(cell, text)
            continue
        run.progress.started(cell)
        made = alone.measure(cell, overlay.refused if overlay else "")
        run.progress.finished(cell, measurement_line(made), made.duration_s)


def _cells(selection: Mapping[str, list[int]]) -> list[Cell]:
    """The selected cells, each once, in the order of ASV's benchmarks."""
    return list(
        dict.fromkeys(
            question.cell(*question.points[index])
            for name, indices in selection.items()
            if (question := matrix.find(name)) is not None
            for index in indices
        )
    )


def _seal(folder: Path) -> None:
    """Make segments of the journals. What cannot be sealed stays where it is: it counts, too."""
    for problem in sealing.seal(folder).problems:
        log.warning(printable(f"not sealed: {problem}"))


def _show(
    benchmark: Any, selected: list[int], package: Path, recorded: Recorded, results: Results
) -> None:
    """Print the selected cells of a benchmark, and tell ASV whether any of them failed.

    ASV itself draws the whole grid of parameters: 2,700 lines for four cells.
    """
    name = benchmark["name"]
    method = export.method_of(package, name)
    question = matrix.find(name)
    assert question is not None
    assert method is not None
    points = list(itertools.product(*benchmark["params"]))
    run = current() or _finding
    # `asv find` goes on to another commit where there is no value, and takes NaN for one.
    numbers: list[int | float | None] = [None if run is _finding else math.nan] * len(points)
    samples: list[list[int | float] | None] = [None] * len(points)
    lines, failed = [], 0
    for index in selected:
        point = question.points[index]
        measurement = recorded.measure(question.cell(*point))
        value = export.value_of(method, recorded, point, measurement)
        number: int | float | None = math.nan
        stats = None
        if value is not None:
            number = value.number
            numbers[index], samples[index] = number, value.samples
            if value.samples:
                number, stats = compute_stats(value.samples, 1)
        line = shown(points[index], number, stats, benchmark["unit"])
        failed += number is None
        lines.append(line if number is not None else printable(f"{line}: {measurement.outcome}"))
    log.step()
    log.info(name, reserve_space=True)
    log.add_padded(summed_up(len(lines), failed))
    log.info("\n".join(lines), color="default")
    if run.compares:
        # The selected cells only, and all places: ASV takes those that are missing for failures.
        sampled = [1 if one else None for one in samples]
        made = BenchmarkResult(numbers, samples, sampled, 0, "", None)
        results.add_result(benchmark, made, record_samples=True)
    results.errcode[name] = 1 if failed else 0

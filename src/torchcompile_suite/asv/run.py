"""`asv run` and `asv find`: what they measure, and what they print meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from asv.commands.find import Find
from asv.commands.run import Run
from asv.console import log

from .. import matrix
from ..host import machine
from ..launch import progress
from ..measuring.progress import CellProgress
from ..measuring.settings import BUDGET_VARIABLE, LAUNCHES_VARIABLE, REUSE_VARIABLE
from ..presentation.wording import printable
from ..results import sealing
from . import interleaved
from .errors import user_errors
from .repository import add_nightlies
from .staging import restore

# A run without --bench measures the whole core within an hour: most cells get the three launches
# that an interval needs. Cells that --bench names get more time and narrower intervals.
CORE_BUDGET_S = 30


def run(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Run.run`, which keeps samples, shows progress, and skips existing results cell by cell.

    - Without ``--bench`` it measures the core. The axes stay the same, so that no run publishes a
      narrower matrix than another.
    - ASV drops the samples unless asked. ``asv compare`` judges better with them.
    - ``--interleave-rounds`` measures the releases in turns (`interleaved`).
    - ASV's own ``--skip-existing`` skips a whole benchmark as soon as one parameter was measured,
      and counts a failure as existing. Ours asks the records: a settled cell is looked up, and a
      failed or missing one is measured. So the next run completes an interrupted history.
    """

    def run(cls: type[Run], conf: Any, **options: Any) -> Any:
        skip = options.pop("skip_successful", False) | options.pop("skip_failed", False)
        os.environ[REUSE_VARIABLE] = "1" if skip else "0"
        if options.get("quick"):
            # A cold and a warm launch give each metric once.
            os.environ.setdefault(LAUNCHES_VARIABLE, "2")
        options["record_samples"] = True
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
        if options.get("range_spec") in ("NEW", "EXISTING") or options.get("skip_existing_commits"):
            restore(conf)
        # ASV would install in other processes, and the environment moves from folder to folder.
        options["parallel"] = 1
        turns = (
            interleaved.in_turns(skip) if options.pop("interleave_rounds", False) else nullcontext()
        )
        returned = options.setdefault("_returns", {})
        printer = CellProgress(lambda: _cells(returned), log.info)
        with _sealed(conf, options.get("machine")), turns, progress.listening(printer.hear):
            return original(cls, conf=conf, **options)

    return run


def find(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Find.run`; for a benchmark without parameters it measures only the cells of the core."""

    def run(cls: type[Find], conf: Any, range_spec: str, bench: str, **options: Any) -> Any:
        printer = CellProgress(lambda: 0, log.info)
        with _sealed(conf, options.get("machine")), progress.listening(printer.hear):
            return original(cls, conf, range_spec, matrix.narrowed(bench), **options)

    return run


@contextmanager
def _sealed(conf: Any, machine_name: str | None) -> Iterator[None]:
    """Seal the machine's journals at the end, and before that what a killed run left.

    What cannot be sealed is said and stays where it is: it counts as before. Nothing begins where
    the device that is to be measured is missing.
    """
    with user_errors():
        machine.need(machine.device_kind())
        folder = Path(conf.results_dir, machine.detect(machine_name).machine)
    _seal(folder)
    try:
        yield
    finally:
        _seal(folder)


def _seal(folder: Path) -> None:
    for problem in sealing.seal(folder).problems:
        log.warning(printable(f"not sealed: {problem}"))


def _cells(returned: dict[str, Any]) -> int:
    """How many cells this run measures, in all releases; 0 until ASV has discovered them."""
    benchmarks = returned.get("benchmarks")
    if benchmarks is None:
        return 0
    selection = benchmarks.benchmark_selection
    cells = {
        matrix.cell_at(name, index) or (name.rpartition(".")[0], index)
        for name in benchmarks
        for index in selection[name] or [None]
    }
    return len(cells) * len(benchmarks.commits) * len(returned["environments"])

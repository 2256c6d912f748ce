"""`asv run`: what it measures."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asv.commands.run import Run
from asv.console import log

from .. import matrix
from ..engine.settings import BUDGET_VARIABLE, LAUNCHES_VARIABLE
from ..host import machine
from . import files, runner
from .errors import user_errors
from .repository import add_nightlies
from .staging import restore

# A run without --bench measures the whole core within an hour: most cells get the three launches
# that an interval needs. Cells that --bench names get more time and narrower intervals.
CORE_BUDGET_S = 30


def run(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Run.run`, which measures the core without ``--bench``, and skips cell by cell.

    - The axes stay the same, so that no run publishes a narrower matrix than another.
    - ``--interleave-rounds`` measures the releases in turns (`interleaved`).
    - ASV's own ``--skip-existing`` skips a whole benchmark as soon as one parameter was measured,
      and counts a failure as existing. Ours asks the records: a settled cell is looked up, and a
      failed or missing one is measured. So the next run completes an interrupted history.
    """

    def run(cls: type[Run], conf: Any, **options: Any) -> Any:
        skip = options.pop("skip_successful", False) | options.pop("skip_failed", False)
        if options.get("quick"):
            # A cold and a warm launch give each metric once.
            os.environ.setdefault(LAUNCHES_VARIABLE, "2")
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
        with user_errors():
            # Nothing begins where the device that is to be measured is missing.
            machine.need(machine.device_kind())
            _forget_torn(Path(conf.results_dir, machine.detect(options.get("machine")).machine))
        in_turns = options.pop("interleave_rounds", False)
        with runner.running(runner.Options(reuse=skip, in_turns=in_turns)):
            return original(cls, conf=conf, **options)

    return run


def _forget_torn(folder: Path) -> None:
    """Remove ASV's files that a full disk has left half: they are made of the records again."""
    for file in folder.glob("*.json"):
        try:
            files.read_object(file)
        except ValueError:
            if file.name != machine.FILE:
                file.unlink()

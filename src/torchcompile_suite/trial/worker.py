"""``python -m torchcompile_suite.trial.worker``: measures a trial with the torch of this Python.

Reads an `Order` from stdin. Appends each result to the order's file at once, one `plan.Known` a
line, so a kill loses only the current launch. If it cannot begin, it writes a `plan.NotMeasured` to
stdout and ends with exit status 1.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import msgspec

from .. import workloads
from ..cell import DEFAULT_HEAP, Cell, Launch
from ..errors import SuiteError
from ..host.files import append_line, read_lines
from ..host.orphans import die_with_parent
from ..launch import caches, progress
from ..launch.entry import import_quietly
from ..measuring import processes
from ..measuring.session import Session
from ..measuring.settings import LAUNCH_LIMIT_S, Settings
from .outline import Outline, outline
from .plan import (
    DEFAULT_HEAP_BUDGET_S,
    DEFAULT_HEAP_PRECISION,
    Known,
    NotMeasured,
    Trial,
    TrialError,
    headline,
)
from .questions import cells


class Order(msgspec.Struct, frozen=True):
    """A trial, and the path of the file for its results. Launches already in the file count."""

    trial: Trial
    kept: str


def work(order: Order) -> None:
    """Measure the order's trial. Raises SuiteError if it cannot begin."""
    trial, file = order.trial, Path(order.kept)
    die_with_parent()
    caches.drop()
    import_quietly(["torch", *workloads.get(trial.workload).imports])
    if "torch" not in sys.modules:
        raise TrialError(
            f"torch does not import in {sys.executable}; see: torchcompile-suite doctor"
        )

    def keep(line: Known) -> None:
        append_line(file, msgspec.json.encode(line))

    before = read_lines(file, Known)
    described = _outline(trial)
    keep(Known(outline=described))
    progress.known(trial.workload, headline(trial, described))
    if trial.device == "cpu" and described.gpu:
        text = f"the CPU is measured; torch can use a {described.gpu}, too: --device cuda"
        progress.known(trial.workload, text)

    def watch(cell: Cell, launch: Launch) -> None:
        keep(Known(cell=cell, launch=launch))

    wanted = cells(trial, described)
    settings = Settings.from_environment()._replace(
        device=trial.device,
        precision=trial.precision,
        budget_s=trial.budget_s if trial.total_s is None else trial.total_s / len(wanted),
        launches=None,
        record=None,
        reuse=False,
    )
    with tempfile.TemporaryDirectory(prefix="try-", ignore_cleanup_errors=True) as folder:
        kept = Path(folder, "caches")
        session = Session(Path(folder), settings, watch, caches=kept)
        other_end = Session(Path(folder), default_heap_settings(settings), watch, caches=kept)
        for cell in wanted:
            earlier = [
                line.launch
                for line in before
                if line.cell == cell and line.launch is not None and line.launch.outcome.ok
            ]
            own = other_end if cell.allocator == DEFAULT_HEAP else session
            keep(Known(measurement=own.measure(cell, earlier)))


def default_heap_settings(settings: Settings) -> Settings:
    """The settings for the default heap of a trial, which shows the other end of a range."""
    return settings._replace(
        precision=max(settings.precision, DEFAULT_HEAP_PRECISION),
        budget_s=min(settings.budget_s, DEFAULT_HEAP_BUDGET_S),
    )


def _outline(trial: Trial) -> Outline:
    """The outline of the trial's model, made in a child process."""
    size = trial.batch_sizes[0] if trial.batch_sizes else 1
    with tempfile.TemporaryDirectory(prefix="outline-", ignore_cleanup_errors=True) as folder:

        def make() -> bytes:
            # As in a launch: only then is it seen that the model's code sets another folder.
            caches.use(Path(folder))
            return msgspec.json.encode(outline(trial.workload, size))

        data, reason = processes.in_child(make, LAUNCH_LIMIT_S)
    if reason:
        raise TrialError(f"{trial.workload} cannot be built: {reason}")
    described = msgspec.json.decode(data, type=Outline)
    if described.error:
        raise TrialError(described.error)
    return described


def main() -> int:
    """Measure the order of stdin. Returns the exit status."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a workload file or a library prints is no answer
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    try:
        work(order)
    except SuiteError as error:
        with answers:
            answers.write(msgspec.json.encode(NotMeasured(str(error))))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

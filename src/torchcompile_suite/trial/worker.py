"""``python -m torchcompile_suite.trial.worker``: measures a trial with the torch of this Python.

Reads an `Order` on stdin and appends what it finds to the order's file, a `plan.Known` a line, as
soon as it is found: whoever kills it loses the launch that was under way. What it cannot begin at
all is a `plan.Refused` on stdout, with exit status 1.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import msgspec

from .. import workloads
from ..cell import Cell, Launch
from ..errors import SuiteError
from ..host.files import append_line, read_lines
from ..launch import progress
from ..measuring import processes
from ..measuring.session import Session
from ..measuring.settings import LAUNCH_LIMIT_S, Settings
from .outline import Outline, outline
from .plan import Known, Refused, Trial, TrialError, cells, headline


class Order(msgspec.Struct, frozen=True):
    """A trial, and the file that keeps what is found; what is in it already counts."""

    trial: Trial
    kept: str


def work(order: Order) -> None:
    """Measure the order's trial. Raises SuiteError where it cannot begin."""
    trial, file = order.trial, Path(order.kept)
    processes.preload(workloads.get(trial.workload).imports)
    if "torch" not in sys.modules:
        raise TrialError(
            f"torch does not import in {sys.executable}; see: torchcompile-suite doctor"
        )

    def keep(**found: object) -> None:
        append_line(file, msgspec.json.encode(Known(**found)))  # type: ignore[arg-type]

    before = read_lines(file, Known)
    found = _outline(trial)
    keep(outline=found)
    progress.known(trial.workload, headline(trial, found))

    def watch(cell: Cell, launch: Launch) -> None:
        keep(cell=cell, launch=launch)

    settings = Settings.from_environment()._replace(
        device=trial.device,
        precision=trial.precision,
        budget_s=trial.budget_s,
        launches=None,
        record=None,
        reuse=False,
    )
    with tempfile.TemporaryDirectory(prefix="try-", ignore_cleanup_errors=True) as folder:
        session = Session(Path(folder), settings, watch)
        for cell in cells(trial, found):
            earlier = [
                each.launch
                for each in before
                if each.cell == cell and each.launch is not None and each.launch.outcome.ok
            ]
            keep(measurement=session.measure(cell, earlier))


def _outline(trial: Trial) -> Outline:
    size = trial.batch_sizes[0] if trial.batch_sizes else 1
    data, reason = processes.in_child(
        lambda: msgspec.json.encode(outline(trial.workload, size)), LAUNCH_LIMIT_S
    )
    if reason:
        raise TrialError(f"{trial.workload} cannot be built: {reason}")
    found = msgspec.json.decode(data, type=Outline)
    if found.error:
        raise TrialError(found.error)
    return found


def main() -> int:
    """Work on the order of stdin; 1 where that was refused."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    try:
        work(order)
    except SuiteError as error:
        sys.stdout.buffer.write(msgspec.json.encode(Refused(str(error))))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

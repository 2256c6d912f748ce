"""One launch of a cell: how its processes start, whether it is cold or warm, whether it counts.

As a program, it makes the launch that a request asks for:

echo '{"cell": {"workload": "resnet18", "batch_size": 1, "mode": "default"},
       "kind": "cold", "cache_dir": "/tmp/cache", "schema": 1}' |
python -m torchcompile_suite.measuring.launches
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ..analysis import statistics
from ..cell import DEFAULT_HEAP, OK, TOO_BUSY, Cell, Heap, Launch, Outcome, Plan, Request, Status
from ..host import allocators
from ..host.orphans import die_with_parent
from . import interpreter
from .processes import Fresh, Launcher
from .progress import launch_line
from .settings import LAUNCH_LIMIT_S, REPEATS_VARIABLE
from .starts import Starts

DEFAULT_PLAN = Plan()
_MODULE = "torchcompile_suite.measuring.launches"
# What the program of another Python may take beyond its launch: to start, and to end its processes.
OWN_LIMIT_S = 120.0


class Elsewhere:
    """Launches with another Python's torch: a program of that Python starts their processes."""

    def __init__(self, python: Path) -> None:
        """``python``: the interpreter of the release that is measured."""
        self._python = python

    def run(self, request: Request, workspace: Path, limit_s: float) -> Launch:
        """See `Launcher.run`. A program that ends without an answer is a launch that crashed."""
        within_s = limit_s + OWN_LIMIT_S
        try:
            completed = interpreter.ask(
                self._python,
                _MODULE,
                msgspec.json.encode(request),
                arguments=["--limit", str(limit_s), "--workspace", str(workspace)],
                limit_s=within_s,
            )
        except TimeoutError:
            reason = f"the release's Python gave no answer within {within_s:.0f} s"
            return Launch(request.kind, Outcome(Status.TIMEOUT, reason))
        if completed.status == 0:
            return msgspec.json.decode(completed.out, type=Launch)
        reason = f"nothing was measured: {completed.last_line}"
        return Launch(request.kind, Outcome(Status.CRASH, reason[:4000]))


def launcher(cell: Cell) -> Launcher:
    """The way to start the processes of the cell's launches with this Python."""
    if cell.start:
        return Starts()
    if cell.allocator in ("system", DEFAULT_HEAP):
        return Fresh()
    # The dynamic linker preloads an allocator when a program starts.
    return Fresh({"LD_PRELOAD": allocators.preload(cell.allocator)[0]})


def heap_state(cell: Cell) -> Heap:
    """The state that the heap of the cell's processes has to have."""
    settled = cell.device == "cpu" and cell.allocator in ("system", allocators.LIBC)
    # A process that starts is a user's process.
    settled = settled and not cell.start
    return "settled" if settled else "default"


def make_launch(
    starter: Launcher,
    cell: Cell,
    cache: Path,
    workspace: Path,
    *,
    plan: Plan = DEFAULT_PLAN,
    observe: bool = True,
    limit_s: float = LAUNCH_LIMIT_S,
) -> Launch:
    """Measure the cell once in new processes: cold where ``cache`` is empty or missing, else warm.

    ``workspace`` is a folder for what the processes print. A launch that takes more than
    ``limit_s`` seconds is ended; its outcome is a timeout.
    """
    cache.mkdir(parents=True, exist_ok=True)
    kind = "warm" if any(cache.iterdir()) else "cold"
    request = Request(
        cell,
        kind,  # type: ignore[arg-type]
        str(cache),
        plan,
        observe,
        heap=heap_state(cell),
    )
    return starter.run(request, workspace, limit_s)


def judged(launch: Launch, before: Sequence[Launch], repeats: int, quiet_s: float | None) -> Launch:
    """The launch, marked as disturbed if a neighbour slowed it: then it does not count.

    ``before`` are the earlier launches of the cell. If ``repeats`` of them are marked, no further
    launch is: a machine that is always disturbed must come to an end. If others take its processors
    by then, there is no number. If only the calibration loop is slow, the launch counts: a host can
    be in that state for hours, and its figures say so. ``quiet_s`` is the time of the loop on the
    quiet machine, in seconds; None if it is not known. With ``repeats`` of 0 every launch counts.
    """
    reason = statistics.disturbed(launch, quiet_s)
    if not reason or not repeats or not launch.outcome.ok:
        return launch
    repeated = len(before) - len(statistics.counted(before))
    if repeated < repeats:
        return msgspec.structs.replace(launch, disturbed=reason)
    if taken := statistics.taken(launch):
        text = (
            f"{TOO_BUSY}: {taken} in launch {len(before) + 1} ({launch_line(launch)}), after "
            f"{repeated} disturbed ones; torchcompile-suite doctor names what is busy, and "
            f"{REPEATS_VARIABLE}=0 measures all the same"
        )
        return msgspec.structs.replace(launch, outcome=Outcome(Status.UNSETTLED, text))
    return launch


def outcome_of(launches: Sequence[Launch]) -> Outcome:
    """The outcome of the first failed launch; ok if every launch is ok."""
    for number, launch in enumerate(launches, 1):
        if not launch.outcome.ok:
            named = number == 1 or launch.outcome.reason.startswith(TOO_BUSY)
            where = "" if named else f"launch {number}: "
            return Outcome(launch.outcome.status, where + launch.outcome.reason)
    return OK if launches else Outcome(Status.CRASH, "no launch was made")


def main() -> int:
    """One `cell.Request` on stdin, one `cell.Launch` on stdout. Returns the exit status."""
    die_with_parent()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=LAUNCH_LIMIT_S, help="seconds")
    parser.add_argument("--workspace", help="a folder for what the processes print")
    asked = parser.parse_args()
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what else is printed is no answer
    try:
        request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    except msgspec.DecodeError as error:
        print(f"torchcompile_suite.measuring.launches: not a request: {error}", file=sys.stderr)
        return 2
    request = msgspec.structs.replace(request, heap=heap_state(request.cell))
    with tempfile.TemporaryDirectory(
        dir=asked.workspace, prefix="launch-", ignore_cleanup_errors=True
    ) as workspace:
        launch = launcher(request.cell).run(request, Path(workspace), asked.limit)
    with answer:
        answer.write(msgspec.json.encode(launch) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

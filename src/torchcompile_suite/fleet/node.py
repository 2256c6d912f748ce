"""``python -m torchcompile_suite.fleet.node``: does one order on this machine, without Ray.

Reads a `messages.Order` from standard input, and writes each `messages.Said` as a line. The
argument is the number of the process that waits for it: this one ends with that one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from ..engine import rounds
from ..engine.journal import Journal, Line
from ..engine.processes import of_release
from ..engine.series import Series
from ..errors import SuiteError
from ..host import machine
from ..host.files import held
from ..host.orphans import die_with_parent
from ..releases import catalogue, environments
from . import inspection, messages, plain
from .messages import INSTALL_S, MARGIN_S, Kept, Order, Said, Told

Say = Callable[[Said], None]
# Measures the series of an order, of which a journal is known.
Work = Callable[[Order, Series, Journal, Say], object]
# Processes of an earlier piece end within seconds.
LOCK_S = 60.0
OOM_SCORE = Path("/proc/self/oom_score_adj")


def main(work: Work | None = None) -> None:
    """Do the order on standard input. ``work``: what measures; None: real releases."""
    if os.getppid() != int(sys.argv[1]):
        return  # that process is gone already
    die_with_parent()
    priority = restore()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no message

    def say(said: Said) -> None:
        answers.write(messages.encode(said) + b"\n")
        answers.flush()

    try:
        order = messages.decode_order(sys.stdin.buffer.read())
        _do(order, priority, say, work or releases_in_turns)
    except KeyboardInterrupt:
        sys.exit(130)  # everything is in the journal
    except (SuiteError, OSError, msgspec.DecodeError) as error:
        say(messages.Failed(" ".join(str(error).split())[:4000]))


def _do(order: Order, priority: str, say: Say, work: Work) -> None:
    if order.series is None:
        say(inspection.described(order, inspection.faults(order, priority)))
        return
    if priority:
        raise SuiteError(priority)
    lock = plain.folder(order.machine) / "lock"
    with held(lock, "another process measures on this machine", LOCK_S):
        _measure(order, order.series, say, work)


def restore() -> str:
    """Give this process the state of a user's own. Returns the reason where that is impossible.

    Ray lowers the priority of its workers, makes them the first to be killed when memory ends, and
    blocks Ctrl-C. All of that is inherited.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with contextlib.suppress(OSError):
        OOM_SCORE.write_text("0")
    try:
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    except PermissionError:
        return (
            f"Ray gives its workers niceness {os.nice(0)}, so that anything else takes their "
            "processors; start the head with what `torchcompile-suite fleet node --head` prints"
        )
    return ""


def _measure(order: Order, plan: Series, say: Say, work: Work) -> None:
    """Measure the series, or what an earlier piece has left of it.

    The machine keeps its compiled code until it is complete.
    """

    def keep(line: Line) -> None:
        say(Kept(line, plan.launch_limit_s + MARGIN_S))

    caches = plain.folder(order.machine) / order.id
    for other in caches.parent.glob("[0-9a-f]" * 16):
        if other.name not in (order.id, *order.begun):  # begun anew elsewhere, or complete
            shutil.rmtree(other, ignore_errors=True)
    say(messages.Began())
    known = Journal(plan.cell, caches, order.lines, keep)
    known.drop_halves(plan)
    work(order, plan, known, say)
    shutil.rmtree(caches, ignore_errors=True)
    say(messages.Finished(machine.fields(order.machine)))


def releases_in_turns(order: Order, plan: Series, known: Journal, say: Say) -> None:
    """Install the releases that are missing, and measure. See `Work`."""
    pythons = {}
    for version in plan.releases:
        release = catalogue.find(version)
        python = environments.ready(
            release, order.python, say=lambda text: say(Told(text, INSTALL_S))
        )
        pythons[version] = of_release(python)
    say(Told("measuring", plan.launch_limit_s + MARGIN_S))
    rounds.in_turns(plan, pythons, known)


if __name__ == "__main__":
    main()

"""Measuring processes: started, limited in time, and never left behind.

Each is a fresh interpreter, like a user's own script. A fork of a process that has imported torch
would begin ten seconds earlier, but its numbers are not those of a script: in PyTorch 2.6.0,
`pointwise_chain` takes 1.8 ms in a fork, and 0.67 ms in a fresh process ("Fresh processes" in
docs/method.md).

Every process leads a process group of its own, so that its compilers end with it. It also watches
its parent, so that it ends when the parent is killed.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, NoReturn, Protocol

from ..cell import Launch, Outcome, Request, Status
from ..host.files import write_atomically
from ..host.orphans import die_with_parent
from ..launch import messages, whereabouts
from ..launch.messages import Asked, Said
from . import turns
from .interpreter import import_path

MEASURING = "torchcompile_suite.launch"
LOG_TAIL = 4000
# What a process may take to end after it has closed its connection.
GRACE_S = 10.0
# Time between two looks at a fork, or at a file of answers.
POLL_S = 0.02
# A process is asked how far it is when half of its time has gone, half of the rest, and so on until
# the rest is this short; and how long an answer may take.
LAST_LOOK_S = 2.0
ANSWER_S = 1.0


class Exit(NamedTuple):
    """How a process ended.

    - ``code``: exit status; the negative signal number if a signal killed the process.
    - ``timed_out``: the time limit ended it.
    - ``printed``: the end of its output.
    """

    code: int
    timed_out: bool
    printed: str


class Launcher(Protocol):
    """A way to run launches."""

    def run(self, request: Request, workspace: Path, limit_s: float) -> Launch:
        """Measure in new processes. A failure is the outcome of the launch that is returned."""


class Process:
    """A measuring process, as its driver sees it. See `turns.Process`."""

    def __init__(
        self,
        pid: int,
        connection: Connection,
        log: Path,
        join: Callable[[float | None], int | None],
    ) -> None:
        """``join`` waits at most so many seconds for the end, and returns the exit status then."""
        self.pid = pid
        self._connection = connection
        self._log = log
        self._join = join
        self._ended = False
        self._answers = _answers(log)

    def say(self, asked: Asked | Request) -> None:
        """See `turns.Process.say`."""
        try:
            self._connection.send_bytes(messages.encode(asked))
        except OSError:
            raise self._lost() from None

    def hear(self, deadline: float) -> Said:
        """See `turns.Process.hear`."""
        looks: list[whereabouts.Look] = []
        while True:
            left_s = max(0.0, deadline - time.monotonic())
            last = left_s < LAST_LOOK_S
            if self._connection.poll(left_s if last else left_s / 2):
                break
            if seen := self._look(looks[-1] if looks else None, last):
                looks.append(whereabouts.Look(time.monotonic(), seen))
            if last:
                raise turns.TimedOut(whereabouts.told(looks))
        try:
            return messages.decode_said(self._connection.recv_bytes())
        except (EOFError, OSError):
            raise self._lost() from None

    def _look(self, before: whereabouts.Look | None, last: bool) -> whereabouts.Whereabouts | None:
        """Ask the process where it is; at ``last`` its stack, if Python does not answer."""
        try:
            known = self._answers.stat().st_size
            if not known:
                return None  # a signal would end it
            os.kill(self.pid, whereabouts.ASK)
            text = self._added(known)
            if last and not text:
                os.kill(self.pid, whereabouts.DUMP)
                text = self._added(known)
        except OSError:
            return None
        return whereabouts.read(text, before)

    def _added(self, known: int) -> str:
        """What the file of answers has beyond ``known`` bytes, when it has stopped to grow."""
        deadline = time.monotonic() + ANSWER_S
        size = known
        while time.monotonic() < deadline:
            time.sleep(POLL_S)
            now = self._answers.stat().st_size
            if now == size > known:
                break
            size = now
        return self._answers.read_bytes()[known:].decode("utf-8", "replace")

    def _lost(self) -> turns.Lost:
        # A process that ends closes its end of the connection a moment before.
        code = self._join(GRACE_S)
        return turns.Lost(_crash(Exit(1 if code is None else code, False, _tail(self._log))))

    def end(self) -> None:
        """See `turns.Process.end`."""
        if self._ended:
            return  # the kernel may have given its number to another process
        self._ended = True
        _kill_group(self.pid)
        self._join(None)
        self._connection.close()


class Fresh:
    """A new interpreter for each process, like a user's own script."""

    def __init__(self, variables: Mapping[str, str] = MappingProxyType({})) -> None:
        """Set ``variables`` in the environment of the process; an empty value removes one."""
        self._variables = variables

    def run(self, request: Request, workspace: Path, limit_s: float) -> Launch:
        """See `Launcher.run`."""
        return turns.launch(self._start, request, workspace, limit_s)

    def _start(self, log: Path) -> Process:
        return spawn(log, MEASURING, self._variables)


def spawn(
    log: Path,
    module: str,
    variables: Mapping[str, str] = MappingProxyType({}),
    arguments: Sequence[str] = (),
) -> Process:
    """Start ``python -m module --connection FD``, with further ``arguments``.

    ``variables``: as of `Fresh`. What the process prints goes to the file ``log``.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": import_path(),
        whereabouts.VARIABLE: str(_answers(log)),
        **variables,
    }
    ours, theirs = multiprocessing.Pipe()
    with log.open("wb") as output, theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", module, "--connection", str(theirs.fileno()), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={name: value for name, value in environment.items() if value},
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )

    def join(limit_s: float | None) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(limit_s)
        return None

    return Process(process.pid, ours, log, join)


def _answers(log: Path) -> Path:
    """The file in which a process says how far it is."""
    return log.with_suffix(".where")


def in_child(work: Callable[[], bytes], limit_s: float) -> tuple[bytes, str]:
    """Run ``work`` in a fork of this process.

    Returns the result of ``work`` and the empty string; or nothing and the reason, in one line.

    The fork is no child of `multiprocessing`: there, a script may no longer choose a start method.
    """
    with tempfile.TemporaryDirectory(prefix="child-") as folder:
        answer, log = Path(folder, "answer"), Path(folder, "log")
        pid = os.fork()
        if pid == 0:
            _child_main(work, answer, str(log))
        ended = _wait(pid, log, limit_s)
        if answer.exists():
            return answer.read_bytes(), ""
        if ended.timed_out:
            return b"", f"it took more than {limit_s:.0f} s"
        return b"", _crash(ended).reason


def _wait(pid: int, log: Path, limit_s: float) -> Exit:
    """Wait for the process, at most ``limit_s`` seconds, and end it with its group."""
    deadline = time.monotonic() + limit_s
    timed_out = False
    ended = status = 0
    try:
        while not ended:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                if timed_out := time.monotonic() > deadline:
                    break
                time.sleep(POLL_S)
    finally:
        _kill_group(pid)
        if not ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # it may not lead its group yet
            _, status = os.waitpid(pid, 0)
    return Exit(os.waitstatus_to_exitcode(status), timed_out, _tail(log))


def _child_main(work: Callable[[], bytes], answer: Path, log: str) -> NoReturn:
    """The body of a process of `in_child`."""
    status = 1
    try:
        detach(log)
        write_atomically(answer, work())
        status = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)


def detach(log: str) -> None:
    """Give this process its own group, end it with its parent, and send its output to the log."""
    os.setsid()
    die_with_parent()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _tail(log: Path) -> str:
    try:
        return log.read_bytes()[-LOG_TAIL:].decode("utf-8", "replace")
    except OSError:
        return ""


def _crash(ended: Exit) -> Outcome:
    """The outcome of a process that ended without a result."""
    if ended.code < 0:
        name = signal.Signals(-ended.code).name
        if ended.code == -signal.SIGKILL:
            name += " (by a user, or by the kernel because memory ran out: see dmesg)"
        return Outcome(Status.CRASH, f"killed by {name}")
    lines = [line.strip() for line in ended.printed.splitlines() if line.strip()]
    last = lines[-1][:200] if lines else "it printed nothing"
    if "No space left on device" in ended.printed:
        last = "the disk is full; free some space and run again"
    return Outcome(Status.CRASH, f"exit status {ended.code} without a result: {last}")

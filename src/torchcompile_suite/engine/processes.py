"""Measuring processes: started by the Python that is measured, limited in time, never left behind.

Each is a fresh interpreter, like a user's own script. A fork of a process that has imported torch
would begin ten seconds earlier, but its numbers are not those of a script: in PyTorch 2.6.0,
`pointwise_chain` takes 1.8 ms in a fork, and 0.67 ms in a fresh process ("Fresh processes" in
docs/method.md).

Every process leads a process group of its own, so that its compilers end with it. It also watches
its parent, so that it ends when the parent is killed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import msgspec

from ..errors import SuiteError, cannot_write
from ..host.places import cache_folder
from ..launch import messages, progress
from ..launch.messages import FOLDER_VARIABLE, Asked, Said
from ..measurement import Outcome, Status
from ..request import Request
from ..workloads import VARIABLE, listed_files
from . import turns

T = TypeVar("T")

# Names the folder of `source` to processes that a process starts.
SOURCE_VARIABLE = "TORCHCOMPILE_SUITE_SOURCE"
_PACKAGE = "torchcompile_suite"
LOG_TAIL = 4000
# What a process may take to end after it has closed its connection, or after a SIGKILL.
GRACE_S = 10.0
# What a Python may take to start.
START_S = 60.0
# Time between two looks at a file of answers.
POLL_S = 0.02
# A process is asked how far it is when half of its time has gone, half of the rest, and so on until
# the rest is this short; and how long an answer may take.
LAST_LOOK_S = 2.0
ANSWER_S = 1.0


class Environment(NamedTuple):
    """Where processes run: a Python, and variables that they get beside those of this process."""

    python: Path
    variables: Mapping[str, str] = MappingProxyType({})


HERE = Environment(Path(sys.executable))


@functools.cache
def source() -> Path:
    """The folder from which other Pythons import the suite. Raises SuiteError."""
    named = os.environ.get(SOURCE_VARIABLE)
    return Path(named) if named else alone(Path(__file__).resolve().parents[2])


def alone(installed: Path) -> Path:
    """A folder with the suite of that folder, and with nothing else.

    Where the suite is installed, other packages lie beside it, such as another torch: a link stands
    for the suite then. Raises SuiteError if it cannot be made.
    """
    if not any(installed.glob("*.dist-info")):
        return installed
    code = hashlib.sha256(os.fsencode(installed)).hexdigest()[:16]
    link = cache_folder() / "source" / code / _PACKAGE
    try:
        if not link.exists():
            link.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=link.parent) as temporary:
                fresh = Path(temporary, "link")
                fresh.symlink_to(installed / _PACKAGE)
                fresh.replace(link)
    except OSError as error:
        raise cannot_write(error, link, "name another folder with XDG_CACHE_HOME") from None
    return link.parent


def of_release(python: Path, variables: Mapping[str, str] = MappingProxyType({})) -> Environment:
    """The environment of a release or commit: as for ASV, no PYTHONPATH of the user's brings other
    packages, except that of ASV_PYTHONPATH. The user's own workloads are there.

    Raises WorkloadError as `workloads.files`.
    """
    path = os.pathsep.join(filter(None, (str(source()), os.environ.get("ASV_PYTHONPATH"))))
    return Environment(python, {"PYTHONPATH": path, VARIABLE: listed_files(), **variables})


class Process:
    """A measuring process, as its driver sees it. See `turns.Process`."""

    def __init__(self, process: subprocess.Popen[bytes], connection: Connection, log: Path) -> None:
        """``connection``: our end. ``log``: the file of the process's output."""
        self.pid = process.pid
        self._process = process
        self._connection = connection
        self._log = log
        self._ended = False
        self._answers = _answers(log)

    def say(self, asked: Asked | Request) -> None:
        """See `turns.Process.say`."""
        self.send(messages.encode(asked))

    def send(self, message: bytes) -> None:
        """Send a message. Raises `turns.Lost`."""
        try:
            self._connection.send_bytes(message)
        except OSError:
            raise self._lost() from None

    def hear(self, deadline: float) -> Said:
        """See `turns.Process.hear`. What the process tells of its progress is told here."""
        while isinstance(said := messages.decode_said(self.receive(deadline)), progress.Event):
            progress.tell(said)
        return said

    def receive(self, deadline: float) -> bytes:
        """The next message. Raises `turns.Lost`, and `turns.TimedOut` at ``deadline``."""
        looks: list[progress.Look] = []
        while True:
            left_s = max(0.0, deadline - time.monotonic())
            last = left_s < LAST_LOOK_S
            if self._connection.poll(left_s if last else left_s / 2):
                break
            if seen := self._look(looks[-1] if looks else None, last):
                looks.append(progress.Look(time.monotonic(), seen))
            if last:
                raise turns.TimedOut(progress.told(looks))
        try:
            return self._connection.recv_bytes()
        except (EOFError, OSError):
            raise self._lost() from None

    def _look(self, before: progress.Look | None, last: bool) -> progress.Whereabouts | None:
        """Ask the process where it is; at ``last`` its stack, if Python does not answer."""
        try:
            known = self._answers.stat().st_size
            if not known:
                return None  # a signal would end it
            os.kill(self.pid, progress.ASK)
            text = self._added(known)
            if last and not text:
                os.kill(self.pid, progress.DUMP)
                text = self._added(known)
        except OSError:
            return None
        return progress.read(text, before)

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
        code = self._join()
        printed = self._log.read_bytes()[-LOG_TAIL:].decode("utf-8", "replace")
        return turns.Lost(_crash(1 if code is None else code, printed), self.pid)

    def _join(self) -> int | None:
        """The exit status; None if the process does not end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(GRACE_S)
        return None

    def end(self) -> None:
        """See `turns.Process.end`."""
        if self._ended:
            return  # the kernel may have given its number to another process
        self._ended = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        # A process that waits for a device or a disk that is gone cannot be killed.
        self._join()
        self._connection.close()


def import_path(*folders: str | Path) -> str:
    """PYTHONPATH for a process that must find the suite: its sources, ``folders``, and the value
    that PYTHONPATH has here.
    """
    path = (source(), *folders, os.environ.get("PYTHONPATH"))
    return os.pathsep.join(str(folder) for folder in path if folder)


def variables_of(environment: Environment) -> dict[str, str]:
    """All environment variables of a process: the suite's sources are on its import path, and the
    programs of its Python come first on PATH.
    """
    return {
        **os.environ,
        "PYTHONPATH": import_path(Path.cwd()),
        "PATH": f"{environment.python.parent}{os.pathsep}{os.environ.get('PATH', '')}",
        **environment.variables,
    }


def spawn(
    environment: Environment,
    log: Path,
    module: str,
    variables: Mapping[str, str] = MappingProxyType({}),
    arguments: Sequence[str] = (),
) -> Process:
    """Start ``PYTHON -m module --connection FD``, with further ``arguments``.

    ``variables``: beside `variables_of`; an empty value removes one. What the process prints goes
    to the file ``log``. Ctrl-C at the terminal does not reach it: `Process.end` ends it. Raises
    `turns.Lost` if there is no such Python, and OSError if the log cannot be written.
    """
    python = environment.python
    wanted = {
        **variables_of(environment),
        progress.WHEREABOUTS: str(_answers(log)),
        FOLDER_VARIABLE: str(log.parent),
        **variables,
    }
    removed = {name for name, value in {**environment.variables, **variables}.items() if not value}
    ours, theirs = multiprocessing.Pipe()
    with log.open("wb") as output, theirs:
        command = [str(python), "-m", module, "--connection", str(theirs.fileno()), *arguments]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={name: value for name, value in wanted.items() if name not in removed},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except OSError as error:
            reason = f"{python} cannot be started: {error.strerror}"
            raise turns.Lost(Outcome(Status.CRASH, reason)) from None
    return Process(process, ours, log)


def asked(
    environment: Environment, module: str, order: msgspec.Struct, limit_s: float, kind: type[T]
) -> T:
    """The one answer of a module to an order. Raises SuiteError: why there is none, in one line."""
    with tempfile.TemporaryDirectory(prefix="asked-", ignore_cleanup_errors=True) as folder:
        try:
            process = spawn(environment, Path(folder, "log"), module)
            try:
                process.send(msgspec.json.encode(order))
                answer = process.receive(time.monotonic() + limit_s)
                return msgspec.json.decode(answer, type=kind)
            finally:
                process.end()
        except turns.TimedOut:
            raise SuiteError(f"it took more than {limit_s:.0f} s") from None
        except turns.Lost as lost:
            raise SuiteError(lost.outcome.reason) from None


@functools.cache
def version(python: Path) -> str:
    """The version of this Python, such as 3.11.7. Raises SuiteError if it does not start."""
    # No module but this one: a file of the current folder could have the name of any other.
    command = [str(python), "-c", "import sys; print(sys.version.split()[0])"]
    try:
        done = subprocess.run(command, timeout=START_S, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        raise SuiteError(f"{python} does not start within {START_S:.0f} s") from None
    except OSError as error:
        raise SuiteError(f"{python} does not start: {error.strerror}") from None
    if done.returncode:
        log = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise SuiteError(f"{python} does not start: {log[-1] if log else 'it printed no reason'}")
    return done.stdout.decode().strip()


def _answers(log: Path) -> Path:
    """The file in which a process says how far it is."""
    return log.with_suffix(".where")


def _crash(code: int, printed: str) -> Outcome:
    """The outcome of a process that ended without a result.

    ``code``: its exit status; the negative signal number if a signal killed it. ``printed``: the
    end of its output.
    """
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    last = lines[-1][:200] if lines else "it printed nothing"
    if code == -signal.SIGKILL:
        why = "by a user, or by the kernel because memory ran out: see dmesg"
        return Outcome(Status.CRASH, f"killed by SIGKILL ({why})")
    if code < 0:
        known = -code in set(signal.Signals)  # those for real time have no names
        name = signal.Signals(-code).name if known else f"signal {-code}"
        return Outcome(Status.CRASH, f"killed by {name}: {last}")
    if "No space left on device" in printed:
        last = "the disk is full; free some space and run again"
    return Outcome(Status.CRASH, f"exit status {code} without a result: {last}")

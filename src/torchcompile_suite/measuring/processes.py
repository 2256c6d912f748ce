"""Measuring processes: started, limited in time, and never left behind.

Two ways to get one. `Fresh` runs ``python -m torchcompile_suite.launch``. `Forked` forks it from a
server that has imported torch and the workload's library but has not computed anything: the same
state a fresh process reaches after ten seconds of imports. Forking after a device or an OpenMP
region was touched is unsafe, so accelerators always get fresh ones. The compiler is left for each
launch to import: that is part of what compiling costs, and a time taken once for all launches would
be one sample passed off as many. So is a library that the workload does not need: timm imports half
of the compiler, which a user without timm pays for.

Every launch leads a process group of its own, so that the compilers it starts end with it, and
watches its parent, so that it ends when whoever started it is killed.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.context import ForkContext, ForkServerContext
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

import msgspec

from ..cell import Launch, Outcome, Request, Status
from ..host.files import write_atomically
from ..host.orphans import die_with_parent
from ..launch import caches
from ..launch.entry import prepare, run
from .interpreter import import_path

LOG_TAIL = 4000


class Ended(NamedTuple):
    """How a measuring process ended: exit code (minus the signal when killed by one), whether the
    time limit did it, and the end of what it printed.
    """

    code: int
    timed_out: bool
    printed: str


class Launcher(Protocol):
    """A way to run launches."""

    def run(self, request: Request, workspace: Path, limit_s: float) -> Launch:
        """Measure in a new process; the launch, whose outcome says what went wrong, if anything."""


class Fresh:
    """One interpreter a launch, as a user's own script would be."""

    def __init__(self, variables: Mapping[str, str] = MappingProxyType({})) -> None:
        """Set ``variables`` in its environment; an empty value takes one away."""
        self._variables = variables

    def run(self, request: Request, workspace: Path, limit_s: float) -> Launch:
        """See `Launcher.run`."""
        answer, log = workspace / "launch.json", workspace / "launch.log"
        environment = {**os.environ, "PYTHONPATH": import_path(), **self._variables}
        environment = {name: value for name, value in environment.items() if value}
        with answer.open("wb") as stdout, log.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "torchcompile_suite.launch", "--die-with-parent"],
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                env=environment,
                start_new_session=True,
            )
            timed_out = False
            try:
                process.communicate(msgspec.json.encode(request), timeout=limit_s)
            except subprocess.TimeoutExpired:
                timed_out = True
            finally:
                _kill_group(process.pid)
                process.wait()
        return _read(request, answer, Ended(process.returncode, timed_out, _tail(log)), limit_s)


def preload(imports: Sequence[str] = ()) -> None:
    """Make this process one that launches can be forked from: torch imported, nothing computed."""
    die_with_parent()
    caches.drop()
    _import(["torch", *imports])


def _import(names: Sequence[str]) -> None:
    """Imports that fail are left to the launches, whose outcome then says what is wrong."""
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


class Forked:
    """Launches forked from a process that has done the imports. For the CPU only.

    That is this very process where `preload` was called in it or in the one it was forked from,
    and a fork server of Python's own elsewhere.
    """

    def __init__(self, imports: Sequence[str]) -> None:
        """Name the modules to import once, beside torch: here and now, or where a fork server is
        needed, in it when it starts with the first launch.
        """
        self._context: ForkContext | ForkServerContext
        if "torch" in sys.modules:
            _import(imports)
            self._context = multiprocessing.get_context("fork")
        else:
            self._context = multiprocessing.get_context("forkserver")
            self._context.set_forkserver_preload(["torch", *imports])

    def run(self, request: Request, workspace: Path, limit_s: float) -> Launch:
        """See `Launcher.run`."""
        answer, log = workspace / "launch.json", workspace / "launch.log"
        answer.unlink(missing_ok=True)
        log.write_bytes(b"")
        process = self._context.Process(
            target=_forked_main, args=(msgspec.json.encode(request), str(answer), str(log))
        )
        try:
            process.start()
        except (OSError, EOFError):
            # The server died of its imports. A fresh process meets the same fault, and says which.
            return Fresh().run(request, workspace, limit_s)
        assert process.pid is not None
        timed_out = False
        try:
            process.join(limit_s)
            timed_out = process.is_alive()
        finally:
            _kill_group(process.pid)
            if process.is_alive():
                process.kill()
            process.join()
        code = process.exitcode if process.exitcode is not None else 1
        return _read(request, answer, Ended(code, timed_out, _tail(log)), limit_s)


def in_child(work: Callable[[], bytes], limit_s: float) -> tuple[bytes, str]:
    """What ``work`` returns in a fork of this process, which `preload` has made one to fork.

    Or, where it returned nothing, why: one line.
    """
    with tempfile.TemporaryDirectory(prefix="child-") as folder:
        answer, log = Path(folder, "answer"), Path(folder, "log")
        process = multiprocessing.get_context("fork").Process(
            target=_child_main, args=(work, str(answer), str(log))
        )
        process.start()
        assert process.pid is not None
        try:
            process.join(limit_s)
            timed_out = process.is_alive()
        finally:
            _kill_group(process.pid)
            process.join()
        if answer.exists():
            return answer.read_bytes(), ""
        if timed_out:
            return b"", f"it took more than {limit_s:.0f} s"
        return b"", _died(Ended(process.exitcode or 1, timed_out, _tail(log))).reason


def _child_main(work: Callable[[], bytes], answer: str, log: str) -> None:
    _alone(log)
    write_atomically(Path(answer), work())
    os._exit(0)


def _alone(log: str) -> None:
    """A group and an end of its own, and its output to the log."""
    os.setsid()
    die_with_parent()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)


def _forked_main(data: bytes, answer: str, log: str) -> None:
    """The body of a forked launch."""
    _alone(log)
    write_atomically(Path(answer), run(prepare(data), "forked"))
    # Skip the interpreter's long way out: threads of torch and its compile workers take seconds.
    os._exit(0)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _tail(log: Path) -> str:
    try:
        return log.read_bytes()[-LOG_TAIL:].decode("utf-8", "replace")
    except OSError:
        return ""


def _read(request: Request, answer: Path, ended: Ended, limit_s: float) -> Launch:
    """What the process wrote, or what its end means when it wrote nothing."""
    try:
        return msgspec.json.decode(answer.read_bytes(), type=Launch)
    except (OSError, msgspec.DecodeError):
        pass
    if ended.timed_out:
        reason = f"a {request.kind} launch took more than {limit_s:.0f} s"
        return Launch(request.kind, Outcome(Status.TIMEOUT, reason))
    return Launch(request.kind, _died(ended))


def _died(ended: Ended) -> Outcome:
    if ended.code < 0:
        name = signal.Signals(-ended.code).name
        if ended.code == -signal.SIGKILL:
            name += " (by hand, or by the kernel for want of memory: see dmesg)"
        return Outcome(Status.CRASH, f"killed by {name}")
    lines = [line.strip() for line in ended.printed.splitlines() if line.strip()]
    last = lines[-1][:200] if lines else "it printed nothing"
    if "No space left on device" in ended.printed:
        last = "the disk is full; free some space and run again"
    return Outcome(Status.CRASH, f"exit status {ended.code} without a result: {last}")

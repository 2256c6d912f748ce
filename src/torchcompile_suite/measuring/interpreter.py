"""Runs one of the suite's modules in another Python, such as that of a release's environment.

`ask` runs it for one answer. A `Server` stays and answers one line with one line.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple

from ..errors import SuiteError

# Import path for environments in which the suite is not installed. A folder that has nothing but
# the suite can stand for it (`fleet.plain`).
SOURCE_VARIABLE = "TORCHCOMPILE_SUITE_SOURCE"
SOURCE = Path(os.environ.get(SOURCE_VARIABLE) or Path(__file__).resolve().parents[2])
# Grace period before SIGKILL: the process ends its launches first.
STOP_S = 10.0
START_S = 60.0


class Completed(NamedTuple):
    """How the module ended: exit status, standard output, and standard error as text."""

    status: int
    out: bytes
    log: str

    @property
    def last_line(self) -> str:
        """The last line of standard error: Python prints the exception there."""
        lines = self.log.strip().splitlines()
        return lines[-1] if lines else "it printed no reason"


def import_path(*folders: str | Path) -> str:
    """PYTHONPATH for a process that must find the suite: its sources, ``folders``, and the value
    that PYTHONPATH has here.
    """
    path = (SOURCE, *folders, os.environ.get("PYTHONPATH"))
    return os.pathsep.join(str(folder) for folder in path if folder)


def environment(python: Path, more: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """The environment variables for a process of ``python``.

    The suite's sources are on its import path, and its own programs come first on PATH. ``more``
    are further variables.
    """
    return {
        **os.environ,
        "PYTHONPATH": import_path(Path.cwd()),
        "PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}",
        **more,
    }


def ask(
    python: Path,
    module: str,
    order: bytes,
    more: Mapping[str, str] = MappingProxyType({}),
    arguments: Sequence[str] = (),
    limit_s: float | None = None,
) -> Completed:
    """Run ``python -m module`` with ``order`` on its standard input, and wait for its end.

    ``more`` are further environment variables, ``arguments`` those of the module. After Ctrl-C, the
    module and all its processes end first, then KeyboardInterrupt is raised. So they do after
    ``limit_s`` seconds, then TimeoutError is raised.
    """
    with tempfile.TemporaryFile() as log:
        process = _start(python, module, log, more, arguments)
        try:
            out, _ = process.communicate(order, timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        finally:
            stop(process)
        return Completed(process.returncode, out, _text(log))


def need_start(python: Path) -> None:
    """Raise SuiteError if this Python does not start."""
    command = [str(python), "-c", "pass"]
    try:
        completed = subprocess.run(command, timeout=START_S, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        raise SuiteError(f"{python} does not start within {START_S:.0f} s") from None
    if completed.returncode:
        log = completed.stderr.decode("utf-8", "replace")
        raise SuiteError(
            f"{python} does not start: {Completed(completed.returncode, b'', log).last_line}"
        )


class Server:
    """A module of the suite that runs in another Python and answers each line with a line."""

    def __init__(
        self, python: Path, module: str, more: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Start ``python -m module``. ``more`` are further environment variables."""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (`close` closes it)
        self._process = _start(python, module, self._log, more)

    def ask(self, line: bytes) -> bytes:
        """The answer to a line; both are without a newline. Raises `Ended` if there is none."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        answer = b""
        with contextlib.suppress(BrokenPipeError):
            stdin.write(line + b"\n")
            stdin.flush()
            answer = stdout.readline()
        if not answer.endswith(b"\n"):
            self._process.wait()
            raise Ended(Completed(self._process.returncode, answer, _text(self._log)))
        return answer[:-1]

    def close(self) -> None:
        """End the module and all its processes."""
        stop(self._process)
        for stream in (self._process.stdin, self._process.stdout, self._log):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]


class Ended(Exception):
    """A server has ended without an answer; its argument is how."""

    @property
    def completed(self) -> Completed:
        """How the module ended."""
        return self.args[0]  # type: ignore[no-any-return]


def _start(
    python: Path,
    module: str,
    log: IO[bytes],
    more: Mapping[str, str],
    arguments: Sequence[str] = (),
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [str(python), "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env=environment(python, more),
        # The terminal sends Ctrl-C to the whole group. In its own session, the module does not get
        # it; `stop` ends the module.
        start_new_session=True,
    )


def _text(log: IO[bytes]) -> str:
    log.seek(0)
    return log.read().decode("utf-8", "replace")


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a session: by Ctrl-C first, so that it ends its own processes."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

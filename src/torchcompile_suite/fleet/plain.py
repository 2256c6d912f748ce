"""Starts `node` from a process of Ray's, without anything that Ray has set.

Ray sets variables (OMP_NUM_THREADS, CUDA_VISIBLE_DEVICES, its own), lowers the priority of its
workers to niceness 15, and raises their OOM score. A measurement with these is another measurement.
So the process gets only variables that are known to be a user's, and `node` restores the rest.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import msgspec
import psutil

from ..engine import processes
from ..errors import SuiteError
from ..host.places import cache_folder
from .messages import START_S, Failed, Order, encode

PROGRAM = ("-m", "torchcompile_suite.fleet.node")
# A list of what is kept, not of what goes: nobody knows what the next Ray sets.
KEPT = frozenset(
    {
        *("HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"),
        *("CC", "CXX", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH"),
        *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    }
)
KEPT_PREFIXES = ("LC_", "UV_", "PIP_", "TORCHCOMPILE_SUITE_")
# Ray sets these for its workers; those that its own process has are a user's.
CHOOSE_DEVICES = (
    *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"),
    *("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
)
FOLDER_VARIABLE = "TORCHCOMPILE_SUITE_FLEET"
# Python notices a cancelled task between two looks.
LOOK_EVERY_S = 1.0
_CHUNK_BYTES = 1 << 16
# Grace period before SIGKILL.
STOP_S = 10.0


def variables(
    environ: Mapping[str, str], source: Path, before: Mapping[str, str]
) -> dict[str, str]:
    """The environment of the process, made of Ray's. ``source``: where it finds the suite.

    ``before``: the variables of the process that has started this one.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if name.upper() in KEPT or name.startswith(KEPT_PREFIXES)
    }
    # The programs of this Python's environment belong to Ray's side.
    own = str(Path(sys.executable).parent)
    path = [folder for folder in environ.get("PATH", os.defpath).split(os.pathsep) if folder != own]
    kept["PATH"] = os.pathsep.join(path)
    kept |= {name: before[name] for name in CHOOSE_DEVICES if name in before}
    kept["PYTHONPATH"] = kept[processes.SOURCE_VARIABLE] = str(source)
    return kept


def folder(machine: str) -> Path:
    """The folder of a machine of that name: machines that share a home folder do not meet."""
    named = os.environ.get(FOLDER_VARIABLE)
    root = Path(named) if named else cache_folder() / "fleet"
    return root / machine


def before_ray() -> Mapping[str, str]:
    """The variables with which a user started Ray on this machine; empty if that is not known.

    Ray's own process there is the parent of its workers, and sets none that chooses devices.
    """
    try:
        return dict(psutil.Process(os.getppid()).environ())
    except (psutil.Error, OSError):
        return {}


def lines(order: Order, program: Sequence[str] = PROGRAM) -> Iterator[bytes]:
    """What `node` says to the order, line by line. The last line may be a `messages.Failed`.

    ``program``: arguments of this Python that start `node`, or another program in its place.

    When the caller stops, by Ctrl-C or otherwise, the process and all its processes end first.
    """
    with tempfile.TemporaryFile() as log:
        try:
            own = folder(order.machine)
            own.mkdir(parents=True, exist_ok=True)
            environment = variables(os.environ, processes.source(), before_ray())
        except OSError as error:
            yield encode(Failed(f"cannot write {error.filename}: {error.strerror}"))
            return
        except SuiteError as error:
            yield encode(Failed(str(error)))
            return
        process = subprocess.Popen(
            [sys.executable, *program, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            cwd=own,
            # Ctrl-C and Ray's signals to the group of its worker do not reach it; `_stop` ends it.
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with contextlib.suppress(BrokenPipeError), process.stdin:
                process.stdin.write(encode(order))
            try:
                yield from _lines(process.stdout)
            except TimeoutError as error:
                yield encode(Failed(str(error)))
                return
            if process.wait():
                log.seek(0)
                said = log.read().decode("utf-8", "replace").strip().splitlines()
                reason = f"the measuring process ended with status {process.returncode}"
                last = said[-1] if said else "it printed no reason"
                yield encode(Failed(f"{reason}: {last}"[:4000]))
        finally:
            _stop(process)
            process.stdout.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a session: by Ctrl-C first, so that it ends its own processes."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class _Limit(msgspec.Struct):
    within_s: float = START_S


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of the stream. Raises TimeoutError after more silence than the last line allows."""
    descriptor = stream.fileno()
    rest = b""
    limit_s, heard = START_S, time.monotonic()
    while True:
        # `select` returns often: a cancelled task is only interrupted between two calls.
        if not select.select([descriptor], [], [], LOOK_EVERY_S)[0]:
            if time.monotonic() - heard > limit_s:
                raise TimeoutError(f"the machine said nothing for {limit_s:.0f} s; it was ended")
            continue
        chunk = os.read(descriptor, _CHUNK_BYTES)
        if not chunk:
            return
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            limit_s = msgspec.json.decode(line, type=_Limit).within_s
            yield line
        heard = time.monotonic()

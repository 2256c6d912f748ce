"""What a measuring process does before torch is imported, and how its answer leaves.

Shared by the fresh process (`__main__`) and the forked one (`torchcompile_suite.processes`).
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from pathlib import Path

import msgspec

from ..cell import Launch, Outcome, Request, Status
from . import caches

# Of a launch's cache folder: what is no part of the cache.
TEMPORARY = "tmp"


def die_with_parent() -> None:
    """End this process, and its group if it leads one, soon after its parent ends.

    Polls from a thread: portable, and one look a second costs a measurement nothing.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=watch, name="die-with-parent", daemon=True).start()


def prepare(data: bytes) -> Request:
    """Decode the request and point the compilers' caches to its folder.

    Raises ``msgspec.DecodeError`` (``ValidationError`` included) when it is not a request.
    """
    request = msgspec.json.decode(data, type=Request)
    # A cache of its own: otherwise "cold" would depend on what ran before.
    caches.use(Path(request.cache_dir))
    # Inductor precompiles C++ headers, ten seconds of work, once for all models, and keeps them in
    # the folder for temporary files wherever the cache is, so the first cell would pay for all.
    temporary = Path(request.cache_dir) / TEMPORARY
    temporary.mkdir(parents=True, exist_ok=True)
    os.environ["TMPDIR"] = str(temporary)
    tempfile.tempdir = None
    return request


def run(request: Request, process: str) -> bytes:
    """Measure, and encode the launch. An environment that cannot import torch is an outcome."""
    try:
        from .measure import measure
    except Exception as error:
        from .failures import one_line

        outcome = Outcome(Status.CRASH, one_line(f"while in import: {error}"))
        return msgspec.json.encode(Launch(kind=request.kind, outcome=outcome))
    return msgspec.json.encode(measure(request, process))

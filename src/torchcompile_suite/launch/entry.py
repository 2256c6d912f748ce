"""What a measuring process does before torch is imported, and how its answer leaves.

A fresh process (`__main__`) and a forked one (`measuring.processes`) share it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec

from ..cell import Launch, Outcome, Request, Status
from . import caches


def prepare(data: bytes) -> Request:
    """Decode the request and point the compilers' caches to its folder.

    Raises ``msgspec.DecodeError`` (``ValidationError`` included) when it is not a request.
    """
    request = msgspec.json.decode(data, type=Request)
    # A cache of its own: otherwise "cold" would depend on what ran before.
    caches.use(Path(request.cache_dir))
    # Inductor precompiles C++ headers, ten seconds of work, once for all models, and keeps them in
    # the folder for temporary files wherever the cache is, so the first cell would pay for all.
    temporary = Path(request.cache_dir) / caches.TEMPORARY
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

"""The first and the last step of a measuring process: read the request, write the launch.

A fresh process (`__main__`) and a forked one (`measuring.processes`) use the same functions. The
first step runs before torch is imported.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Literal

import msgspec

from ..cell import Launch, Outcome, Request, Status
from . import caches


def prepare(data: bytes) -> Request:
    """Decode the request, and set the compilers' caches to its folder.

    Raises ``msgspec.DecodeError`` if the data is not a request (``ValidationError`` is a subclass).
    """
    request = msgspec.json.decode(data, type=Request)
    # Each cell has its own cache. With a shared one, "cold" would depend on the cells before.
    caches.use(Path(request.cache_dir))
    # Inductor precompiles C++ headers once for all models, in ten seconds, and keeps them in the
    # folder for temporary files. With a shared folder the first cell would pay for all cells.
    temporary = Path(request.cache_dir) / caches.TEMPORARY
    temporary.mkdir(parents=True, exist_ok=True)
    os.environ["TMPDIR"] = str(temporary)
    tempfile.tempdir = None
    return request


def run(request: Request, process: Literal["fresh", "forked"]) -> bytes:
    """Measure, and return the launch as JSON. A failing import of torch is an outcome, too."""
    try:
        from .measure import measure
    except Exception as error:
        from .failures import one_line

        outcome = Outcome(Status.CRASH, one_line(f"while in import: {error}"))
        return msgspec.json.encode(Launch(kind=request.kind, outcome=outcome))
    return msgspec.json.encode(measure(request, process))

"""``python -m torchcompile_suite.launch --connection FD``: one measuring process of a launch.

From its first step to its last: request in, launch out. Its first steps run before torch is
imported. `engine.launches` starts it, and talks with it over the inherited file descriptor FD
(`messages`). The output of torch and of compilers goes where stdout and stderr of this process go.
To make a whole launch from a script: ``python -m torchcompile_suite.engine.launches``.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from .. import workloads
from ..host import heap
from ..measurement import Launch, Outcome, Status
from ..request import Request
from . import caches, messages, progress


def work(connection: Connection) -> None:
    """Measure what the driver at the other end of the connection asks for.

    A failing import of torch is an outcome, too. Raises ``msgspec.DecodeError`` if the first
    message is not a request, and EOFError if the driver is gone.
    """
    request = msgspec.json.decode(connection.recv_bytes(), type=Request)
    # First of all: what is allocated before keeps its place.
    heap_note = heap.settle() if request.heap == "settled" else ""
    progress.answer()
    # Each cell has its own cache. With a shared one, "cold" would depend on the cells before.
    caches.use_with_temporary(Path(request.cache_dir))
    try:
        make = _maker(request, connection, heap_note)
    except Exception as error:
        from .failures import one_line

        outcome = Outcome(Status.CRASH, one_line(f"while in import: {error}"))
        connection.send_bytes(messages.encode(messages.Ended(Launch(request.kind, outcome))))
        return
    with contextlib.suppress(Exception):  # the launch reports an unknown workload
        messages.import_quietly(workloads.get(request.cell.workload).imports)
    connection.send_bytes(messages.encode(messages.Imported()))
    connection.recv_bytes()  # messages.Go
    with progress.listening(lambda event: connection.send_bytes(messages.encode(event))):
        launch = heap.with_room(make)
    connection.send_bytes(messages.encode(messages.Ended(launch)))


def _maker(request: Request, connection: Connection, heap_note: str) -> Callable[[], Launch]:
    """What works on the request in this process. Imports torch."""
    if request.cell.start:
        from .prepare import prepare

        return functools.partial(prepare, request)
    if request.cell.divided:
        from .attribute import attribute

        return functools.partial(attribute, request, heap_note)
    from .measure import measure

    return functools.partial(
        measure,
        request,
        say=lambda said: connection.send_bytes(messages.encode(said)),
        hear=lambda: messages.decode_asked(connection.recv_bytes()),
        heap_note=heap_note,
    )


if __name__ == "__main__":
    work(messages.accept())

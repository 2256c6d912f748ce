"""Is the head of the cluster there? Asked without Ray.

Ray itself waits for a head that is gone, a minute by default, and then aborts the process with
lines of its own. Who waits in a call of Ray cannot be interrupted, so a thread asks, too.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .messages import ClusterLost

# How often the thread asks, and for how long a head may be silent. Much less than Ray's minute.
ASK_EVERY_S = 2.0
PATIENCE_S = 10.0
_ANSWER_S = 10.0


def need(address: str) -> None:
    """Raise ClusterLost where nothing listens at ``address``, host and port."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_ANSWER_S).close()
    except OSError as error:
        raise ClusterLost(
            f"the head of the cluster at {address} does not answer: {error.strerror or error}"
        ) from None


@contextmanager
def watched(
    address: str,
    leave: Callable[[ClusterLost], None],
    *,
    every_s: float = ASK_EVERY_S,
    patience_s: float = PATIENCE_S,
) -> Iterator[None]:
    """Call ``leave`` from a thread when the head is silent for ``patience_s``.

    By then the main thread waits in a call of Ray: it would have noticed the loss otherwise.
    """
    ended = threading.Event()

    def ask() -> None:
        answered = time.monotonic()
        while not ended.wait(every_s):
            try:
                need(address)
                answered = time.monotonic()
            except ClusterLost as error:
                if time.monotonic() - answered >= patience_s:
                    leave(error)
                    return

    threading.Thread(target=ask, name="head", daemon=True).start()
    try:
        yield
    finally:
        ended.set()

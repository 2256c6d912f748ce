"""What is known of a cluster without Ray: how its nodes are started, and whether its head is there.

Ray itself waits for a head that is gone, a minute by default, and then aborts the process with
lines of its own. Who waits in a call of Ray cannot be interrupted, so a thread asks, too.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .messages import ClusterLost

# A machine of the fleet has one slot, and two labels: its name in results/, and its hardware.
SLOT = "bench"
MACHINE, HARDWARE = "machine", "class"
# Settings of Ray's that the head gives to all nodes. Work gets the priority of any process, where
# Ray gives it niceness 15. Ray's memory monitor ends no measurement: out of memory is an outcome.
# Nobody collects Ray's metrics, and collecting them takes processor time.
SYSTEM = {
    "worker_niceness": 0,
    "memory_monitor_refresh_ms": 0,
    "enable_metrics_collection": False,
}
# Variables of the driver's process, before it imports Ray. Ray would print pages of its daemons'
# logs between the lines of a run, send usage statistics, and hide accelerators from work that asks
# for none.
VARIABLES = {
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
# How often the thread asks, and for how long a head may be silent. Much less than Ray's minute.
ASK_EVERY_S = 2.0
PATIENCE_S = 10.0
_ANSWER_S = 10.0


def options_of_head() -> Iterator[str]:
    """Options of `ray start --head` for a head that measures nothing."""
    yield from ("--num-cpus=0", "--num-gpus=0", "--disable-usage-stats")
    yield "--include-dashboard=false"
    yield f"--system-config={json.dumps(SYSTEM, separators=(',', ':'))}"


def options_of_machine(name: str, hardware: str) -> Iterator[str]:
    """Options of `ray start` for a machine. ``hardware``: its class, as a label."""
    yield from ("--num-cpus=0", "--num-gpus=0", "--disable-usage-stats")
    yield f"--resources={json.dumps({SLOT: 1}, separators=(',', ':'))}"
    yield f"--labels={MACHINE}={name},{HARDWARE}={hardware}"


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

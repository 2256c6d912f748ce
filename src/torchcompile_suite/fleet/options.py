"""How Ray has to be started for a fleet: the words that `transport` and `ray start` share."""

from __future__ import annotations

import json
from collections.abc import Iterator

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


def of_head() -> Iterator[str]:
    """Options of `ray start --head` for a head that measures nothing."""
    yield from ("--num-cpus=0", "--num-gpus=0", "--disable-usage-stats")
    yield "--include-dashboard=false"
    yield f"--system-config={json.dumps(SYSTEM, separators=(',', ':'))}"


def of_machine(name: str, hardware: str) -> Iterator[str]:
    """Options of `ray start` for a machine. ``hardware``: its class, as a label."""
    yield from ("--num-cpus=0", "--num-gpus=0", "--disable-usage-stats")
    yield f"--resources={json.dumps({SLOT: 1}, separators=(',', ':'))}"
    yield f"--labels={MACHINE}={name},{HARDWARE}={hardware}"

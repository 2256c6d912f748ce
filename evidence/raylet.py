"""Does Ray disturb what is measured? The same cells with Ray and without, in turns, on one machine.

Two slots, a core each, measure two real cells at the same time. Without Ray they are two processes
of `torchcompile_suite.fleet.node`. With Ray they are two nodes of a cluster, whose daemons run on
the same two cores: as close as Ray ever is to a measurement, because a machine of a fleet has one
slot and all cores. The figures are the ratio and both times, with Ray over without, and the share
of a core that Ray's own processes took.

``python -m evidence.raylet`` needs `torchcompile-suite[fleet]`, two cores and a quiet machine.
"""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import msgspec
import psutil

from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import Cell
from torchcompile_suite.engine import series
from torchcompile_suite.engine.series import Series
from torchcompile_suite.fleet import messages, plain
from torchcompile_suite.fleet.head import HARDWARE, MACHINE, SLOT, SYSTEM
from torchcompile_suite.fleet.messages import Failed, Kept, Order, Said
from torchcompile_suite.host import machine
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.measurement import Launch
from torchcompile_suite.presentation.sheets import Sheet

from . import tables

KEPT = Path(__file__).with_name("raylet.jsonl")
RELEASE = "2.15.0"
ENVIRONMENT = "virtualenv-py3.11"
# Short calls feel a daemon that wakes up; both compile within seconds.
CELLS = (Cell("pointwise_chain", 1, "default"), Cell("relevance_information", 1, "default"))
ROUNDS = 4
TURNS = 4
# Seconds for which Ray is watched at rest.
REST_S = 20.0
# What Ray's own processes are called.
DAEMONS = ("raylet", "gcs_server", "agent.py", "log_monitor.py", "monitor.py", "ray::")


class Taken(msgspec.Struct):
    """One turn: with Ray or without, and the launches by cell.

    ``ray_share``, ``rest_share``: the share of a core of Ray's own processes while the cells were
    measured, and before, while nothing was asked of them; None if not known.
    """

    with_ray: bool
    launches: dict[str, list[Launch]]
    ray_share: float
    rest_share: float | None = None


def order(slot: int, turn: str) -> Order:
    """The series of a slot. Each turn has machines of its own, so each begins cold."""
    plan = Series(CELLS[slot], (RELEASE,), rounds=ROUNDS)
    return Order(
        f"slot{slot}-{turn}",
        id=series.identity(plan, ENVIRONMENT),
        series=plan,
        python="3.11",
    )


def launches_of(said: Said) -> list[Launch]:
    """The launches that a machine says. Raises RuntimeError for a failure."""
    if isinstance(said, Failed):
        raise RuntimeError(said.reason)
    return [said.line.launch] if isinstance(said, Kept) and said.line.launch else []


def without(turn: str) -> dict[int, list[Launch]]:
    """Both slots without Ray, each in a thread that is bound to a core."""
    found: dict[int, list[Launch]] = {0: [], 1: []}

    def measure(slot: int) -> None:
        os.sched_setaffinity(0, {slot})  # of this thread, and of what it starts
        wanted = order(slot, turn)
        for line in plain.lines(wanted):
            found[slot] += launches_of(messages.decode_said(line))

    threads = [threading.Thread(target=measure, args=(slot,)) for slot in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@contextlib.contextmanager
def cluster(turn: str) -> Iterator[Any]:
    """A cluster of two nodes, each with its daemons on a core."""
    from ray.cluster_utils import Cluster as Simulated

    from torchcompile_suite.fleet import transport

    head = {"num_cpus": 0, "include_dashboard": False, "_system_config": SYSTEM}
    everything = os.sched_getaffinity(0)
    simulated = Simulated(initialize_head=True, head_node_args=head)
    try:
        for slot in range(len(CELLS)):
            os.sched_setaffinity(0, {slot})
            labels = {MACHINE: f"slot{slot}-{turn}", HARDWARE: "any"}
            simulated.add_node(num_cpus=0, resources={SLOT: 1}, labels=labels)
        os.sched_setaffinity(0, everything)
        made = transport.Cluster()
        made.connect(simulated.address)
        yield made
        made.close()
    finally:
        os.sched_setaffinity(0, everything)
        simulated.shutdown()


def with_ray(turn: str) -> tuple[dict[int, list[Launch]], float, float]:
    """Both slots with Ray, and the shares of a core that Ray's processes took: working, at rest."""
    found: dict[int, list[Launch]] = {0: [], 1: []}
    with cluster(turn) as transport:
        time.sleep(10)  # the start of a cluster is no part of a measurement
        seen: dict[tuple[int, float], float] = {}
        before = _rays_s(seen)
        time.sleep(REST_S)
        rest = (_rays_s(seen) - before) / REST_S
        begun, before = time.monotonic(), _rays_s(seen)
        pieces = {}
        for slot in found:
            wanted = order(slot, turn)
            pieces[transport.start(wanted, [wanted.machine])] = slot
        while pieces:
            events = transport.hear(1.0)
            if events:  # a launch has ended: looking disturbs none
                _rays_s(seen)
            for event in events:
                if event.fault:
                    raise RuntimeError(event.fault)
                if event.said is None:
                    del pieces[event.piece]
                else:
                    found[pieces[event.piece]] += launches_of(event.said)
        share = (_rays_s(seen) - before) / (time.monotonic() - begun)
    return found, share, rest


def _rays_s(seen: dict[tuple[int, float], float]) -> float:
    """Processor time of Ray's own processes so far, in seconds.

    ``seen`` keeps that of each, because a worker ends with its piece.
    """
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = " ".join(process.cmdline())
            if process.pid == os.getpid() or "fleet.node" in words:
                continue  # the driver is on another machine in a fleet
            if any(name in words for name in DAEMONS):
                times = process.cpu_times()
                seen[process.pid, process.create_time()] = times.user + times.system
    return sum(seen.values())


def measure() -> None:
    """Add `TURNS` turns to the kept ones; their order is reversed each time."""
    for number in range(TURNS):
        turn = f"{os.getpid()}-{number}"
        for ray in (False, True) if number % 2 == 0 else (True, False):
            name = f"{turn}-{'ray' if ray else 'plain'}"
            with tempfile.TemporaryDirectory(prefix="raylet-") as folder:
                os.environ[plain.FOLDER_VARIABLE] = folder
                found, share, rest = with_ray(name) if ray else (without(name), 0.0, None)
            by_cell = {str(CELLS[slot]): launches for slot, launches in found.items()}
            append_line(KEPT, msgspec.json.encode(Taken(ray, by_cell, share, rest)))


FIGURES: dict[str, Callable[[Launch], float]] = {
    "time ratio": statistics.ratio_of,
    "eager": statistics.eager_latency_of,
    "compiled": statistics.latency_of,
}


def parts() -> list[tables.Part]:
    """The figures with Ray over those without.

    Each turn with Ray is compared with the turn beside it: launches of one turn share its moods, so
    their number says nothing about the error.
    """
    taken = read_lines(KEPT, Taken)
    lines = []
    for cell in map(str, CELLS):
        for name, figure in FIGURES.items():
            means = [(one.with_ray, _mean(one.launches[cell], figure)) for one in taken]
            pairs = [dict(pair) for pair in zip(means[::2], means[1::2], strict=True)]
            differences = [pair[True] - pair[False] for pair in pairs]
            error = stdev(differences) / math.sqrt(len(differences))
            lines.append(
                [
                    cell,
                    name,
                    str(len(differences)),
                    f"{fmean(differences):+.1%}",
                    f"{error:.1%}",
                ]
            )
    columns = ["cell", "figure", "pairs of turns", "with over without", "its standard error"]
    shares = [one.ray_share for one in taken if one.with_ray]
    rests = [one.rest_share for one in taken if one.rest_share is not None]
    text = (
        f"Ray's own processes (head, two nodes) took {fmean(shares):.1%} of a core"
        + (f", and {fmean(rests):.1%} at rest" if rests else "")
        + f". {machine.cpu_model()}, PyTorch {RELEASE}."
    )
    return [Sheet(columns, frozenset(columns[2:]), lines), text]


def _mean(launches: list[Launch], figure: Callable[[Launch], float]) -> float:
    """The mean logarithm of a turn's warm launches: the cold one is another measurement."""
    return statistics.log_mean(
        [
            figure(launch)
            for launch in launches
            if launch.kind == "warm" and launch.outcome.ok and not launch.disturbed
        ]
    )


if __name__ == "__main__":
    tables.run("raylet", parts, measure)

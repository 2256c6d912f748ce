"""How well does a fleet keep its machines busy, and what does its driver cost?

Two tables. In the first one Ray and the driver are real. The nodes are simulated on this machine
(`ray.cluster_utils.Cluster`), and a piece of work sleeps for the recorded duration of its series,
divided by ``SHORTER``, instead of measuring. Efficiency is the share of the nodes' time that they
sleep, from the first piece's begin to the last one's end. Beside it stands what the same order
would give without any cost of Ray or of the driver.

In the second one the driver is real and Ray is not there: pieces say what a series of twelve
releases says, as fast as the driver listens. So the figures are the driver's own.

``python -m evidence.fleet`` needs `torchcompile-suite[fleet]`. ``--nodes 1 8 --sizes`` measures two
lines of the first table and none of the second. Each line is kept in fleet.jsonl as soon as it is
measured; the newest one counts. ``--kept`` measures nothing.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from torchcompile_suite import matrix
from torchcompile_suite.analysis import summaries
from torchcompile_suite.cli.history import BUDGET_S, newest_patches
from torchcompile_suite.cli.recorded import RESULTS
from torchcompile_suite.engine import series
from torchcompile_suite.engine.series import Series
from torchcompile_suite.fleet import inspection
from torchcompile_suite.fleet.driver import Driver
from torchcompile_suite.fleet.head import SYSTEM
from torchcompile_suite.fleet.messages import Event, Node, Order, Said
from torchcompile_suite.fleet.plan import Durations, Plan, Task, expected
from torchcompile_suite.fleet.store import Diary, Store
from torchcompile_suite.host import machine
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.measurement import Measurement
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.releases import catalogue, ledger
from torchcompile_suite.results import records

from . import tables
from .asleep import ROUNDS, asleep, said_by

KEPT = Path(__file__).with_name("fleet.jsonl")
ENVIRONMENT = "virtualenv-py3.11"
NODES = (1, 2, 4, 8)
# Series for each node in the first table.
SERIES_A_NODE = 8
# A series of fifteen minutes becomes one of a minute and a half.
SHORTER = 10.0
# Machines and series of the second table.
SIZES = ("8x100", "8x1000", "64x1000", "64x10000")


class Ran(msgspec.Struct):
    """What a run cost.

    - ``seconds``: by the clock; without Ray, that of the driver and its disk alone.
    - ``asleep_s``: of all nodes. ``plain_s``: what the order alone would take.
    - ``driver_s``, ``peak_bytes``: processor time and memory of the driver.
    - ``host``: processor and number of cores.
    """

    ray: bool
    machines: int
    series: int
    seconds: float
    asleep_s: float
    plain_s: float
    driver_s: float
    peak_bytes: int
    host: str


def releases() -> tuple[str, ...]:
    """The releases of the published history."""
    return tuple(release.version for release in newest_patches(catalogue.read()))


def a_plan(count: int) -> Plan:
    """So many series. Durations are drawn from those of the cells that results/ has.

    A cell is measured once, so there are not thousands of cells: batch sizes make others of them.
    """
    known = Durations(summaries.read(RESULTS).records, BUDGET_S)
    chosen = random.Random(1)
    cells = matrix.core_cells()
    recorded = [known.of(cell, releases()).seconds for cell in cells]
    tasks = []
    for number in range(count):
        cell = cells[number % len(cells)]
        wanted = Series(
            msgspec.structs.replace(cell, batch_size=1 + number), releases(), rounds=ROUNDS
        )
        seconds = chosen.choice(recorded) * chosen.uniform(0.8, 1.25)
        tasks.append(Task(series.identity(wanted, ENVIRONMENT), wanted, seconds))
    tasks.sort(key=lambda task: (-task.seconds, task.id))
    return Plan(here(), tasks)


def here() -> str:
    """The class of this machine, as a label."""
    return machine.as_label(machine.class_of(machine.detect()._asdict()))


def a_record() -> Measurement:
    """A real measurement with launches, as a series has them."""
    found = records.read(RESULTS).records
    known = (one.measurement for one in found)
    return next(one for one in known if one.outcome.ok and len(one.launches) >= ROUNDS)


class Nothing:
    """A transport without Ray: each machine says one message at each call."""

    def __init__(self, machines: int, record: Measurement) -> None:
        """``record``: what every series measures."""
        self._nodes = {f"box{number}": Node(here(), str(number)) for number in range(machines)}
        self._record = record
        self._pieces: dict[int, tuple[str, Iterator[Said]]] = {}
        self._free = dict.fromkeys(self._nodes)
        self._number = 0
        # What a machine does, and not the driver.
        self.making_s = 0.0

    def machines(self) -> tuple[dict[str, Node], list[str]]:
        """All of them."""
        return dict(self._nodes), []

    def start(self, order: Order, machines: Sequence[str]) -> int:
        """Begin at once."""
        self._number += 1
        name = next(one for one in machines if one in self._free or not order.series)
        order = msgspec.structs.replace(order, machine=name)
        if order.series:
            del self._free[name]
            said = said_by(order, self._record)
        else:
            said = iter([inspection.described(order)])
        self._pieces[self._number] = (name, said)
        return self._number

    def hear(self, _timeout_s: float) -> list[Event]:
        """The next message of each piece."""
        events = []
        for piece, (name, said) in list(self._pieces.items()):
            begun = time.process_time()
            message = next(said, None)
            self.making_s += time.process_time() - begun
            events.append(Event(piece, name, message))
            if message is None:
                self.drop(piece)
        return events

    def cancel(self, piece: int, *, force: bool = False) -> None:
        """Nothing runs."""

    def drop(self, piece: int) -> None:
        """Its machine is free."""
        name, _ = self._pieces.pop(piece, ("", None))
        if name:
            self._free[name] = None


def drive(transport: Any, plan: Plan, folder: Path) -> None:
    """Run the driver to its end, with its files in ``folder``."""
    ended = Driver(
        transport,
        plan,
        Store(folder / "results", [], ledger.commit_of(), ENVIRONMENT),
        Diary(folder / "diary"),
        python="3.11",
        mine=inspection.described(Order("driver", releases=releases())),
        done=(),
        wait_s=60.0,
        show=lambda _text: None,
    ).run()
    assert not ended.failed, ended.failed
    assert ended.stored == len(plan.tasks)


def with_ray(nodes: int) -> Ran:
    """A run of real Ray and the real driver on simulated nodes."""
    from ray.cluster_utils import Cluster as Simulated

    from torchcompile_suite.fleet import transport

    plan = a_plan(nodes * SERIES_A_NODE)
    seconds = {task.id: task.seconds / SHORTER for task in plan.tasks}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        lines = functools.partial(
            asleep, seconds=seconds, record=msgspec.json.encode(a_record()), log=str(log)
        )
        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": SYSTEM}
        simulated = Simulated(initialize_head=True, head_node_args=head)
        try:
            for number in range(nodes):
                labels = {"machine": f"box{number}", "class": here()}
                simulated.add_node(num_cpus=0, resources={"bench": 1}, labels=labels)
            cluster = transport.Cluster(lines)
            cluster.connect(simulated.address)
            before = time.process_time()
            drive(cluster, plan, Path(folder))
            driver_s = time.process_time() - before
            cluster.close()
        finally:
            simulated.shutdown()
        rows = [json.loads(line) for line in log.read_text().splitlines()]
    begin, end = min(row[1] for row in rows), max(row[2] for row in rows)
    return Ran(
        True,
        nodes,
        len(plan.tasks),
        end - begin,
        sum(row[2] - row[1] for row in rows),
        expected(list(seconds.values()), nodes).seconds,
        driver_s,
        _peak_bytes(),
        _host(),
    )


def alone(machines: int, count: int) -> Ran:
    """A run of the driver alone."""
    record = a_record()
    plan = a_plan(count)
    nothing = Nothing(machines, record)
    with tempfile.TemporaryDirectory() as folder:
        begun, before = time.monotonic(), time.process_time()
        drive(nothing, plan, Path(folder))
        driver_s = time.process_time() - before - nothing.making_s
        seconds = time.monotonic() - begun - nothing.making_s
    return Ran(False, machines, count, seconds, 0.0, 0.0, driver_s, _peak_bytes(), _host())


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _host() -> str:
    return f"{machine.cpu_model()}, {os.cpu_count()} cores"


def _in_a_process(which: str, *size: int) -> Ran:
    """The run in a process of its own: its memory and its Ray are nobody else's."""
    done = subprocess.run(
        [sys.executable, "-m", "evidence.fleet", "--one", which, *map(str, size)],
        stdout=subprocess.PIPE,
        check=True,
    )
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=Ran)


def measure(nodes: Sequence[int], sizes: Sequence[str]) -> None:
    """Measure these lines of the tables, and keep each."""
    for one in nodes:
        _keep(_in_a_process("ray", one))
    for size in sizes:
        machines, _, count = size.partition("x")
        _keep(_in_a_process("alone", int(machines), int(count)))


def _keep(ran: Ran) -> None:
    append_line(KEPT, msgspec.json.encode(ran))


def _hosts(lines: Iterable[Ran]) -> str:
    return "; ".join(sorted({one.host for one in lines}))


def parts() -> list[tables.Part]:
    """Both tables: the newest of each line."""
    kept = {(one.ray, one.machines, one.series): one for one in read_lines(KEPT, Ran)}
    real, own = (
        [one for _, one in sorted(kept.items()) if one.ray is ray] for ray in (True, False)
    )
    columns = ["nodes", "series", "s", "s without Ray", "efficiency", "of the order alone"]
    columns += ["driver s", "driver MB"]
    first = Sheet(
        columns,
        frozenset(columns),
        [
            [
                str(one.machines),
                str(one.series),
                f"{one.seconds:.1f}",
                f"{one.plain_s:.1f}",
                f"{one.asleep_s / (one.machines * one.seconds):.3f}",
                f"{one.asleep_s / (one.machines * one.plain_s):.3f}",
                f"{one.driver_s:.1f}",
                str(one.peak_bytes >> 20),
            ]
            for one in real
        ],
    )
    columns = ["machines", "series", "driver s", "ms a series", "s with the disk", "peak MB"]
    second = Sheet(
        columns,
        frozenset(columns),
        [
            [
                str(one.machines),
                f"{one.series:,}",
                f"{one.driver_s:.1f}",
                f"{one.driver_s / one.series * 1000:.1f}",
                f"{one.seconds:.1f}",
                str(one.peak_bytes >> 20),
            ]
            for one in own
        ],
    )
    return [
        f"Real Ray, all nodes simulated on one machine ({_hosts(real)}). Pieces sleep for recorded "
        f"durations divided by {SHORTER:g}, so a second of Ray's counts as {SHORTER:g} of a fleet:",
        first,
        f"The driver alone, series of {len(releases())} releases and {ROUNDS} rounds "
        f"({_hosts(own)}):",
        second,
    ]


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(prog="python -m evidence.fleet")
    parser.add_argument("--nodes", nargs="*", type=int, default=list(NODES))
    parser.add_argument("--sizes", nargs="*", default=list(SIZES), help="MACHINESxSERIES")
    parser.add_argument("--kept", action="store_true", help="Measure nothing; use the kept data.")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        which, *size = chosen.one
        ran = with_ray(int(size[0])) if which == "ray" else alone(*map(int, size))
        print(msgspec.json.encode(ran).decode())
        return
    if not chosen.kept:
        measure(chosen.nodes, chosen.sizes)
    tables.publish("fleet", parts())


if __name__ == "__main__":
    main()

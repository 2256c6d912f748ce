"""The fleet with real Ray: nodes, workers, the head and the driver are killed with -9.

The nodes are simulated by Ray's own `Cluster`, on this machine. The launches are scripted
(tests/fleet_node.py): each is a process in a session of its own. All else is real, and the driver
is the command itself.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from torchcompile_suite.engine import processes
from torchcompile_suite.fleet import messages, plain
from torchcompile_suite.fleet.head import SYSTEM, VARIABLES
from torchcompile_suite.fleet.messages import Order
from torchcompile_suite.host import machine
from torchcompile_suite.results import records

from .conftest import ROOT
from .test_fleet import NODE, gone, kept, marked

ray = pytest.importorskip("ray", reason="pip install -e .[fleet]")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

RUN = str(ROOT / "tests" / "fleet_run.py")
# Four cells of the published history.
CELLS = (
    r"inference\.Inference\('(gpt_decode|pointwise_chain|resnet18|softmax_matmul)', 1, 'default'"
)
RELEASES = ("2.9.1", "2.15.0")
ROUNDS = 3
LAUNCHES = ROUNDS * len(RELEASES)


class Fleet:
    """A cluster of simulated nodes, and a clone in which the driver runs; all below ``place``."""

    def __init__(self, place: Path, mark: str) -> None:
        from ray.cluster_utils import Cluster

        self.place = place
        self.mark = mark
        self.hardware = machine.as_label(machine.class_of(machine.detect()._asdict()))
        self.nodes: dict[str, Any] = {}
        self.drivers: list[subprocess.Popen[str]] = []
        self._clones = 0
        self._head = {
            "num_cpus": 0,
            "include_dashboard": False,
            # Two processes of the head that a fleet does not need: each test has less to start.
            "include_log_monitor": False,
            "no_monitor": True,
            # Nodes notice a lost head after seconds instead of a minute. Ray aborts the driver by
            # then, too: later than `head.PATIENCE_S`, or the driver could not say the cause.
            "_system_config": {**SYSTEM, "gcs_rpc_server_reconnect_timeout_s": 20},
        }
        self.cluster = Cluster(initialize_head=True, head_node_args=self._head)

    @property
    def folder(self) -> Path:
        """The clone."""
        return self.place / f"clone{self._clones}"

    def clear(self) -> None:
        """A new clone, machines without compiled code, and the usual settings."""
        self._clones += 1
        self.folder.mkdir()
        shutil.copy(ROOT / "asv.conf.json", self.folder)
        shutil.rmtree(self.place / "machines", ignore_errors=True)
        self.set()

    def set(self, **settings: str) -> None:
        """What the nodes are to do from now on; see tests/fleet_node.py."""
        settings = {"MARK": self.mark, "LAUNCH_S": "0.5", **settings}
        (self.place / "settings.json").write_bytes(msgspec.json.encode(settings))

    def add(self, name: str) -> None:
        self.nodes[name] = self.cluster.add_node(
            num_cpus=0,
            resources={"bench": 1},
            labels={"machine": name, "class": self.hardware},
        )

    def begin_again(self) -> None:
        """A new cluster, after the head was killed."""
        from ray.cluster_utils import Cluster

        self.cluster.shutdown()
        self.cluster = Cluster(initialize_head=True, head_node_args=self._head)

    def start(self, *options: str, command: str = "run", **variables: str) -> subprocess.Popen[str]:
        arguments = [command, "v2.9", "v2.15"]
        if command == "run":
            arguments += ["--cells", CELLS, "--rounds", str(ROUNDS)]
        arguments += ["--address", self.cluster.address, *options]
        if command == "status":
            arguments = [command, "--address", self.cluster.address]
        process = subprocess.Popen(
            [sys.executable, RUN, *arguments],
            cwd=self.folder,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.drivers.append(process)
        return process

    def run(self, *options: str, **variables: str) -> list[str]:
        """The lines of a run that has to end well."""
        lines = read(self.start(*options, **variables))
        assert self.drivers[-1].returncode == 0, "\n".join(lines)
        return lines

    def kept(self) -> list[tuple[str, str, Any]]:
        return kept(self.folder / "results")

    def end_drivers(self) -> None:
        for process in self.drivers:
            process.kill()
            process.wait()
        self.drivers.clear()

    def nothing_runs(self) -> bool:
        """Whether all processes that measure are gone."""
        return gone(self.mark) and gone(NODE[0], self.place)


@contextmanager
def started(place: Path) -> Iterator[Fleet]:
    """A fleet of two nodes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHCOMPILE_SUITE_FLEET", str(place / "machines"))
        patch.setenv("TORCHCOMPILE_SUITE_TEST_SETTINGS", str(place / "settings.json"))
        # The workers of Ray are processes of this Python and need what it has.
        patch.setenv("PYTHONPATH", processes.import_path(ROOT))
        for name, value in VARIABLES.items():
            patch.setenv(name, value)
        made = Fleet(place, f"mark-{os.getpid()}-{place.name}")
        try:
            made.add("one")
            made.add("two")
            yield made
        finally:
            made.end_drivers()
            made.cluster.shutdown()
        assert made.nothing_runs(), "processes are left"


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A cluster for all tests in which every part of Ray survives."""
    with started(tmp_path_factory.mktemp("fleet")) as made:
        yield made


@pytest.fixture
def fleet(standing: Fleet) -> Iterator[Fleet]:
    standing.clear()
    yield standing
    standing.end_drivers()
    assert standing.nothing_runs(), "processes are left"


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[Fleet]:
    """A cluster for one test, which kills parts of it or adds others."""
    with started(tmp_path) as made:
        made.clear()
        yield made


def read(process: subprocess.Popen[str]) -> list[str]:
    """The lines until its end."""
    assert process.stdout is not None
    lines = [line.rstrip("\n") for line in process.stdout]
    process.wait()
    return lines


def until(process: subprocess.Popen[str], text: str, times: int = 1) -> list[str]:
    """The lines until the text was in so many of them."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        times -= text in line
        if times <= 0:
            return lines
    raise AssertionError("\n".join(lines))


def one_line_each(lines: list[str]) -> None:
    """Each line is the driver's own: a time and its text. Ray prints nothing."""
    own = re.compile(r"\d\d:\d\d:\d\d |torchcompile-suite: ")
    assert "\n".join(line for line in lines if not own.match(line)) == ""


def check(fleet: Fleet) -> dict[str, str]:
    """Everything is there once, each cell from one machine. Returns the machine of each cell."""
    found = fleet.kept()
    assert len(found) == len(set(found)) == 4 * len(RELEASES)
    homes: dict[str, str] = {}
    for name, _, cell in found:
        assert homes.setdefault(str(cell), name) == name
    content = records.read(fleet.folder / "results")
    assert content.problems == []
    for record in content.records:
        launches = record.measurement.launches
        assert len(launches) == ROUNDS  # not one is missing, not one is twice
        assert len({launch.series for launch in launches}) == 1
    return homes


def launches_in(lines: list[str]) -> int:
    return sum(": round " in line for line in lines)


def node_process(fleet: Fleet, name: str) -> psutil.Process:
    """The process of `node` that measures on that machine: the one in its folder."""
    until_s = time.monotonic() + 20
    while time.monotonic() < until_s:
        for process in marked(NODE[0], fleet.place):
            try:
                if Path(process.cwd()).name == name:
                    return process
            except psutil.Error:
                continue
        time.sleep(0.1)
    raise AssertionError(f"nothing runs on {name}")


def machine_in(line: str) -> str:
    return "one" if " one: round " in line else "two"


def test_two_nodes_share_the_series_and_keep_each_on_one(fleet: Fleet) -> None:
    lines = fleet.run()
    assert set(check(fleet).values()) == {"one", "two"}
    assert launches_in(lines) == 4 * LAUNCHES
    # Results are sealed, the machines have forgotten them, and a second run has nothing to do.
    assert not list((fleet.folder / "results").glob("*/*.records.jsonl"))
    assert not list((fleet.folder / ".asv" / "fleet").glob("*/journal.jsonl"))
    assert not [one for one in (fleet.place / "machines").glob("*/*") if one.is_dir()]
    assert launches_in(fleet.run()) == 0
    status = read(fleet.start(command="status"))
    assert status[-2] == "4 complete, 0 running, 0 waiting, 0 lost, 0 failed"
    assert status[-1] == "machines: one, two; free: 2"


def test_a_killed_worker_costs_no_launch_that_had_ended(fleet: Fleet) -> None:
    driver = fleet.start()
    lines = until(driver, ": round ", times=4)
    name = machine_in(lines[-1])
    worker = node_process(fleet, name).parent()
    assert worker is not None
    assert worker.nice() == os.nice(0)  # the setting of the head has reached this node
    worker.kill()
    lines += read(driver)
    assert driver.returncode == 0, "\n".join(lines)
    check(fleet)
    one_line_each(lines)
    assert any(f"stopped on {name}: its Ray worker was killed" in line for line in lines)
    assert any(f"on {name}, goes on after" in line for line in lines)
    # The launch that was running is made again, and no other.
    assert launches_in(lines) <= 4 * LAUNCHES + 1


# A worker notices the end of its raylet after a second: its series must not be over then.
SLOW = {"LAUNCH_S": "1.5"}


@pytest.mark.nightly
def test_a_lost_node_is_waited_for_then_its_series_begins_anew_elsewhere(fragile: Fleet) -> None:
    fleet = fragile
    fleet.set(**SLOW)
    driver = fleet.start("--wait", "0.05")
    lines = until(driver, ": round ", times=3)
    name = machine_in(lines[-1])
    other = {"one": "two", "two": "one"}[name]
    kill_node(fleet, name)
    lines += read(driver)
    assert driver.returncode == 0, "\n".join(lines)
    assert any(f"{name} is lost; its series wait" in line for line in lines)
    one_line_each(lines)
    assert any(f"begins anew, because {name} did not come back" in line for line in lines)
    check(fleet)
    assert other in {where for where, _, _ in fleet.kept()}
    assert gone(fleet.mark)


def kill_node(fleet: Fleet, name: str) -> None:
    """kill -9 of a raylet: Ray's workers and agents of the node end with it."""
    node = fleet.nodes.pop(name)
    (raylet,) = node.all_processes["raylet"]
    raylet.process.kill()


@pytest.mark.nightly
def test_a_node_that_comes_back_goes_on_with_its_series(fragile: Fleet) -> None:
    fleet = fragile
    fleet.set(**SLOW)
    driver = fleet.start("--wait", "10")
    lines = until(driver, ": round ", times=3)
    name = machine_in(lines[-1])
    kill_node(fleet, name)
    lines += until(driver, f"{name} is lost")
    fleet.add(name)
    lines += read(driver)
    assert driver.returncode == 0, "\n".join(lines)
    one_line_each(lines)
    assert any(f"{name} is back" in line for line in lines)
    assert any(f"on {name}, goes on after" in line for line in lines)
    assert not any("begins anew" in line for line in lines)
    check(fleet)
    assert launches_in(lines) <= 4 * LAUNCHES + 2


@pytest.mark.nightly
def test_a_killed_driver_leaves_no_process_and_the_same_command_goes_on(fleet: Fleet) -> None:
    driver = fleet.start()
    lines = until(driver, ": round ", times=8)
    driver.kill()
    lines += read(driver)
    assert gone(fleet.mark)
    assert gone(NODE[0], fleet.place)
    more = fleet.run()
    check(fleet)
    # At most the launches that were running, and those whose line did not come through.
    assert 4 * LAUNCHES - 6 <= launches_in(lines) + launches_in(more) <= 4 * LAUNCHES + 2


def test_ctrl_c_leaves_no_process_and_the_same_command_goes_on(fleet: Fleet) -> None:
    driver = fleet.start()
    lines = until(driver, ": round ", times=8)
    driver.send_signal(signal.SIGINT)
    lines += read(driver)
    assert driver.returncode == 130, "\n".join(lines)
    assert not marked(NODE[0], fleet.place)
    # A launch has a session of its own, and ends when it sees that its parent has: in a second.
    assert gone(fleet.mark)
    assert "stopped on all machines; rerun the same command to resume" in lines[-1]
    more = fleet.run()
    check(fleet)
    assert launches_in(lines) + launches_in(more) <= 4 * LAUNCHES + 2


@pytest.mark.nightly
def test_a_killed_head_is_said_in_one_line_and_nothing_is_lost(fragile: Fleet) -> None:
    fleet = fragile
    driver = fleet.start()
    lines = until(driver, ": round ", times=8)
    for group in fleet.cluster.head_node.all_processes.values():
        for one in group:
            one.process.kill()
    rest = read(driver)
    assert driver.returncode == 1, "\n".join(rest)
    one_line_each(lines + rest)
    (cause,) = [line for line in rest if line.startswith("torchcompile-suite:")]
    assert "the head of the cluster" in cause
    assert "rerun the same command to resume" in cause
    assert gone(fleet.mark, within_s=60)
    assert gone(NODE[0], fleet.place, within_s=60)
    fleet.begin_again()
    fleet.add("one")
    fleet.add("two")
    more = fleet.run()
    check(fleet)
    assert launches_in(lines + rest) + launches_in(more) <= 4 * LAUNCHES + 4


@pytest.mark.nightly
def test_a_hanging_launch_is_ended_and_made_again(fleet: Fleet, tmp_path: Path) -> None:
    hang = tmp_path / "hang"
    fleet.set(HANG=str(hang))
    hang.touch()
    driver = fleet.start()
    lines = until(driver, "said nothing for 1 s; it was ended")
    hang.unlink()
    lines += read(driver)
    assert driver.returncode == 0, "\n".join(lines)
    check(fleet)


@pytest.mark.nightly
def test_a_stopped_machine_process_is_ended(fleet: Fleet) -> None:
    """SIGSTOP: it neither speaks nor ends. The driver's command is not disturbed."""
    driver = fleet.start()
    until(driver, ": round ", times=3)
    stopped = node_process(fleet, "one")
    stopped.suspend()
    driver.send_signal(signal.SIGINT)
    lines = read(driver)
    assert driver.returncode == 130, "\n".join(lines)
    assert gone(NODE[0], fleet.place)
    fleet.run()
    check(fleet)


@pytest.mark.nightly
def test_a_worker_that_hangs_is_ended_by_force(fleet: Fleet) -> None:
    """SIGSTOP of Ray's own worker: it hears no cancellation, so Ray kills it."""
    fleet.set(WITHIN_S="3")
    driver = fleet.start(TORCHCOMPILE_SUITE_TEST_HANG_S="10")
    lines = until(driver, ": round ", times=3)
    name = machine_in(lines[-1])
    worker = node_process(fleet, name).parent()
    assert worker is not None
    worker.suspend()
    lines += read(driver)
    assert driver.returncode == 0, "\n".join(lines)
    one_line_each(lines)
    assert any(f"stopped on {name}: it hung, and was ended" in line for line in lines)
    assert not worker.is_running()
    check(fleet)


@pytest.mark.nightly
def test_nodes_with_another_lock_or_another_suite_are_refused_by_name(fragile: Fleet) -> None:
    fleet = fragile
    fleet.set(LOCKS="bad", NEWER="newer")
    fleet.add("bad-node")
    fleet.add("newer-node")
    lines = fleet.run()
    one_line_each(lines)
    refused = "\n".join(sorted(line[len("00:00:00 ") :] for line in lines if "refused" in line))
    assert refused.count("refused") == 2
    assert "bad-node: its lock of PyTorch 2.9.1, 2.15.0 is not the driver's" in refused
    assert "newer-node: it cannot be inspected: it says what this suite does not know" in refused
    assert set(check(fleet).values()) == {"one", "two"}
    doctor = fleet.start(command="doctor")
    said = read(doctor)
    assert doctor.returncode == 1
    assert [line.split()[:2] for line in said if not line.startswith(" ")] == [
        ["refused", "newer-node:"],
        ["refused", "bad-node:"],
        ["ok", "one"],
        ["ok", "two"],
    ]


@pytest.mark.nightly
def test_another_ray_cannot_join(fleet: Fleet) -> None:
    """Neither a node nor a driver: Ray itself refuses. Only the version is not real."""
    driver = fleet.start(TORCHCOMPILE_SUITE_TEST_RAY="2.59.0")
    lines = read(driver)
    assert driver.returncode == 1
    (line,) = [line for line in lines if line.startswith("torchcompile-suite:")]
    assert "Version mismatch" in line
    assert "2.59.0" in line
    code = (
        "import ray; ray.__version__ = '2.59.0'; from ray.scripts.scripts import main;"
        f"import sys; sys.argv[1:] = ['start', '--address={fleet.cluster.address}']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Version mismatch" in done.stdout + done.stderr
    assert "two" in {node["Labels"].get("machine") for node in nodes(fleet)}


def nodes(fleet: Fleet) -> list[dict[str, Any]]:
    code = f"import ray, json; ray.init('{fleet.cluster.address}', log_to_driver=False);"
    code += "print(json.dumps([dict(Labels=n['Labels']) for n in ray.nodes()]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return msgspec.json.decode(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def test_a_measuring_process_is_as_without_ray(fleet: Fleet, tmp_path: Path) -> None:
    """Variables, import path, priority, OOM score, limits, signals and processors."""
    program = tmp_path / "shows.py"
    program.write_text(SHOWN.replace("FOLDER", str(tmp_path)))
    code = tmp_path / "through_ray.py"
    code.write_text(THROUGH_RAY)
    command = [sys.executable, str(code), fleet.cluster.address, str(program)]
    subprocess.run(command, check=True)
    with_ray = msgspec.json.decode((tmp_path / "shown").read_bytes())
    assert [messages.decode_said(line) for line in plain.lines(Order("one"), (str(program),))]
    without = msgspec.json.decode((tmp_path / "shown").read_bytes())
    assert with_ray == without
    assert with_ray["nice"] == 0
    assert with_ray["oom"] == "0"


SHOWN = """
import json, os, resource, sys
from torchcompile_suite.fleet import node
sys.stdin.read()
problem = node.restore()
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
said = json.dumps({
    "variables": dict(os.environ),
    "path": sys.path[1:],
    "ray": "ray" in sys.modules,
    "nice": os.nice(0),
    "oom": open("/proc/self/oom_score_adj").read().strip(),
    "signals": [status[name].strip() for name in ("SigBlk", "SigIgn")],
    "processors": sorted(os.sched_getaffinity(0)),
    "policy": os.sched_getscheduler(0),
    "limits": {
        name: resource.getrlimit(getattr(resource, name))
        for name in dir(resource) if name.startswith("RLIMIT_") and name != "RLIMIT_NOFILE"
    },
    "problem": problem,
}, sort_keys=True)
open("FOLDER/shown", "w").write(said)
print(json.dumps({"type": "told", "text": "shown", "within_s": 60}), flush=True)
"""
THROUGH_RAY = """
import functools, sys
from torchcompile_suite.cell import Cell
from torchcompile_suite.fleet import plain, transport
from torchcompile_suite.fleet.messages import Order
from torchcompile_suite.engine.series import Series
cluster = transport.Cluster(functools.partial(plain.lines, program=(sys.argv[2],)))
cluster.connect(sys.argv[1])
measures = Order("any", id="0" * 16, series=Series(Cell("resnet18", 1, "default"), ()))
cluster.start(measures, ["one"])
said = None
while said is None:
    for event in cluster.hear(1.0):
        said = event.said or said
        assert not event.fault, event.fault
cluster.close()
"""


@pytest.mark.nightly
def test_without_a_cluster_this_machine_measures_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHCOMPILE_SUITE_FLEET", str(tmp_path / "machines"))
    monkeypatch.setenv("TORCHCOMPILE_SUITE_MACHINE", "alone")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PYTHONPATH", processes.import_path(ROOT))
    folder = tmp_path / "clone"
    folder.mkdir()
    shutil.copy(ROOT / "asv.conf.json", folder)
    done = subprocess.run(
        [sys.executable, RUN, "run", "v2.9", "v2.15", "--cells", CELLS, "--rounds", "2"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {name for name, _, _ in kept(folder / "results")} == {"alone"}
    assert len(kept(folder / "results")) == 8
    # Ray has left no secret of its own in the home folder.
    assert not (home / ".ray").exists()
    # Nothing of Ray is left: neither its head nor its workers.
    assert not [
        process
        for process in psutil.process_iter(["cmdline"])
        if str(tmp_path) in " ".join(process.info["cmdline"] or [])
    ]

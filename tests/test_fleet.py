"""The fleet without Ray: what is left, who gets it, what a machine does, what the driver keeps.

tests/test_fleet_ray.py has the same with real Ray. Here machines are simulated, or are processes of
`fleet.node` with scripted launches (tests/fleet_node.py).
"""

from __future__ import annotations

import os
import random
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite import matrix
from torchcompile_suite.cell import Cell
from torchcompile_suite.cli import fleet as cli_fleet
from torchcompile_suite.doctor import Check, Level
from torchcompile_suite.doctor import hardware as hardware_checks
from torchcompile_suite.engine import journal, processes, series
from torchcompile_suite.engine.series import Series
from torchcompile_suite.engine.settings import Settings
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.fleet import driver, head, inspection, messages, plain
from torchcompile_suite.fleet.driver import Driver
from torchcompile_suite.fleet.messages import (
    Began,
    ClusterLost,
    Described,
    Event,
    Failed,
    Finished,
    Kept,
    Node,
    Order,
    Said,
)
from torchcompile_suite.fleet.plan import Durations, Known, Plan, Task, expected
from torchcompile_suite.fleet.store import Diary, Line, Store
from torchcompile_suite.host import machine
from torchcompile_suite.host.files import append_line
from torchcompile_suite.measurement import METHOD, OK, Launch, Measurement, Outcome, Status
from torchcompile_suite.releases import environments, ledger
from torchcompile_suite.results import parsing, records

from . import examples
from .conftest import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RELEASES = ("2.9.1", "2.15.0")
ENV = "virtualenv-py3.11"
CELL = Cell("resnet18", 1, "default")
NODE = (str(ROOT / "tests" / "fleet_node.py"),)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plain.FOLDER_VARIABLE, str(tmp_path / "fleet"))


def commits() -> dict[str, str]:
    return {version: commit[:8] for version, commit in ledger.commit_of().items()}


def order(folder: Path) -> Order:
    """A series whose journal is in the folder, for the machine ``box``."""
    plan = Series(CELL, RELEASES, rounds=3)
    lines = journal.lines_of(plan, folder)
    return Order("box", "3.11", id=series.identity(plan, ENV), series=plan, lines=lines)


def launches_kept(said: Sequence[Said], folder: Path) -> int:
    """Put what is said into the journal, as the driver does. Returns the number of launches."""
    lines = [one.line for one in said if isinstance(one, Kept)]
    for line in lines:
        append_line(folder / journal.FILE, msgspec.json.encode(line))
    return sum(line.launch is not None for line in lines)


# Planning.


@given(
    st.lists(st.floats(min_value=0.1, max_value=1e5), min_size=1, max_size=60),
    st.integers(min_value=1, max_value=70),
)
def test_a_plan_is_as_good_as_lists_can_be(durations_s: list[float], machines: int) -> None:
    made = expected(durations_s, machines)
    assert made.ideal_s <= made.seconds * (1 + 1e-9)
    # Graham's bound for any list: the last series begins when no machine is free any more.
    bound = sum(durations_s) / machines + max(durations_s) * (1 - 1 / machines)
    assert made.seconds <= bound * (1 + 1e-9)
    assert 0 < made.efficiency <= 1 + 1e-9


def test_many_series_keep_all_machines_busy() -> None:
    chosen = random.Random(1)
    durations_s = [chosen.uniform(300, 1500) for _ in range(1000)]
    assert expected(durations_s, 64).efficiency > 0.97
    assert expected(durations_s, 1).efficiency == pytest.approx(1)


def recorded(cell: Cell, release: str, seconds: float, machine_name: str = "box") -> records.Record:
    measurement = msgspec.structs.replace(
        examples.measurement(mode=cell.mode), cell=cell, duration_s=seconds
    )
    launches = [msgspec.structs.replace(one, method=METHOD) for one in measurement.launches]
    measurement = msgspec.structs.replace(measurement, launches=launches)
    return records.Record(machine_name, commits()[release], ENV, measurement, release)


def test_durations_come_from_records_and_the_rest_is_said() -> None:
    known = Durations([recorded(CELL, "2.9.1", 50), recorded(CELL, "2.9.1", 70)], 75.0)
    assert known.of(CELL, ("2.9.1",)) == (60.0, 1)
    # Another release of the cell takes as long; another cell takes the stated time.
    assert known.of(CELL, RELEASES) == (120.0, 1)
    assert known.of(Cell("gpt_decode", 1, "default"), RELEASES) == (150.0, 0)


def test_durations_of_the_class_come_first() -> None:
    records = [recorded(CELL, "2.9.1", 50), recorded(CELL, "2.9.1", 500, "another")]
    assert Durations(records, 75.0, ["box"]).of(CELL, ("2.9.1",)).seconds == 50
    assert Durations(records, 75.0, ["another"]).of(CELL, ("2.9.1",)).seconds == 500
    # Another class is better than nothing.
    assert Durations(records, 75.0, ["nobody"]).of(CELL, ("2.9.1",)).seconds == 275


def test_durations_of_an_older_method_do_not_count() -> None:
    old = recorded(CELL, "2.9.1", 50)
    launches = [msgspec.structs.replace(one, method=1) for one in old.measurement.launches]
    measurement = msgspec.structs.replace(old.measurement, launches=launches)
    known = Durations([old._replace(measurement=measurement)], 75.0)
    assert known.of(CELL, ("2.9.1",)) == (75.0, 0)


def test_the_longest_series_goes_first() -> None:
    cells = [Cell(name, 1, "default") for name in ("resnet18", "gpt_decode", "pointwise_chain")]
    records = [recorded(cells[1], "2.9.1", 500), recorded(cells[2], "2.9.1", 5)]
    plan = Known(records, "box-cpu", ["box"], ENV, commits(), 75.0).plan(
        cells, RELEASES, Settings()
    )
    assert [task.series.cell for task in plan.tasks] == [cells[1], cells[0], cells[2]]
    assert len({task.id for task in plan.tasks}) == 3


def test_two_classes_of_machines_share_no_journal() -> None:
    plans = [
        Known([], f"{name}-cpu", [], ENV, commits(), 75.0).plan([CELL], RELEASES, Settings())
        for name in ("epyc", "xeon")
    ]
    one, other = (plan.tasks[0] for plan in plans)
    assert one.series == other.series
    assert one.id != other.id


@pytest.mark.parametrize(
    ("status", "reason", "changes", "done"),
    [
        (Status.COMPILE_ERROR, "InductorError", {}, True),
        (Status.WRONG_RESULT, "error 1.0", {}, True),
        (Status.UNSUPPORTED, "no such mode", {"series": "another"}, True),
        (Status.COMPILE_ERROR, "InductorError", {"series": "another"}, False),
        (Status.COMPILE_ERROR, "no working C++ compiler; install one", {}, False),
        (Status.UNSUPPORTED, "pip install torchao adds it", {}, False),
        (Status.CRASH, "killed by SIGKILL", {}, False),
        (Status.OK, "", {"method": METHOD - 1}, False),
        (Status.OK, "", {}, True),
    ],
)
@pytest.mark.parametrize("all_fail", [False, True])
def test_a_series_that_fails_by_its_own_code_is_not_measured_for_ever(
    status: Status, reason: str, changes: dict[str, Any], done: bool, all_fail: bool
) -> None:
    made = measured()
    for release in RELEASES if all_fail else RELEASES[:1]:
        outcome = Outcome(status, reason)
        # A launch that fails has timed nothing, by no method.
        plain = {} if outcome.ok else {"method": 1, "pairs_s": []}
        (launch,) = made[release].launches
        launch = msgspec.structs.replace(launch, outcome=outcome, **{**plain, **changes})
        made[release] = msgspec.structs.replace(made[release], outcome=outcome, launches=[launch])
    found = [
        records.Record("box", commits()[release], ENV, one, release)
        for release, one in made.items()
    ]
    known = Known(found, "box-cpu", ["box"], ENV, commits(), 75.0)
    plan = known.plan([CELL], RELEASES, Settings())
    one_series = all_fail and changes == {"series": "another"}
    assert (known.done(plan) != set()) == (done or one_series)
    # One that lacks a release never is.
    assert not Known(found[:1], "box-cpu", ["box"], ENV, commits(), 75.0).done(plan)


def test_cells_are_chosen_as_asv_would() -> None:
    found = matrix.cells_matching("Inference.*'resnet18'")
    assert CELL in found
    assert {cell.workload for cell in found} == {"resnet18"}
    assert set(matrix.core_cells()) <= set(matrix.cells_matching(""))
    # Generated code is no series: it is the same on each machine.
    assert not any(cell.target for cell in cli_fleet._cells("all"))
    with pytest.raises(SuiteError, match="matches only generated code"):
        cli_fleet._cells("^codegen")


# The machine: a process without anything of Ray's.

RAYS = {
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "RAY_JOB_ID": "01000000",
    "RAY_worker_niceness": "15",
    "PYTHONPATH": "/ray/packages",
    "PYTHONUNBUFFERED": "1",
    "LD_PRELOAD": "/ray/jemalloc.so",
    "MALLOC_CONF": "prof:true",
    "MALLOC_ARENA_MAX": "2",
    "VIRTUAL_ENV": "/ray",
    "KMP_AFFINITY": "none",
    "TORCH_LOGS": "all",
    "SOMETHING_NEW_IN_RAY": "1",
}


@given(st.dictionaries(st.from_regex(r"[A-Z_][A-Z0-9_]{0,20}", fullmatch=True), st.text("ab")))
def test_only_a_users_own_variables_are_kept(more: dict[str, str]) -> None:
    own = str(Path(sys.executable).parent)
    mine = {"HOME": "/home/me", "UV_CACHE_DIR": "/cache", "https_proxy": "p", "LC_ALL": "C.UTF-8"}
    kept = plain.variables({**more, **RAYS, **mine, "PATH": f"{own}:/usr/bin"}, Path("/suite"), {})
    assert mine.items() <= kept.items()
    assert kept["PATH"] == "/usr/bin"
    assert kept["PYTHONPATH"] == "/suite"
    allowed = plain.KEPT | {"PATH", "PYTHONPATH"}
    assert all(name.upper() in allowed or name.startswith(plain.KEPT_PREFIXES) for name in kept)


def test_the_devices_that_a_user_chose_before_ray_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray sets the variable for its worker only; its parent is the process that a user started."""
    assert "PATH" in plain.before_ray()
    monkeypatch.setattr(plain, "before_ray", lambda: {"CUDA_VISIBLE_DEVICES": "GPU-7", "X": "1"})
    kept = plain.variables({"CUDA_VISIBLE_DEVICES": "0"}, tmp_path, plain.before_ray())
    assert kept["CUDA_VISIBLE_DEVICES"] == "GPU-7"
    assert "X" not in kept
    assert "CUDA_VISIBLE_DEVICES" not in plain.variables(RAYS, tmp_path, {})


SHOWS = """
import json, os, sys
sys.stdin.read()
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
said = json.dumps({
    "variables": dict(os.environ), "path": sys.path, "nice": os.nice(0),
    "ignored": status["SigIgn"].strip(), "group": os.getpgid(0) == os.getpid(),
})
open("FOLDER/shown", "w").write(said)
print(json.dumps({"type": "told", "text": "shown", "within_s": 60}), flush=True)
"""


def test_a_process_gets_nothing_of_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in RAYS.items():
        if name != "LD_PRELOAD":  # pytest itself would report it
            monkeypatch.setenv(name, value)
    program = tmp_path / "shows.py"
    program.write_text(SHOWS.replace("FOLDER", str(tmp_path)))
    assert len(list(plain.lines(Order("box"), (str(program),)))) == 1
    shown = msgspec.json.decode((tmp_path / "shown").read_bytes())
    assert not RAYS.keys() & (shown["variables"].keys() - {"PYTHONPATH"})
    assert shown["variables"]["PYTHONPATH"] == str(processes.source())
    assert not [name for name in shown["variables"] if name.upper().startswith("RAY")]
    assert shown["group"]
    assert int(shown["ignored"], 16) & (1 << (signal.SIGINT - 1)) == 0


def test_neighbours_of_an_installed_suite_are_not_on_the_import_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site-packages"
    site.mkdir()
    (site / "torchcompile_suite").symlink_to(ROOT / "src" / "torchcompile_suite")
    (site / "ray").mkdir()
    (site / "ray-2.60.0.dist-info").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for _ in range(2):  # the second process finds the link of the first
        alone = processes.alone(site)
        assert [one.name for one in alone.iterdir()] == ["torchcompile_suite"]
    code = "import torchcompile_suite, importlib.util; print(importlib.util.find_spec('ray'))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(alone)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() in ("None", "")


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("raise SystemExit('no disk')", "ended with status 1: no disk"),
        ("import os; os.kill(os.getpid(), 9)", "ended with status -9"),
        (
            'import time; print(\'{"type": "told", "text": "", "within_s": 0.5}\','
            " flush=True); time.sleep(60)",
            "said nothing for 0 s",
        ),
    ],
)
def test_a_process_that_fails_says_why(tmp_path: Path, program: str, reason: str) -> None:
    file = tmp_path / "program.py"
    file.write_text(f"import sys; sys.stdin.read()\n{program}\n")
    begun = time.monotonic()
    *_, last = plain.lines(Order("box"), (str(file),))
    said = messages.decode_said(last)
    assert isinstance(said, Failed)
    assert reason in said.reason
    assert time.monotonic() - begun < 30


def said_by(lines: Iterator[bytes]) -> list[Said]:
    return [messages.decode_said(line) for line in lines]


def marked(mark: str, below: Path | None = None) -> list[psutil.Process]:
    """The processes that have ``mark`` as an argument, and work in a folder below ``below``.

    Another process of pytest may run the same program at the same time.
    """
    found = []
    for process in psutil.process_iter():
        try:
            if mark in process.cmdline() and (not below or below in Path(process.cwd()).parents):
                found.append(process)
        except psutil.Error:
            continue
    return found


def gone(mark: str, below: Path | None = None, within_s: float = 10.0) -> bool:
    until = time.monotonic() + within_s
    while marked(mark, below):
        if time.monotonic() > until:
            return False
        time.sleep(0.2)
    return True


def test_a_machine_measures_a_series_and_says_all_of_it(tmp_path: Path) -> None:
    before = plain.folder("box") / ("0" * 16)
    before.mkdir(parents=True)
    wanted = order(tmp_path / "journal")
    said = said_by(plain.lines(wanted, NODE))
    assert isinstance(said[0], Began)
    assert launches_kept(said, tmp_path / "journal") == 3 * len(RELEASES)
    assert isinstance(said[-1], Finished)
    assert said[-1].fields["machine"] == "box"
    assert all(len(messages.encode(one)) < 100_000 for one in said)
    known = journal.of_series(Series(CELL, RELEASES, rounds=3), tmp_path / "journal")
    assert [known.count(release) for release in RELEASES] == [3, 3]
    assert {launch.round for launch in known.launches["2.15.0"]} == {1, 2, 3}
    # Compiled code goes, also that of a series which has moved to another machine.
    assert [one.name for one in plain.folder("box").iterdir()] == ["lock"]


@pytest.mark.parametrize("how", ["closed", "killed"])
def test_a_stopped_piece_leaves_no_process_and_loses_no_launch(
    how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    monkeypatch.setenv("TORCHCOMPILE_SUITE_TEST_MARK", mark)
    # On a busy machine it takes a second to find the process that is killed.
    launch_s = "2" if how == "killed" else "0.2"
    monkeypatch.setenv("TORCHCOMPILE_SUITE_TEST_LAUNCH_S", launch_s)
    lines = plain.lines(order(tmp_path / "journal"), NODE)
    launched = 0
    for line in lines:
        launched += launches_kept([messages.decode_said(line)], tmp_path / "journal")
        if launched == 3:
            break
    if how == "killed":
        found = marked(NODE[0], tmp_path)
        # A process that it has just forked still has its arguments.
        (node,) = [one for one in found if one.ppid() not in {other.pid for other in found}]
        node.kill()
    lines.close()  # type: ignore[attr-defined]
    assert gone(mark)
    # A process that it had just forked may still have its arguments.
    assert gone(NODE[0], tmp_path)
    goes_on = order(tmp_path / "journal")
    assert goes_on.launches == 3
    said = said_by(plain.lines(goes_on, NODE))
    # A round that was interrupted is made whole; nothing is measured twice.
    assert launches_kept(said, tmp_path / "journal") == 3 * len(RELEASES) - 3
    made = [one.line.launch for one in said if isinstance(one, Kept) and one.line.launch]
    # The machine has kept the compiled code of both releases.
    assert {launch.kind for launch in made} == {"warm"}


def test_two_pieces_never_measure_at_once(tmp_path: Path) -> None:
    from filelock import FileLock

    plain.folder("box").mkdir(parents=True)
    said: list[Said] = []
    with FileLock(plain.folder("box") / "lock"):
        done = subprocess.run(
            [sys.executable, "-c", _HELD, str(os.getpid())],
            input=messages.encode(order(tmp_path / "journal")),
            capture_output=True,
            check=True,
        )
    said = [messages.decode_said(line) for line in done.stdout.splitlines()]
    assert said == [Failed("another process measures on this machine")]


_HELD = "from torchcompile_suite.fleet import node; node.LOCK_S = 0.1; node.main()"


def test_no_order_can_leave_the_folder() -> None:
    with pytest.raises(msgspec.DecodeError):
        messages.decode_order(b'{"machine": "box", "id": "../../home"}')


# What a machine must be like.


def described(name: str = "box", **changes: Any) -> Described:
    said = inspection.described(Order(name, releases=RELEASES))
    return msgspec.structs.replace(said, **changes)


def hardware() -> str:
    return machine.as_label(described().hardware)


def refusal(found: Described, results: Path = Path("none")) -> str:
    return inspection.refusal(found, described("driver"), hardware(), results)


def test_an_equal_machine_is_admitted() -> None:
    assert refusal(described()) == ""


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"hardware": "another-cpu"}, "its hardware is another-cpu"),
        ({"ray": "2.59.0"}, "it has Ray 2.59.0"),
        ({"locks": {"2.9.1": "0"}}, "its lock of PyTorch 2.9.1, 2.15.0 is not the driver's"),
        ({"suite": "0"}, "its suite is not the driver's"),
        (
            {"faults": [Check("other load", Level.WARNING, "of a core: x (1) 90%", "end them")]},
            "other load: of a core: x (1) 90% (remedy: end them)",
        ),
        ({"faults": [Check("disk", Level.ERROR, "0.1 GiB free", "free more")]}, "disk: 0.1 GiB"),
    ],
)
def test_a_machine_that_would_spoil_numbers_is_refused(changes: dict[str, Any], says: str) -> None:
    reason = refusal(described(**changes))
    assert says in reason
    assert "\n" not in reason


def test_a_warning_that_only_makes_noise_is_no_refusal() -> None:
    noisy = described(faults=[Check("turbo", Level.WARNING, "on", "switch it off")])
    assert refusal(noisy) == ""


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, ""),
        ({"num_cpu": "99"}, "choose another name"),
        ({"num_cpu": "99", "device": "x"}, "choose another name"),
        (None, "cannot be read"),
    ],
)
def test_a_machine_whose_results_could_not_be_kept_is_refused(
    changes: dict[str, str] | None, says: str, tmp_path: Path
) -> None:
    """At once, and not after it has measured a series."""
    file = tmp_path / "box" / machine.FILE
    assert refusal(described(), tmp_path) == ""
    assert not file.exists()
    file.parent.mkdir()
    text = b"{" if changes is None else msgspec.json.encode({**fields(), **changes})
    file.write_bytes(text)
    reason = refusal(described(), tmp_path)
    assert says in reason
    assert bool(reason) == bool(says)
    assert file.read_bytes() == text


@pytest.mark.usefixtures("brief_doctor")
def test_the_doctor_looks_at_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = inspection.faults(Order("box", releases=RELEASES, python="3.11"), "niceness 15")
    assert faults[0].name == "priority"
    assert all(fault.level is not Level.OK for fault in faults)
    # The machine itself was looked at.
    monkeypatch.setattr(hardware_checks, "checks", lambda: ())
    none = inspection.faults(Order("box", releases=("2.9.1",), python="3.99"), "")
    assert any("no wheels for Python 3.99" in fault.says for fault in none)


@pytest.mark.parametrize("host", ["box", "a-very-long-host-name.of.a.cluster", "ip-10-0-0-1", "Ä"])
def test_a_name_in_a_fleet_is_a_label(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(machine.MACHINE_VARIABLE, raising=False)
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    name = machine.name_in_fleet()
    assert len(name) <= machine.LABEL_CHARACTERS
    assert machine.detect(name).machine == name
    with pytest.raises(SuiteError, match="label"):
        machine.name_in_fleet("x" * 64)


def test_a_class_is_the_hardware_of_a_machine_whatever_its_name() -> None:
    here = machine.detect("some-name")._asdict()
    assert machine.class_of(here) == machine.class_of(machine.detect("other")._asdict())
    assert machine.class_of({**here, "num_cpu": "99"}) != machine.class_of(here)
    long = "x" * 80
    assert len(machine.as_label(long)) == machine.LABEL_CHARACTERS
    assert machine.as_label(long + "y") != machine.as_label(long)


# What the driver keeps.


def measured(cell: Cell = CELL, name: str = "a", started: str = "") -> dict[str, Measurement]:
    """A series of one round, as a machine measures it."""
    launch = Launch(
        "cold",
        OK,
        pairs_s=[(0.04, 0.03)] * 15,
        warm_up_s=[30.0, 0.03],
        steady=True,
        method=METHOD,
        series=name,
        round=1,
    )
    at = started or "2026-11-23T10:00:00+00:00"
    return {release: Measurement(cell, OK, [launch], at, 10.0, "fixed") for release in RELEASES}


def fields(name: str = "box") -> dict[str, str | int]:
    return machine.fields(name)


def kept(results: Path) -> list[tuple[str, str, Cell]]:
    """All measurements on disk, with repetitions: machine, release, cell."""
    found = []
    releases = {commit: release for release, commit in commits().items()}
    for folder in records.machine_folders(results)[0]:
        for file, of_place in records.files(folder)[0].items():
            release = releases[records.place(file)[0]]
            for entries, _ in parsing.read_files(of_place):
                found += [(folder.name, release, entry.measurement.cell) for entry in entries]
    return found


def test_what_comes_twice_is_kept_once(tmp_path: Path) -> None:
    results = tmp_path / "results"
    store = Store(results, [], commits(), ENV)
    store.keep("box", fields(), measured())
    assert len(kept(results)) == 2
    store.keep("box", fields(), measured())
    assert len(kept(results)) == 2
    # Also by a driver that starts anew.
    again = Store(results, records.read(results).records, commits(), ENV)
    again.keep("box", fields(), measured())
    assert again.seal() == []
    assert sorted(kept(results)) == sorted(("box", release, CELL) for release in RELEASES)
    last = Store(results, records.read(results).records, commits(), ENV)
    last.keep("box", fields(), measured())
    assert len(kept(results)) == 2
    last.keep("box", fields(), measured(name="b", started="2026-11-24"))
    assert len(kept(results)) == 4


def test_another_machine_of_the_same_name_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path, [], commits(), ENV)
    store.keep("box", fields(), measured())
    with pytest.raises(SuiteError, match="choose another name"):
        store.keep("box", {**fields(), "num_cpu": "99"}, measured(name="b"))
    with pytest.raises(SuiteError, match="calls itself"):
        store.keep("fox", fields(), {})


def test_a_diary_says_the_same_after_a_kill(tmp_path: Path) -> None:
    diary = Diary(tmp_path)
    diary.add(Line(1.0, "given", "s", "a"))
    diary.add(Line(2.0, "lost", machine="a"))
    diary.add(Line(3.0, "lost", machine="a"))
    diary.add(Line(4.0, "given", "t", "b"))
    diary.add(Line(5.0, "failed", "t", "b", "why"))
    append_line(tmp_path / "diary.jsonl", b'{"at": 6, "what": "gi')
    again = Diary(tmp_path)
    assert (again.home, again.lost, again.failed) == (
        {"s": "a", "t": "b"},
        {"a": 2.0},
        {"t": "why"},
    )
    assert (diary.home, diary.lost, diary.failed) == (again.home, again.lost, again.failed)
    diary.add(Line(7.0, "anew", "s", "a"))
    diary.add(Line(8.0, "back", machine="a"))
    assert (Diary(tmp_path).home, Diary(tmp_path).lost) == ({"t": "b"}, {})


def test_the_state_of_a_series_is_that_of_the_diary_and_of_the_cluster(tmp_path: Path) -> None:
    diary = Diary(tmp_path)
    for series_, home in (("s", "a"), ("t", "b"), ("u", "c")):
        diary.note("given", series_, home)
    diary.note("lost", "", "b")
    diary.note("failed", "u", "c", "why")
    assert diary.state("s") == ("running", " on a, by the diary; --address asks the cluster")
    assert diary.state("s", {"a"}) == ("running", " on a")
    assert diary.state("s", {"a"}, {"a"}) == ("waiting", " for a")
    assert diary.state("s", {"c"})[0] == "lost"
    assert diary.state("t", {"a"})[0] == "lost"
    assert diary.state("u") == ("failed", ": why")
    assert diary.state("v") == ("waiting", "")


# The examples of docs/fleet/.

EXAMPLES = ROOT / "docs" / "fleet"
# Each program of the Slurm script writes down how it was called.
PROGRAM = """#!/bin/bash
called="$(basename "$0") $(printf '%s ' "$@" | tr '\n' ' ')"
printf '%s\n' "${called% }" >> "$CALLS"
"""


def pinned() -> str:
    """The version of Ray that the extra `fleet` has."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    _, ray = content["project"]["optional-dependencies"]["fleet"]
    return str(ray.removeprefix("ray=="))


def test_the_slurm_script_has_no_fault_that_shellcheck_finds() -> None:
    checked = subprocess.run(
        ["shellcheck", str(EXAMPLES / "slurm.sh")], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout


def programs(folder: Path, **more: str) -> dict[str, str]:
    """Variables for a dry run: the programs of Slurm and Ray only write down their arguments."""
    texts = dict.fromkeys(("srun", "ray", "torchcompile-suite"), PROGRAM)
    texts["scontrol"] = "#!/bin/bash\nprintf 'n1\\nn2\\nn3\\n'\n"
    for name, text in (texts | more).items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "CALLS": str(folder / "calls"),
        "SLURM_JOB_NODELIST": "n[1-3]",
        "USER": "me",
    }


def test_a_dry_run_of_the_slurm_script(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", str(EXAMPLES / "slurm.sh"), "v2.9", "v2.15"],
        env=programs(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    calls = (tmp_path / "calls").read_text().splitlines()
    workers = next(call for call in calls if call.startswith("srun"))
    # The head measures nothing, so it is not among the machines.
    assert "--nodes=2" in workers
    assert "--exclude=n1" in workers
    head = next(call for call in calls if call.startswith("ray start --head"))
    assert "--node-ip-address=n1" in head
    assert "torchcompile-suite fleet node --head" in calls
    assert "torchcompile-suite fleet run --address n1:6379 v2.9 v2.15" in calls
    assert calls[-1] == "ray stop"


def test_slurm_takes_no_folder_that_somebody_else_may_have_made(tmp_path: Path) -> None:
    """The part that runs on each node."""
    text = (EXAMPLES / "slurm.sh").read_text()
    on_a_node = text.split("bash -c '", 1)[1].split("\n' bash", 1)[0]
    (tmp_path / "theirs").mkdir()
    (tmp_path / "link").symlink_to("theirs")
    for name, status in {"new": 0, "link": 1}.items():
        done = subprocess.run(
            ["bash", "-c", on_a_node, "bash", "n1:6379", str(tmp_path / name)],
            env=programs(tmp_path),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == status, done.stderr
    assert done.stderr == f"{tmp_path / 'link'} is not yours\n"
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_slurm_ends_the_driver_in_order_before_the_job_ends(tmp_path: Path) -> None:
    waits = "#!/bin/bash\n[ $2 = run ] || exit 0\n"
    waits += "trap 'echo ended > \"$CALLS.end\"; exit 130' TERM\n"
    waits += 'touch "$CALLS.begun"\nwhile :; do sleep 0.1; done\n'
    process = subprocess.Popen(
        ["bash", str(EXAMPLES / "slurm.sh")],
        env=programs(tmp_path, **{"torchcompile-suite": waits}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 30
    while not (tmp_path / "calls.begun").exists() and time.monotonic() < until:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) > 0
    assert (tmp_path / "calls.end").exists()
    assert (tmp_path / "calls").read_text().splitlines()[-1] == "ray stop"


def test_the_kubernetes_job_has_one_machine_a_node_and_the_ray_of_the_suite() -> None:
    job = yaml.safe_load((EXAMPLES / "rayjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    cluster = job["spec"]["rayClusterSpec"]
    assert cluster["rayVersion"] == pinned()
    assert f"ray[default]=={pinned()}" in (EXAMPLES / "Dockerfile").read_text()
    (group,) = cluster["workerGroupSpecs"]
    pod = group["template"]
    anti = pod["spec"]["affinity"]["podAntiAffinity"]
    (rule,) = anti["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["topologyKey"] == "kubernetes.io/hostname"
    assert rule["labelSelector"]["matchLabels"] == pod["metadata"]["labels"]
    (container,) = pod["spec"]["containers"]
    # Whole processors for this pod alone: requests are limits, in whole numbers.
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert int(container["resources"]["limits"]["cpu"])
    names = {one["name"]: one for one in container["env"]}
    # Compiled code and releases stay on the node when its pod is another one.
    (disk,) = [one for one in pod["spec"]["volumes"] if "hostPath" in one]
    for name in (plain.FOLDER_VARIABLE, environments.FOLDER_VARIABLE):
        assert names[name]["value"].startswith(disk["hostPath"]["path"])
    head = cluster["headGroupSpec"]
    assert head["rayStartParams"]["num-cpus"] == "0"
    for one in (head, group):
        (command,) = one["template"]["spec"]["containers"][0]["args"]
        checked = subprocess.run(
            ["shellcheck", "--shell=bash", "--exclude=SC2046,SC2086,SC2154,SC2016", "-"],
            input=command,
            capture_output=True,
            text=True,
            check=False,
        )
        assert checked.returncode == 0, checked.stdout
    assert "fleet node --head" in head["template"]["spec"]["containers"][0]["args"][0]


def examples_of_run() -> list[list[str]]:
    """The commands `fleet run` of the examples, as a shell gets them."""
    job = yaml.safe_load((EXAMPLES / "rayjob.yaml").read_text())
    inner = shlex.split(job["spec"]["entrypoint"])[2]
    script = (EXAMPLES / "slurm.sh").read_text().replace('"$@"', "v2.4 v2.9")
    lines = [inner.rpartition("&& ")[2], *script.splitlines()]
    found = [line for line in lines if line.startswith("torchcompile-suite fleet run")]
    return [shlex.split(line.removesuffix(" &"))[3:] for line in found]


@pytest.mark.parametrize("arguments", examples_of_run())
def test_the_commands_of_the_examples_exist(arguments: list[str]) -> None:
    from torchcompile_suite.cli.fleet import app

    context = app.commands["run"].make_context("run", arguments)
    assert context.params["address"]
    assert context.params["releases"]


# The driver: machines that come, go, hang and come back.


ROUNDS = 2


class World:
    """Machines to which some fault happens at any step. Stands for Ray."""

    def __init__(self, chosen: random.Random, names: Sequence[str], faults: float) -> None:
        self._chosen = chosen
        self._faults = faults
        self.alive = {name: Node(hardware(), f"{name}-0") for name in names}
        self.away: set[str] = set()
        self.stays = 0
        # The machine of each series, by the name in its launches.
        self.made: dict[str, str] = {}
        self.pieces: dict[int, tuple[Order, list[str], bool]] = {}
        self.running: dict[int, str] = {}
        self.said: dict[int, int] = {}
        self.number = 0
        self.measured_at: list[tuple[str, str]] = []

    def machines(self) -> tuple[Mapping[str, Node], list[str]]:
        return dict(self.alive), []

    def start(self, order: Order, machines: Sequence[str]) -> int:
        self.number += 1
        self.pieces[self.number] = (order, list(machines), order.series is not None)
        return self.number

    def cancel(self, piece: int, *, force: bool = False) -> None:
        if piece in self.pieces:
            self.drop(piece)

    def drop(self, piece: int) -> None:
        self.pieces.pop(piece, None)
        self.running.pop(piece, None)
        self.said.pop(piece, None)

    def hear(self, timeout_s: float) -> list[Event]:
        if self._chosen.random() < self._faults:
            self._fault()
        events = []
        for piece, (order, machines, slot) in list(self.pieces.items()):
            if piece not in self.running:
                self._place(piece, machines, slot)
            if piece in self.running:
                events += self._step(piece, order, self.running[piece])
        return events

    def _place(self, piece: int, machines: list[str], slot: bool) -> None:
        busy = {name for one, name in self.running.items() if self.pieces[one][2]}
        free = [name for name in machines if name in self.alive and not (slot and name in busy)]
        if free:
            self.running[piece] = self._chosen.choice(free)

    def _fault(self) -> None:
        kind = self._chosen.choice(["leave", "return", "kill", "bounce"])
        if kind in ("leave", "bounce") and len(self.alive) > 1:
            name = self._chosen.choice(sorted(self.alive))
            del self.alive[name]
            for piece, where in list(self.running.items()):
                if where == name:
                    self.drop(piece)  # Ray may say nothing about it
            (self.away if kind == "leave" else set()).add(name)
            if kind == "bounce":
                self.stays += 1
                self.alive[name] = Node(hardware(), f"{name}-{self.stays}")
        elif kind == "return" and self.away:
            name = self._chosen.choice(sorted(self.away))
            self.away.discard(name)
            self.stays += 1
            self.alive[name] = Node(hardware(), f"{name}-{self.stays}")
        elif kind == "kill" and self.running:
            piece = self._chosen.choice(sorted(self.running))
            self.said[piece] = -1

    def _step(self, piece: int, order: Order, name: str) -> list[Event]:
        said = self.said[piece] = self.said.get(piece, 0) + 1
        if said <= 0:
            self.drop(piece)
            return [Event(piece, fault="its worker was killed")]
        if order.series is None:
            if said == 1:
                return [Event(piece, name, described(name))]
            self.drop(piece)
            return [Event(piece)]
        if said == 1:
            return [Event(piece, name, Began())]
        known = order.launches + said - 2
        if known < ROUNDS * len(RELEASES):
            self.measured_at.append((name, order.id))
            return [Event(piece, name, Kept(self._launch(order, known, name), 60.0))]
        self.drop(piece)
        return [Event(piece, name, Finished(fields(name))), Event(piece)]

    def _launch(self, order: Order, known: int, name: str) -> journal.Line:
        """The next launch of a series with so many."""
        made, release = order.lines[0].name, RELEASES[known % len(RELEASES)]
        number = 1 + known // len(RELEASES)
        assert self.made.setdefault(made, name) == name
        (launch,) = measured(name=made)[release].launches
        return journal.Line(release=release, launch=msgspec.structs.replace(launch, round=number))


CELLS = matrix.SERIES[:6]


def plan_of(cells: Sequence[Cell] = CELLS) -> Plan:
    plans = [Series(cell, RELEASES, rounds=ROUNDS) for cell in cells]
    tasks = [Task(series.identity(one, ENV), one, 75.0) for one in plans]
    return Plan(hardware(), sorted(tasks, key=lambda task: task.id))


def drive(world: World, folder: Path, plan: Plan, wait_s: float = 0.0) -> driver.Ended:
    results = folder / "results"
    found = records.read(results).records
    machines = sorted({record.machine for record in found})
    known = Known(found, hardware(), machines, ENV, commits(), 75.0)
    return Driver(
        world,
        plan,
        Store(results, found, commits(), ENV),
        Diary(folder / "diary"),
        python="3.11",
        mine=described("driver"),
        done=known.done(plan),
        wait_s=wait_s,
        show=lambda _text: None,
    ).run()


@pytest.fixture
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(driver, "HEAR_S", 0.0)
    monkeypatch.setattr(driver, "MOST_FAULTS", 100)


@pytest.mark.usefixtures("_fast")
@given(st.randoms(use_true_random=False), st.integers(min_value=1, max_value=4))
def test_whatever_fails_every_series_comes_once_and_from_one_machine(
    tmp_path_factory: pytest.TempPathFactory, chosen: random.Random, machines: int
) -> None:
    folder = tmp_path_factory.mktemp("fleet")
    world = World(chosen, [f"box{number}" for number in range(machines)], faults=0.2)
    plan = plan_of()
    ended = drive(world, folder, plan)
    assert ended.failed == {}
    found = kept(folder / "results")
    assert len(found) == len(set(found))
    for cell in CELLS:
        whole = [
            name
            for name in world.alive.keys() | world.away
            if all((name, release, cell) in found for release in RELEASES)
        ]
        assert whole, cell
        # No machine has a part of a series.
        assert {name for name, _, one in found if one == cell} == set(whole)
    for record in records.read(folder / "results").records:
        launches = record.measurement.launches
        assert len(launches) == ROUNDS
        assert {world.made[one.series] for one in launches} == {record.machine}
    assert [file.name for file in (folder / "diary").iterdir()] == ["diary.jsonl"]
    # A second run has nothing to do.
    before = len(world.measured_at)
    assert drive(world, folder, plan).stored == 0
    assert len(world.measured_at) == before


@pytest.mark.usefixtures("_fast")
def test_a_series_goes_on_where_it_began_and_begins_anew_only_after_the_wait(
    tmp_path: Path,
) -> None:
    plan = plan_of(CELLS[:1])
    identity = plan.tasks[0].id

    class Stopped(Exception):
        pass

    class Stops(World):
        def hear(self, timeout_s: float) -> list[Event]:
            if len(self.measured_at) == 2:
                raise Stopped
            return super().hear(timeout_s)

    first = Stops(random.Random(1), ["a", "b"], faults=0.0)
    with pytest.raises(Stopped):
        drive(first, tmp_path, plan)
    ((home, _), _) = first.measured_at
    other = "ab".replace(home, "")
    # The driver starts again, and the home has gone: nothing moves before the wait is over.
    second = World(random.Random(1), [other], faults=0.0)
    looks = iter(range(50))

    class Ends(Exception):
        pass

    def machines() -> tuple[Mapping[str, Node], list[str]]:
        if next(looks, None) is None:
            raise Ends
        return dict(second.alive), []

    second.machines = machines  # type: ignore[method-assign]
    with pytest.raises(Ends):
        drive(second, tmp_path, plan, wait_s=3600)
    assert second.measured_at == []
    assert Diary(tmp_path / "diary").home == {identity: home}
    # It comes back: its journal goes on.
    third = World(random.Random(1), ["a", "b"], faults=0.0)
    assert drive(third, tmp_path, plan, wait_s=3600).stored == 1
    assert third.measured_at == [(home, identity)] * (ROUNDS * len(RELEASES) - 2)


@pytest.mark.usefixtures("_fast")
def test_a_series_that_waits_for_a_slot_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another fleet run may measure on the machine for hours."""
    monkeypatch.setattr(driver, "MOST_FAULTS", 2)
    monkeypatch.setattr(driver, "START_S", -1.0)
    monkeypatch.setattr(driver, "HANG_S", 0.0)

    class Busy(World):
        waited = 0

        def _place(self, piece: int, machines: list[str], slot: bool) -> None:
            self.waited += slot
            if not slot or self.waited > 5:
                super()._place(piece, machines, slot)

        def cancel(self, piece: int, *, force: bool = False) -> None:
            assert not force
            super().cancel(piece)

    world = Busy(random.Random(1), ["a"], faults=0.0)
    assert drive(world, tmp_path, plan_of(CELLS[:1])) == (1, {})
    assert world.waited > 5


@pytest.mark.usefixtures("_fast")
def test_a_machine_that_cannot_be_inspected_holds_no_series_for_ever(tmp_path: Path) -> None:
    plan = plan_of(CELLS[:1])
    identity = plan.tasks[0].id
    Diary(tmp_path / "diary").add(Line(time.time(), "given", identity, "a"))

    class Broken(World):
        def _step(self, piece: int, order: Order, name: str) -> list[Event]:
            if name != "a":
                return super()._step(piece, order, name)
            self.drop(piece)
            return [Event(piece, fault="its suite does not start")]

    world = Broken(random.Random(1), ["a", "b"], faults=0.0)
    assert drive(world, tmp_path, plan) == (1, {})
    assert set(world.measured_at) == {("b", identity)}


@pytest.mark.usefixtures("_fast")
def test_what_always_fails_is_given_up_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "MOST_FAULTS", 3)
    plan = plan_of(CELLS[:2])
    bad = plan.tasks[0].id

    class Fails(World):
        def _step(self, piece: int, order: Order, name: str) -> list[Event]:
            if order.id != bad:
                return super()._step(piece, order, name)
            self.drop(piece)
            return [Event(piece, name, Failed("the lock does not install")), Event(piece)]

    ended = drive(Fails(random.Random(1), ["a"], faults=0.0), tmp_path, plan)
    assert ended == (1, {bad: "the lock does not install"})
    assert Diary(tmp_path / "diary").failed == {bad: "the lock does not install"}


@pytest.mark.usefixtures("_fast")
@pytest.mark.parametrize("fruitless", [2, 3])
def test_a_series_is_given_up_only_after_fruitless_pieces_in_a_row(
    fruitless: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A piece that ends after a launch is none of them."""
    monkeypatch.setattr(driver, "MOST_FAULTS", 3)
    plan = plan_of(CELLS[:1])

    class Dies(World):
        pieces_left = 1 + fruitless

        def _step(self, piece: int, order: Order, name: str) -> list[Event]:
            launched = order.launches == 0 and not self.measured_at
            if order.series is None or launched or self.pieces_left == 0:
                return super()._step(piece, order, name)
            self.pieces_left -= 1
            self.drop(piece)
            return [Event(piece, fault="its worker was killed")]

    ended = drive(Dies(random.Random(1), ["a"], faults=0.0), tmp_path, plan)
    assert ended.stored == (fruitless == 2)
    assert bool(ended.failed) == (fruitless == 3)


@pytest.mark.usefixtures("_fast")
def test_a_fleet_of_refused_machines_ends_with_the_reasons(tmp_path: Path) -> None:
    class Refused(World):
        def _step(self, piece: int, order: Order, name: str) -> list[Event]:
            self.drop(piece)
            return [Event(piece, name, described(name, suite="other")), Event(piece)]

    with pytest.raises(SuiteError, match="every machine is refused"):
        drive(Refused(random.Random(1), ["a", "b"], faults=0.0), tmp_path, plan_of())


@pytest.mark.usefixtures("_fast")
def test_a_name_that_the_results_have_of_another_machine_measures_nothing(tmp_path: Path) -> None:
    machine.keep(tmp_path / "results" / "a", {**fields("a"), "num_cpu": "99"})
    world = World(random.Random(1), ["a", "b"], faults=0.0)
    assert drive(world, tmp_path, plan_of(CELLS[:2])) == (2, {})
    assert {name for name, _ in world.measured_at} == {"b"}


@pytest.mark.usefixtures("_fast")
def test_an_empty_cluster_ends_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="no machine in the cluster"):
        drive(World(random.Random(1), [], faults=0.0), tmp_path, plan_of(), wait_s=-1.0)


# The head of the cluster.


def test_a_head_that_listens_is_there_and_one_that_ended_is_lost() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        head.need(address)
    with pytest.raises(ClusterLost, match=f"{address} does not answer: Connection refused"):
        head.need(address)


def test_the_loss_of_a_head_is_noticed_while_the_main_thread_waits() -> None:
    lost = threading.Event()
    causes: list[str] = []

    def leave(error: ClusterLost) -> None:
        causes.append(str(error))
        lost.set()

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with head.watched(address, leave, every_s=0.01, patience_s=0.1):
            assert not lost.wait(0.3)
            server.close()
            assert lost.wait(30)
    assert len(causes) == 1
    assert address in causes[0]


def test_a_watch_ends_with_its_block() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        before = threading.active_count()
        with head.watched(address, lambda _error: None, every_s=0.01, patience_s=0.1):
            assert threading.active_count() == before + 1
    until = time.monotonic() + 30
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() == before

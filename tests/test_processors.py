"""Only the processors that this process may use are looked at."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from torchcompile_suite.engine import interference
from torchcompile_suite.host import control_group, machine, processors

# Of processors 1 and 3: 8 s of work and 1 s stolen, at 100 ticks a second.
STAT = """cpu  10000 0 0 0 0 0 0 5000 0 0
cpu0 9000 0 0 0 0 0 0 4900 0 0
cpu1 100 50 50 700 10 60 40 25 9 9
cpu3 400 0 100 300 0 0 0 75 0 0
cpu10 500 0 0 0 0 0 0 0 0 0
intr 12 34
"""
ARM = """processor\t: 0
BogoMIPS\t: 243.75
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x1
CPU part\t: {part}
CPU revision\t: 1

processor\t: 1
"""


@pytest.fixture
def some(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """This process may use processors 1 and 3, whose times are those of `STAT`."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 1})
    monkeypatch.setattr(processors, "STAT", tmp_path / "stat")
    monkeypatch.setattr(processors, "TOPOLOGY", tmp_path)
    monkeypatch.setattr(os, "sysconf", lambda _: 100)
    (tmp_path / "stat").write_text(STAT)
    return tmp_path


def test_the_time_of_other_processors_does_not_count(some: Path) -> None:
    assert processors.taken() == (8.0, 1.0)
    watch = interference.Watch()
    watch.begin()
    time.sleep(0.05)
    (some / "stat").write_text(STAT.replace("cpu0 9000", "cpu0 999999"))
    watch.end(lambda: 0.0)
    shares = watch.shares()
    assert shares is not None
    assert (shares.others_share, shares.steal_share) == (0.0, 0.0)
    watch.begin()
    (some / "stat").write_text(STAT.replace("cpu3 400", "cpu3 9999"))
    watch.end(lambda: 0.0)
    shares = watch.shares()
    assert shares is not None
    assert shares.others_share == 1.0


def test_others_are_what_the_measurement_has_not_used(
    some: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten seconds of two processors: 4 s busy, of which 3 s are the measurement's; 1 s stolen."""
    clock = iter((100.0, 110.0))
    now = SimpleNamespace(perf_counter=lambda: next(clock), process_time=lambda: 0.5)
    monkeypatch.setattr(interference, "time", now)
    watch = interference.Watch()
    watch.begin(lambda: 2.0)
    (some / "stat").write_text(
        STAT.replace("cpu3 400 0 100 300 0 0 0 75", "cpu3 800 0 100 300 0 0 0 175")
    )
    watch.end(lambda: 5.0)
    shares = watch.shares()
    assert shares is not None
    assert (shares.others_share, shares.steal_share) == (0.05, 0.05)


def test_processors_with_other_names_tell_nothing(
    some: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container may number the lines of /proc/stat anew."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 3, 12})
    assert processors.taken() is None


def test_a_kernel_without_these_times_tells_nothing(some: Path) -> None:
    (some / "stat").write_text("cpu1 100 50\n")
    assert processors.taken() is None
    (some / "stat").unlink()
    assert processors.taken() is None


@pytest.mark.parametrize(
    ("siblings", "two"),
    [
        ({}, (0, 1)),
        ({0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}, (0, 2)),
        ({0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}, (0, 1)),
        (dict.fromkeys(range(4), "0-3"), (0, 1)),
    ],
)
def test_probes_take_two_cores(
    some: Path, monkeypatch: pytest.MonkeyPatch, siblings: dict[int, str], two: tuple[int, int]
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    for number, text in siblings.items():
        place = some / f"cpu{number}" / "topology"
        place.mkdir(parents=True)
        (place / "thread_siblings_list").write_text(f"{text}\n")
    assert processors.two() == two


@pytest.mark.parametrize(
    ("file", "speeds", "two"),
    [
        # A laptop: two efficient cores, then two fast ones with clocks of their own.
        ("cpufreq/cpuinfo_max_freq", [3_900_000, 3_900_000, 5_000_000, 5_200_000], (2, 3)),
        ("cpu_capacity", [446, 1024, 446, 1024], (1, 3)),
        # One fast core: the two of the other kind.
        ("cpu_capacity", [446, 446, 446, 1024], (0, 1)),
        ("cpu_capacity", [100, 200, 400, 1024], (3, 2)),
    ],
)
def test_probes_take_two_cores_of_one_kind(
    some: Path, monkeypatch: pytest.MonkeyPatch, file: str, speeds: list[int], two: tuple[int, int]
) -> None:
    """Two of two kinds would look as if they shared a core."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    for number, speed in enumerate(speeds):
        place = some / f"cpu{number}" / file
        place.parent.mkdir(parents=True)
        place.write_text(f"{speed}\n")
    assert processors.two() == two


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of planted control groups. Its file ``own`` names the groups of this process."""
    monkeypatch.setattr(control_group, "ROOT", tmp_path)
    monkeypatch.setattr(control_group, "OWN", tmp_path / "own")
    return tmp_path


@pytest.mark.parametrize(
    ("files", "granted"),
    [
        ({}, 0),
        ({"cpu.max": "max 100000"}, 0),
        ({"cpu.max": "150000 100000"}, 1.5),
        ({"a/b/cpu.max": "max 100000", "a/cpu.max": "300000 100000"}, 3),
        ({"a/b/cpu.max": "200000 100000", "cpu.max": "150000 100000"}, 1.5),
        ({"cpu.max": ""}, 0),
        ({"cpu.max": "1 0"}, 0),
        ({"cpu/x/cpu.cfs_quota_us": "50000", "cpu/x/cpu.cfs_period_us": "100000"}, 0.5),
        ({"cpu/x/cpu.cfs_quota_us": "-1", "cpu/x/cpu.cfs_period_us": "100000"}, 0),
    ],
)
def test_a_control_group_may_grant_a_part_of_the_processors(
    groups: Path, files: dict[str, str], granted: float
) -> None:
    assert control_group.processors() == 0, "no file at all"
    (groups / "own").write_text("4:cpu,cpuacct:/x\n2:memory:/y\n0::/a/b\n")
    for name, text in files.items():
        file = groups / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    assert control_group.processors() == granted


def test_a_control_group_may_grant_a_part_of_the_memory(groups: Path) -> None:
    (groups / "own").write_text("0::/../../of-the-host\n")
    (groups / "memory.max").write_text("max\n")
    assert control_group.memory_bytes() is None
    (groups / "memory.max").write_text("2147483648\n")
    assert control_group.memory_bytes() == 2 << 30
    (groups / "memory.current").write_text("1073741824\n")
    assert control_group.memory_bytes() == 1 << 30
    (groups / "memory.stat").write_text("anon 5\ninactive_file 1048576\nactive_file 7\n")
    assert control_group.memory_bytes() == (1 << 30) + (1 << 20), "of what can be dropped"


def test_version_1_of_control_groups_counts_the_groups_inside(groups: Path) -> None:
    (groups / "own").write_text("2:memory:/x\n")
    folder = groups / "memory" / "x"
    folder.mkdir(parents=True)
    for name, text in {
        "limit_in_bytes": "1000",
        "usage_in_bytes": "600",
        "stat": "cache 9\ninactive_file 5\ntotal_inactive_file 400",
    }.items():
        (folder / f"memory.{name}").write_text(f"{text}\n")
    assert control_group.memory_bytes() == 800


def test_one_processor_is_no_pair(some: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2})
    assert processors.two() is None


def test_here_the_kernel_tells() -> None:
    before = processors.taken()
    assert before is not None
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    after = processors.taken()
    assert after is not None
    assert after.busy_s - before.busy_s > 0.1


def test_two_processors_of_arm_have_two_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = set()
    for part in ("0xd0c", "0xd40"):
        (tmp_path / part).write_text(ARM.format(part=part))
        monkeypatch.setattr(machine, "CPUINFO", tmp_path / part)
        names.add(machine.cpu_model.__wrapped__())
    assert len(names) == 2
    assert all("(41 d" in name for name in names)

"""Where the host runs the processors: the probes, and what a launch and `counted` make of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec
import pytest
from click.testing import CliRunner

from torchcompile_suite.analysis import statistics
from torchcompile_suite.cli.app import app
from torchcompile_suite.conditions import HostState, Interference
from torchcompile_suite.doctor import Check, Level, hardware, software
from torchcompile_suite.host import probes
from torchcompile_suite.host.probes import Probes, Reading
from torchcompile_suite.measurement import OK, Launch, Outcome, Status

NEAR, FAR = Reading(120.0, 1.0, 40.0, 200.0, 100.0), Reading(520.0, 1.0, 45.0, 204.0, 100.0)
SHARED = Reading(90.0, 1.9, 50.0, 390.0, 100.0)
CROWDED = Reading(120.0, 1.0, 45.0, 240.0, 100.0)
Says = Callable[[Iterator[Reading | None]], None]


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Says:
    """Planted readings: a host cannot be asked to move its processors."""

    def plant(readings: Iterator[Reading | None]) -> None:
        monkeypatch.setattr(probes, "read", lambda: next(readings))

    return plant


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ to build the probes")
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is one processor")
def test_the_probes_read_this_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    probes._library.cache_clear()
    before = os.sched_getaffinity(0)
    readings = [probes.read() for _ in range(5)]
    assert os.sched_getaffinity(0) == before
    for reading in readings:
        assert reading is not None
        assert 10 < reading.handoff_ns < 1e7
        assert 0.2 < reading.together < 100
        assert 1 < reading.load_ns < 1e5
        assert 1000 < reading.chain_ns < reading.core_ns < 1e7
    probes._library.cache_clear()


def test_without_a_compiler_there_are_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("CXX", "no-such-compiler")
    probes._library.cache_clear()
    assert probes.read() is None
    taken = Probes()
    taken()
    assert taken.state([]) is None
    assert taken.counting(3) == [True] * 3
    assert [check.level for check in hardware.placement()] == [Level.OK]
    probes._library.cache_clear()


def taken_of(says: Says, readings: list[Reading]) -> Probes:
    # The first one does not count. Then one before each turn, and one after the last.
    says(iter([FAR, *readings]))
    taken = Probes()
    for _ in readings:
        taken()
    return taken


def test_a_neighbour_on_a_core_of_ours_is_seen() -> None:
    interrupted = NEAR._replace(chain_ns=150.0)
    slower_clock = NEAR._replace(core_ns=210.0, chain_ns=105.0)
    readings = [interrupted, slower_clock, *[NEAR] * 28, *[CROWDED] * 10, *[SHARED] * 9]
    assert probes.crowded(readings) == 0.25
    over = probes.over_quiet([*readings, CROWDED])
    assert over[-1] == pytest.approx(1.2)
    assert over[-2] is None
    assert probes.crowded([SHARED] * 3) is None


def test_pairs_that_are_near_count_if_there_are_enough(says: Says) -> None:
    taken = taken_of(says, [*[NEAR] * 11, *[FAR] * 14, *[SHARED] * 4])
    # Five pairs near, one split, six far, one split, one on a core.
    assert taken.counting(14) == [True] * 5 + [False] * 9
    pairs_s = [*[(1.0, 0.5)] * 5, (1.0, 9.0), *[(1.0, 0.4)] * 6, (1.0, 9.0), (1.0, 0.4)]
    assert taken.state(pairs_s) == HostState(
        [120] * 11 + [520] * 14 + [90] * 4, 1.0, 45.0, 2, 7, 0.4, 120, "near", 0.0
    )
    assert taken.enough(14, 5)
    assert not taken.enough(14, 6)


def test_with_few_near_pairs_those_of_most_others_count(says: Says) -> None:
    taken = taken_of(says, [*[NEAR] * 9, *[FAR] * 12])
    assert taken.counting(10) == [False] * 5 + [True] * 5
    state = taken.state([(1.0, 0.5)] * 10)
    assert state is not None
    assert (state.split, state.elsewhere, state.counted_ns) == (1, 4, 520)
    assert state.place == "far"


def test_in_one_place_all_pairs_count(says: Says) -> None:
    taken = taken_of(says, [SHARED] * 7)
    assert taken.counting(3) == [True] * 3
    assert taken.enough(3, 3)
    assert not taken.enough(3, 4)
    # Four pairs far and one split: four count.
    assert not taken_of(says, [*[FAR] * 10, SHARED]).enough(5, 5)


def test_where_the_host_moves_the_processors_within_turns_all_pairs_count(says: Says) -> None:
    taken = taken_of(says, [*[NEAR, FAR] * 3, NEAR])
    assert taken.counting(3) == [True] * 3


def launch(
    mode_s: float,
    handoff_ns: int | None,
    place: Literal["near", "shared", ""] = "",
    **changes: object,
) -> Launch:
    host = None if handoff_ns is None else HostState([handoff_ns] * 3, 1.0, 40.0, place=place)
    made = Launch(
        "warm", OK, pairs_s=[(1.0, mode_s)] * 3, interference=Interference(0.0, 0.0, host=host)
    )
    return msgspec.structs.replace(made, **changes)


def test_launches_at_two_places_are_told_apart_and_near_ones_count_if_there_are_enough() -> None:
    launches = [launch(0.66, 118), launch(0.67, 121), launch(0.60, 517)]
    assert statistics.counted(launches) == launches
    (note,) = statistics.of_the_host(launches)
    assert note.startswith("In 1 of 3 launches a hand-off between two processors took 517 ns, and")
    assert "120 ns in the others" in note
    assert "The ratio is 0.60 in the former and 0.66 in the latter; all count." in note
    more = [*launches, launch(0.665, 119)]
    assert statistics.counted(more) == [more[0], more[1], more[3]]
    assert not statistics.precise(launches, 1.0)
    assert statistics.precise(more, 1.0)
    assert statistics.precise([launches[0]] * 3, 1.0)
    assert "only the latter count." in statistics.of_the_host(more)[0]
    assert statistics.counted([*more, launch(0.7, None)]) == [*more, launch(0.7, None)]
    assert statistics.precise([launch(0.9, 90, "shared")] * 3, 1.0)
    # Hyperthreads of one core have the quickest hand-off, and are not near.
    one_core = launch(0.9, 90, "shared")
    assert statistics.counted([*more, one_core]) == statistics.counted(more)


def test_the_ratio_of_pairs_elsewhere_is_said() -> None:
    host = HostState([120] * 9, 1.0, 40.0, 1, 6, 0.6, 120, "near")
    moved = launch(0.66, None, interference=Interference(0.0, 0.0, host=host))
    failed = Launch("warm", Outcome(Status.TIMEOUT, "took too long"))
    (note,) = statistics.of_the_host([moved, launch(0.66, 120, "near"), failed])
    assert "for 6 pairs of turns in 1 of 2 launches. There the ratio is 0.60" in note
    assert "the figure is that of the others, 0.66." in note


def test_a_neighbour_on_the_cores_is_said() -> None:
    hosts = [HostState([120] * 9, 1.0, 40.0, place="near", crowded=one) for one in (0.5, 0.7, 0.9)]
    crowded = [launch(0.66, None, interference=Interference(0.0, 0.0, host=host)) for host in hosts]
    (note,) = statistics.of_the_host(crowded)
    assert "at 70% of the readings (50% to 90% in a launch)" in note
    quiet = msgspec.structs.replace(hosts[0], crowded=0.1)
    quiet_launch = launch(0.66, None, interference=Interference(0.0, 0.0, host=quiet))
    assert statistics.of_the_host([quiet_launch] * 3) == []


@pytest.mark.parametrize(
    "launches",
    [
        [launch(0.66, 118), launch(0.67, None)],
        [launch(0.66, 118), launch(0.67, 150)],
        [launch(0.66, None)],
        [launch(0.66, 118), launch(0.67, 517, disturbed="disturbed")],
    ],
    ids=["one unknown", "one state", "none known", "one disturbed"],
)
def test_launches_at_one_place_have_no_note(launches: list[Launch]) -> None:
    assert statistics.of_the_host(launches) == []


@pytest.mark.parametrize(
    ("readings", "level", "said"),
    [
        ([NEAR], Level.OK, "120 ns"),
        ([NEAR, FAR], Level.WARNING, "120 ns between two processors, and at times 520"),
        ([*[NEAR] * 8, SHARED], Level.WARNING, "11% on one core"),
        ([*[NEAR] * 39, FAR], Level.OK, "120 ns"),
        ([NEAR, *[CROWDED] * 7], Level.WARNING, "takes 1.20 times as long"),
        ([NEAR._replace(together=1.9)], Level.WARNING, "1.9 times as long"),
    ],
    ids=[
        "one place",
        "far at times",
        "on one core at times",
        "one outlier in forty",
        "neighbour",
        "one core",
    ],
)
def test_the_doctor_names_the_states(
    says: Says,
    monkeypatch: pytest.MonkeyPatch,
    readings: list[Reading],
    level: Level,
    said: str,
) -> None:
    monkeypatch.setattr(hardware, "READ_EACH_S", 0.0)
    # The end of the readings ends the check, not a time.
    monkeypatch.setattr(hardware, "READ_S", 1000.0)
    says(iter([*readings * 20, None]))
    found = list(hardware.placement())
    assert found[-1].level is level
    assert said in found[-1].says


@pytest.mark.parametrize(
    ("level", "statuses"), [(Level.OK, (0, 0)), (Level.WARNING, (0, 1)), (Level.ERROR, (1, 1))]
)
def test_a_warning_of_the_doctor_is_a_fault_only_if_strict(
    monkeypatch: pytest.MonkeyPatch, level: Level, statuses: tuple[int, int]
) -> None:
    monkeypatch.setattr(software, "checks", lambda _: [Check("torch", level, "says")])
    monkeypatch.setattr(hardware, "checks", lambda: [Check("memory", Level.OK, "says")])
    done = [CliRunner().invoke(app, ["doctor", *option]) for option in ([], ["--strict"])]
    assert tuple(one.exit_code for one in done) == statuses, done[0].output

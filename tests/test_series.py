"""A series measures releases in turns, and goes on where it was stopped. The launches here are
scripted; tests/test_asv.py makes real ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from torchcompile_suite import matrix, workloads
from torchcompile_suite.analysis import change, statistics
from torchcompile_suite.asv import interleaved, runner
from torchcompile_suite.cell import Cell
from torchcompile_suite.cli import history
from torchcompile_suite.conditions import HostState, Interference
from torchcompile_suite.engine import journal, rounds, series, settings
from torchcompile_suite.engine.series import Series
from torchcompile_suite.measurement import METHOD, OK, Launch, Measurement, Outcome, Status
from torchcompile_suite.modes import EAGER
from torchcompile_suite.presentation import wording
from torchcompile_suite.releases import catalogue
from torchcompile_suite.request import Plan

CELL = Cell("resnet18", 1, "default")
RELEASES = ("2.4.1", "2.9.1", "2.15.0")


class Stopped(Exception):
    """Stands for Ctrl-C, or for a kill."""


class Machine:
    """Makes launches: every release takes its own time, and all of them drift together."""

    def __init__(
        self,
        compiled_s: dict[str, float] | None = None,
        drift: Callable[[int], float] = lambda _number: 1.0,
        noise: Callable[[int], float] = lambda number: 1.0 + 1e-4 * (number % 3),
        stop_at: int | None = None,
        failing: str = "",
        disturbed: frozenset[int] = frozenset(),
        far: Callable[[int], bool] = lambda _number: False,
    ) -> None:
        self.compiled_s = compiled_s or {}
        self._drift = drift
        self._noise = noise
        self._stop_at = stop_at
        self._failing = failing
        self._disturbed = disturbed
        self._far = far
        self.made: list[tuple[str, str]] = []

    def __call__(self, release: str, cache: Path) -> Launch:
        number = len(self.made)
        if number == self._stop_at:
            raise Stopped
        cache.mkdir(parents=True, exist_ok=True)
        kind: Literal["cold", "warm"] = "warm" if any(cache.iterdir()) else "cold"
        self.made.append((release, kind))
        if release == self._failing:
            return Launch(kind, Outcome(Status.CRASH, "killed by SIGSEGV"))
        (cache / "compiled").touch()
        slow = self._drift(number)
        mode_s = slow * self.compiled_s.get(release, 0.03) * self._noise(number)
        handoff_ns = 500 if self._far(number) else 120
        return Launch(
            kind,
            OK,
            pairs_s=[(0.04 * slow, mode_s)] * 15,
            warm_up_s=[(30.0 if kind == "cold" else 8.0) * slow + mode_s, *[mode_s] * 10],
            steady=True,
            interference=Interference(
                0.3 if number in self._disturbed else 0.0,
                0.0,
                host=HostState([handoff_ns], 1.0, 40.0, place="near"),
            ),
            method=METHOD,
        )


def measure(
    folder: Path, machine: Machine, releases: tuple[str, ...] = RELEASES, **options: object
) -> dict[str, Measurement]:
    plan = Series(CELL, releases, **options)  # type: ignore[arg-type]
    return rounds.measure(plan, machine, journal.of_series(plan, folder))


def rounds_of(machine: Machine, releases: int = len(RELEASES)) -> list[list[str]]:
    names = [release for release, _ in machine.made]
    return [names[at : at + releases] for at in range(0, len(names), releases)]


def test_every_round_has_every_release_and_reverses_the_order(tmp_path: Path) -> None:
    machine = Machine()
    measured = measure(tmp_path, machine, rounds=4)
    assert rounds_of(machine) == [list(RELEASES), list(RELEASES)[::-1]] * 2
    assert [kind for _, kind in machine.made] == ["cold"] * 3 + ["warm"] * 9
    for release in RELEASES:
        assert [launch.round for launch in measured[release].launches] == [1, 2, 3, 4]
        assert measured[release].stopped == "fixed"
    assert len({launch.series for one in measured.values() for launch in one.launches}) == 1


def test_it_ends_when_all_is_told(tmp_path: Path) -> None:
    machine = Machine(compiled_s={"2.9.1": 0.02})
    measured = measure(tmp_path, machine)
    # A cold round, and as many warm ones as an interval of the warm compile needs.
    assert len(machine.made) == (1 + statistics.FIRST_LOOK) * len(RELEASES)
    assert {one.stopped for one in measured.values()} == {"precise"}


def test_only_releases_with_an_open_question_go_on(tmp_path: Path) -> None:
    # The first two differ by about as much as their rounds do.
    machine = Machine(
        compiled_s={"2.4.1": 0.0305, "2.15.0": 0.02},
        noise=lambda number: 1.0 + 0.01 * (number % 4),
    )
    measured = measure(tmp_path, machine, precision=0.5)
    counts = {release: len(one.launches) for release, one in measured.items()}
    assert counts["2.4.1"] == counts["2.9.1"] > counts["2.15.0"]


def test_neighbours_that_cannot_be_told_apart_end_it_after_some_rounds(tmp_path: Path) -> None:
    noisy = Machine(noise=lambda number: 1.0 + 0.02 * (number % 5))
    measured = measure(tmp_path, noisy, precision=0.5)
    assert {len(one.launches) for one in measured.values()} == {rounds.TELLING_ROUNDS}
    assert {one.stopped for one in measured.values()} == {"precise"}


def test_it_ends_with_its_budget(tmp_path: Path) -> None:
    noisy = Machine(noise=lambda number: 1.0 + 0.3 * (number % 2))
    measured = measure(tmp_path / "a", noisy, budget_s=0.0)
    assert len(noisy.made) == statistics.FIRST_LOOK * len(RELEASES)
    assert {one.stopped for one in measured.values()} == {"budget"}
    noisy = Machine(noise=lambda number: 1.0 + 0.3 * (number % 2))
    measure(tmp_path / "b", noisy, budget_s=1e6)
    assert len(noisy.made) == settings.MOST_LAUNCHES * len(RELEASES)


def test_a_second_run_may_make_as_many_launches_again(tmp_path: Path) -> None:
    noisy = Machine(noise=lambda number: 1.0 + 0.3 * (number % 2))
    plan = Series(CELL, RELEASES[:1], budget_s=1e6)
    rounds.measure(plan, noisy, journal.of_series(plan, tmp_path))
    again = msgspec.structs.replace(plan, most_launches=settings.MOST_LAUNCHES + 3)
    rounds.measure(again, noisy, journal.of_series(plan, tmp_path))
    assert len(noisy.made) == settings.MOST_LAUNCHES + 3


def test_what_was_stopped_after_a_disturbed_launch_only_has_no_measurement(tmp_path: Path) -> None:
    plan = Series(CELL, RELEASES[:1])
    known = journal.of_series(plan, tmp_path)
    with pytest.raises(Stopped):
        rounds.measure(plan, Machine(disturbed=frozenset({0}), stop_at=1), known)
    assert known.launches[RELEASES[0]]
    assert rounds.results(plan, known) == {}


def test_a_small_budget_is_spent_on_short_launches() -> None:
    longest_s = {
        budget_s: Series.of(CELL, [""], settings.Settings(budget_s=budget_s)).plan.max_timed_s
        for budget_s in (0.0, 10.0, 30.0, 180.0)
    }
    usual_s = Plan().max_timed_s
    assert longest_s == {0.0: 0.5, 10.0: 4.0, 30.0: usual_s, 180.0: usual_s}


def test_a_release_that_fails_leaves_the_others_alone(tmp_path: Path) -> None:
    machine = Machine(failing="2.9.1")
    measured = measure(tmp_path, machine, rounds=3)
    assert machine.made.count(("2.9.1", "cold")) == 1
    assert measured["2.9.1"].outcome.status is Status.CRASH
    assert "SIGSEGV" in measured["2.9.1"].outcome.reason
    assert [len(measured[release].launches) for release in RELEASES] == [3, 1, 3]


def test_a_disturbed_launch_is_repeated_in_its_round(tmp_path: Path) -> None:
    machine = Machine(disturbed=frozenset({4}))
    measured = measure(tmp_path, machine, rounds=3)
    repeated = machine.made[4][0]
    assert [launch.round for launch in measured[repeated].launches] == [1, 2, 2, 3]
    assert [bool(launch.disturbed) for launch in measured[repeated].launches] == [
        False, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "far", "made"),
    [
        (3, (), 3),
        (3, range(1, 2), 4),
        (3, range(1, 4), 6),
        (3, range(1, 30), 12),  # no more than a series has
        (3, range(9), 3),  # the machine has one place
        (2, range(1, 2), 2),  # the place decides on three launches, and on no fewer
    ],
)
def test_launches_elsewhere_on_the_host_are_made_up_for(
    tmp_path: Path, wanted: int, far: Sequence[int], made: int
) -> None:
    machine = Machine(far=far.__contains__)
    (one,) = measure(tmp_path, machine, ("2.15.0",), rounds=wanted).values()
    assert len(one.launches) == made
    assert one.stopped == "fixed"
    known = journal.of_series(Series(CELL, ("2.15.0",), rounds=wanted), tmp_path)
    assert not rounds.wanting(Series(CELL, ("2.15.0",), rounds=wanted), known)


def test_the_best_place_is_that_of_the_series(tmp_path: Path) -> None:
    """All launches of the first release were made elsewhere, and only the second one shows it."""
    machine = Machine(far={0, 3, 4}.__contains__)
    first, second = measure(tmp_path, machine, RELEASES[:2], rounds=3).values()
    assert [len(first.launches), len(second.launches)] == [6, 3]
    assert [one.round for one in statistics.counted(first.launches)] == [4, 5, 6]


def test_a_search_takes_launches_at_each_place(tmp_path: Path) -> None:
    machine = Machine(far=range(1, 2).__contains__)
    (one,) = measure(tmp_path, machine, ("c0ffee",), rounds=3, having="time ratio").values()
    assert len(one.launches) == 3


@pytest.mark.parametrize(
    ("having", "status", "values"), [("", Status.UNSETTLED, 0), ("time ratio", Status.OK, 3)]
)
def test_a_search_goes_on_while_the_machine_is_busy(
    tmp_path: Path, having: str, status: Status, values: int
) -> None:
    """A measurement has no number then. A search compares neighbours in time, and must end."""
    machine = Machine(disturbed=frozenset(range(20)))
    (made,) = measure(tmp_path, machine, ("c0ffee",), rounds=3, having=having).values()
    assert made.outcome.status is status
    counted = [launch for launch in made.launches if launch.outcome.ok and not launch.disturbed]
    assert len(counted) == values
    assert len(machine.made) == settings.MOST_REPEATS + max(1, values)


@pytest.mark.parametrize("stop_at", range(1, 12))
def test_a_stopped_series_goes_on_and_loses_no_launch(tmp_path: Path, stop_at: int) -> None:
    first = Machine(stop_at=stop_at)
    with pytest.raises(Stopped):
        measure(tmp_path, first, rounds=4)
    second = Machine()
    measured = measure(tmp_path, second, rounds=4)
    made = [*first.made, *second.made]
    assert len(made) == 4 * len(RELEASES), "nothing is measured twice"
    assert sorted(made).count(("2.4.1", "cold")) == 1
    whole = stop_at // len(RELEASES)
    divided = {launch.round for one in measured.values() for launch in one.launches[:whole]}
    assert 0 not in divided, "the rounds that were complete are still pairs"
    if stop_at % len(RELEASES):
        lost = [launch for one in measured.values() for launch in one.launches if not launch.round]
        assert len(lost) == stop_at % len(RELEASES), "one round is no pair any more, at most"


def test_a_round_that_was_divided_stays_divided(tmp_path: Path) -> None:
    """A later round that ends says nothing about an earlier one that an interruption divided."""
    for stop_at in (4, 5):
        with pytest.raises(Stopped):
            measure(tmp_path, Machine(stop_at=stop_at), rounds=6)
    measured = measure(tmp_path, Machine(), rounds=6)
    divided = [launch for one in measured.values() for launch in one.launches if not launch.round]
    # One launch of round 2, and two of round 4: the round in between was whole.
    assert len(divided) == 3
    assert measure(tmp_path, Machine(stop_at=0), rounds=6) == measured, "read again, it is the same"


def test_half_a_cold_launch_is_not_a_warm_one(tmp_path: Path) -> None:
    class Killed(Machine):
        def __call__(self, release: str, cache: Path) -> Launch:
            if release == "2.9.1":
                cache.mkdir(parents=True)
                (cache / "half").touch()
                raise Stopped
            return super().__call__(release, cache)

    with pytest.raises(Stopped):
        measure(tmp_path, Killed(), rounds=2)
    machine = Machine()
    measure(tmp_path, machine, rounds=2)
    assert ("2.9.1", "cold") in machine.made


def test_another_plan_begins_anew(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        measure(tmp_path, Machine(stop_at=4), rounds=4)
    machine = Machine()
    measured = measure(tmp_path, machine, rounds=3)
    assert len(machine.made) == 3 * len(RELEASES)
    assert all(len(one.launches) == 3 for one in measured.values())


def test_a_series_is_a_plan_and_a_folder(tmp_path: Path) -> None:
    """Both can be sent to another machine: the rounds go on there, and nothing else is needed."""
    plan = Series(CELL, RELEASES, rounds=4)
    with pytest.raises(Stopped):
        rounds.measure(plan, Machine(stop_at=7), journal.of_series(plan, tmp_path / "here"))
    shutil.move(tmp_path / "here", tmp_path / "there")
    sent = msgspec.json.decode(msgspec.json.encode(plan), type=Series)
    machine = Machine()
    measured = rounds.measure(sent, machine, journal.of_series(sent, tmp_path / "there"))
    assert len(machine.made) == 4 * len(RELEASES) - 7
    assert len({launch.series for one in measured.values() for launch in one.launches}) == 1


def test_a_torn_journal_is_read_up_to_the_tear(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        measure(tmp_path, Machine(stop_at=7), rounds=4)
    file = tmp_path / journal.FILE
    file.write_bytes(file.read_bytes()[:-20])
    machine = Machine()
    measured = measure(tmp_path, machine, rounds=4)
    assert all(len(one.launches) == 4 for one in measured.values())


def compared(measured: dict[str, Measurement], before: str, after: str) -> change.Comparison:
    sides = [change.Side(release, [measured[release]]) for release in (before, after)]
    return change.compare("box", *sides)


def test_the_drift_of_the_machine_cancels_in_a_series(tmp_path: Path) -> None:
    """Eager is the same in all releases, and the machine becomes slower by 2 % with each launch."""
    machine = Machine(drift=lambda number: 1.02**number)
    measured = measure(tmp_path, machine, rounds=6)
    comparison = compared(measured, "2.4.1", "2.9.1")
    assert comparison.paired == comparison.compared == 1
    effect = comparison.changes[0].effects["eager"]
    assert effect.paired
    assert effect.factor.low < 1.0 < effect.factor.high
    assert effect.factor.value == pytest.approx(1.0, abs=0.005)
    # In the ratio the drift cancels inside a launch, so rounds would only cost degrees of freedom.
    assert not comparison.changes[0].effects["time ratio"].paired


def test_a_slower_release_is_found_although_the_machine_drifts(tmp_path: Path) -> None:
    machine = Machine(
        compiled_s={"2.9.1": 0.03 * 1.03, "2.15.0": 0.03 * 1.03},
        drift=lambda number: 1.0 + 0.2 * ((number // 3) % 4),
        noise=lambda number: 1.0 + 0.004 * (number % 3),
    )
    measured = measure(tmp_path, machine, rounds=6)
    effect = compared(measured, "2.4.1", "2.9.1").changes[0].effects["compiled"]
    assert effect.difference is change.Difference.WORSE
    # The same launches without their rounds: nothing shows the drift, so times are not compared.
    apart = {
        release: msgspec.structs.replace(
            one, launches=[msgspec.structs.replace(launch, round=0) for launch in one.launches]
        )
        for release, one in measured.items()
    }
    comparison = compared(apart, "2.4.1", "2.9.1")
    assert comparison.paired == 0
    assert "compiled" not in comparison.changes[0].effects


def test_releases_of_two_series_are_not_paired(tmp_path: Path) -> None:
    first = measure(tmp_path / "a", Machine(), rounds=3)
    second = measure(tmp_path / "b", Machine(), rounds=3)
    apart = compared({**first, "2.9.1": second["2.9.1"]}, "2.4.1", "2.9.1")
    assert apart.paired == 0
    assert "They were measured one run after the other, so only their ratios" in wording.judgement(
        apart
    )
    beside = compared(first, "2.4.1", "2.9.1")
    assert "All of them were measured in turns" in wording.judgement(beside)


def test_a_history_is_complete_when_one_series_made_it(tmp_path: Path) -> None:
    first = list(measure(tmp_path / "a", Machine(), rounds=3).values())
    second = list(measure(tmp_path / "b", Machine(), rounds=3).values())
    failed = list(measure(tmp_path / "c", Machine(failing="2.9.1"), rounds=3).values())
    assert series.complete(first)
    assert not series.complete([*first[:2], second[2]])
    assert not series.complete([*first[:2], None])
    assert not series.complete(failed), "a failure may be mended"
    old = [msgspec.structs.replace(launch, method=METHOD - 1) for launch in first[0].launches]
    assert not series.complete([msgspec.structs.replace(first[0], launches=old), *first[1:]])


def test_a_lasting_failure_does_not_measure_the_others_again(tmp_path: Path) -> None:
    plan = Series(CELL, RELEASES)
    failed = measure(tmp_path / "a", Machine(failing="2.9.1"), rounds=3)
    retry = series.again(plan, failed)
    assert retry is not None
    machine = Machine(failing="2.9.1")
    rounds.measure(retry, machine, journal.of_series(retry, tmp_path / "b"))
    assert machine.made == [("2.9.1", "cold")]
    sound = measure(tmp_path / "c", Machine(), rounds=3)
    assert series.again(plan, sound) is None, "nothing failed"
    assert series.again(plan, {**failed, "2.4.1": sound["2.4.1"]}) is None, "another series"
    assert series.again(plan, {**failed, "2.4.1": None}) is None, "not measured yet"


@given(st.lists(st.booleans(), min_size=2, max_size=6))
def test_told_needs_rounds_of_both(present: list[bool]) -> None:
    """Launches without a common round tell nothing, however many there are."""
    launches = {
        name: [msgspec.structs.replace(_launch(), series="s", round=number) for number in numbers]
        for name, numbers in (
            ("before", [n for n, here in enumerate(present, 1) if here]),
            ("after", [n for n, here in enumerate(present, 1) if not here]),
        )
    }
    if all(launches.values()):
        assert not change.told(CELL, launches["before"], launches["after"])


def test_an_eager_cell_needs_no_ratio(tmp_path: Path) -> None:
    """The ratio of eager to eager is no figure of a release, so no round is spent on it."""
    noisy = Machine(noise=lambda number: 1.0 + 0.02 * (number % 4))
    eager = Series(Cell("resnet18", 1, EAGER), RELEASES, precision=0.5)
    rounds.measure(eager, noisy, journal.of_series(eager, tmp_path / "eager"))
    assert len(noisy.made) == statistics.FIRST_LOOK * len(RELEASES)
    noisy = Machine(noise=lambda number: 1.0 + 0.02 * (number % 4))
    measure(tmp_path / "compiled", noisy, precision=0.5)
    assert len(noisy.made) > statistics.FIRST_LOOK * len(RELEASES)


def _launch() -> Launch:
    return Launch("warm", OK, pairs_s=[(0.04, 0.03)] * 3, warm_up_s=[8.0, *[0.03] * 10])


def test_a_history_has_the_newest_patch_of_every_minor() -> None:
    # A release that is added later must not change the expectation.
    releases = [
        release for release in catalogue.read() if Version(release.version) < Version("2.16")
    ]
    newest = history.newest_patches(releases)
    assert [release.minor for release in newest] == [f"2.{minor}" for minor in range(4, 16)]
    assert all(catalogue.newest_patch(one.minor, releases) == one for one in newest)
    assert history.in_order([*newest[::-1], newest[0]]) == newest


def test_the_history_touches_every_family_and_can_be_selected() -> None:
    models = [workloads.get(name) for name in workloads.names()]
    families = {model.family for model in models if "inference" in model.core}
    assert {workloads.get(cell.workload).family for cell in matrix.SERIES} >= families
    assert len(history._patterns("history")) == len(matrix.SERIES)
    assert history._patterns("core") == matrix.core_patterns()
    assert history._patterns("all") == ["."]
    assert history._patterns("Inference.*resnet18") == ["Inference.*resnet18"]


def test_the_series_of_the_published_history_come_first() -> None:
    selection = {
        f"{question.name}.track": list(range(len(question.points)))
        for question in (matrix.INFERENCE, matrix.ALLOCATOR, matrix.CODEGEN)
    }
    asked = runner._cells(selection)
    assert len(asked) == len(set(asked))
    cells = interleaved.in_order(asked)
    first = [cell for cell in matrix.SERIES if cell in asked]
    assert cells[: len(first)] == first
    assert not any(cell in matrix.SERIES for cell in cells[len(first) :])
    assert sorted(map(str, cells)) == sorted(map(str, asked))


def test_a_series_under_other_conditions_begins_anew(tmp_path: Path) -> None:
    """Else launches with two threads and with one would be one figure."""
    with pytest.raises(Stopped):
        measure(tmp_path, Machine(stop_at=4), rounds=3, conditions="two threads")
    again, other = Machine(stop_at=2), Machine()
    with pytest.raises(Stopped):
        measure(tmp_path, again, rounds=3, conditions="two threads")
    assert again.made[0] == ("2.4.1", "warm"), "it goes on"
    measure(tmp_path, other, rounds=3, conditions="one thread")
    assert len(other.made) == 3 * len(RELEASES)


def test_conditions_are_what_can_change_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    here = series.conditions_here({})
    assert here == series.conditions_here({"TORCHINDUCTOR_CACHE_DIR": "folder"})
    assert here != series.conditions_here({"OMP_NUM_THREADS": "1"})
    monkeypatch.setenv("TORCHINDUCTOR_FREEZING", "1")
    assert here != series.conditions_here({})

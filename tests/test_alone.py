"""When a cell is measured alone: when launching stops, what is recorded. The launches are scripted;
tests/test_launch.py makes real ones."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import Cell
from torchcompile_suite.conditions import Interference
from torchcompile_suite.engine import settings
from torchcompile_suite.engine.alone import Alone
from torchcompile_suite.engine.processes import HERE, Environment
from torchcompile_suite.engine.series import Series
from torchcompile_suite.engine.settings import Settings
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.host import processors
from torchcompile_suite.measurement import METHOD, OK, Launch, Measurement, Outcome, Status
from torchcompile_suite.results import parsing, records

from . import examples

CELL = Cell("resnet18", 1, "default")
EAGER_CELL = Cell("resnet18", 1, "eager")
QUIET_S = 1e-4


class Script:
    """Makes launches that have the given ratios, steal shares and calibration times."""

    def __init__(
        self,
        ratios: Iterator[float],
        steal: Iterator[float],
        calibrations: Iterator[float],
        method: int,
    ) -> None:
        self._ratios = ratios
        self._steal = steal
        self._calibrations = calibrations
        self._method = method
        self.kinds: list[str] = []

    def __call__(self, _: Environment, series: Series, cache: Path) -> Launch:
        kind: Literal["cold", "warm"] = "warm" if cache.exists() else "cold"
        self.kinds.append(kind)
        # Like the compiled code of a real launch: the next launch is a warm one.
        cache.mkdir(exist_ok=True)
        ratio = next(self._ratios)
        if ratio < 0:
            return Launch(kind, Outcome(Status.CRASH, "killed"))
        return Launch(
            kind,
            OK,
            pairs_s=[(0.1, 0.1 * ratio)] * 3,
            warm_up_s=[1.0] + [0.1] * 10,
            interference=Interference(next(self._steal), 0.0),
            calibration_s=next(self._calibrations),
            environment=msgspec.structs.replace(
                examples.environment(), python=platform.python_version()
            ),
            method=self._method,
        )


def measure(
    ratios: list[float],
    steal: list[float] | None = None,
    calibrations: list[float] | None = None,
    cell: Cell = CELL,
    method: int = METHOD,
    record: Path | None = None,
    reuse: bool = False,
    **settings: Any,
) -> tuple[Measurement, Script]:
    script = Script(
        iter(ratios),
        iter(steal or [0.0] * len(ratios)),
        iter(calibrations or [QUIET_S] * len(ratios)),
        method,
    )
    made = Alone(HERE, Settings(**settings), record, script)
    return (made.recorded(cell) if reuse else None) or made.measure(cell), script


def test_it_stops_at_the_first_precise_look(tmp_path: Path) -> None:
    found, script = measure([0.90, 0.91, 0.90, 0.5])
    assert script.kinds == ["cold", "warm", "warm"]
    assert found.stopped == "precise"
    assert found.sequential


def test_it_goes_on_until_precise(tmp_path: Path) -> None:
    found, script = measure([0.90, 0.96, *[0.93] * 20])
    assert found.stopped == "precise"
    assert 3 < len(script.kinds) < settings.MOST_LAUNCHES
    ratio = statistics.measured_ratio(found.launches)
    assert statistics.half_width(ratio) <= settings.PRECISION


def test_it_ends_with_the_budget_and_records_that(tmp_path: Path) -> None:
    noisy = [0.8, 1.2] * 20
    found, script = measure(noisy, budget_s=1e6)
    assert found.stopped == "budget"
    assert len(script.kinds) == settings.MOST_LAUNCHES
    found, script = measure(noisy, budget_s=0)
    assert found.stopped == "budget"
    assert len(script.kinds) == statistics.FIRST_LOOK


def test_a_fixed_number_of_launches(tmp_path: Path) -> None:
    found, script = measure([0.9] * 9, launches=6)
    assert found.stopped == "fixed"
    assert len(script.kinds) == 6
    assert not found.sequential


def test_a_disturbed_launch_is_repeated_and_kept(tmp_path: Path) -> None:
    ratios = [0.9, 1.4, 0.9, 0.9]
    found, _ = measure(ratios, steal=[0, 0.3, 0, 0])
    assert [bool(launch.disturbed) for launch in found.launches] == [False, True, False, False]
    assert "30%" in found.launches[1].disturbed
    assert found.stopped == "precise"


def test_a_machine_that_is_always_disturbed_comes_to_an_end(tmp_path: Path) -> None:
    found, script = measure([0.9] * 30, steal=[0.5] * 30)
    assert len(script.kinds) == settings.MOST_REPEATS + 1
    assert found.outcome.status is Status.UNSETTLED
    assert "too busy to say: other guests of the host took 50%" in found.outcome.reason
    assert "0.90 of eager's time" in found.outcome.reason
    found, script = measure([0.9] * 30, steal=[0.5] * 30, repeats=0)
    assert found.outcome.ok
    assert len(script.kinds) == statistics.FIRST_LOOK


def test_a_machine_that_is_slow_for_hours_has_figures(tmp_path: Path) -> None:
    """Only the calibration loop sees it, so nobody can end what slows it."""
    calibrations = [QUIET_S, *[1.4 * QUIET_S] * 30]
    found, script = measure([0.9] * 31, calibrations=calibrations)
    assert len(script.kinds) == settings.MOST_REPEATS + statistics.FIRST_LOOK
    assert found.outcome.ok


def test_a_record_of_another_method_is_not_reused(tmp_path: Path) -> None:
    reuse: dict[str, Any] = {
        "cell": EAGER_CELL,
        "record": tmp_path / "records.jsonl",
        "reuse": True,
    }
    for method, measured in ((1, 3), (METHOD, 3), (METHOD, 0)):
        _, script = measure([1.0] * 3, method=method, **reuse)
        assert len(script.kinds) == measured


def test_a_launch_that_a_neighbour_slowed_is_repeated_and_kept(tmp_path: Path) -> None:
    ratios = [0.9, 1.4, 0.9, 0.9]
    calibrations = [QUIET_S, 1.4 * QUIET_S, 1.1 * QUIET_S, QUIET_S]
    found, _ = measure(ratios, calibrations=calibrations)
    assert [bool(launch.disturbed) for launch in found.launches] == [False, True, False, False]
    assert "1.40 times as slow" in found.launches[1].disturbed


def test_a_host_that_is_always_slow_is_asked_for_a_quiet_launch_in_one_cell_only() -> None:
    slow, most = QUIET_S * 1.4, settings.MOST_REPEATS
    calibrations = iter([QUIET_S, QUIET_S, QUIET_S, *[slow] * (most + 6), QUIET_S, *[slow] * 9])
    script = Script(iter([0.9] * 20), iter([0.0] * 20), calibrations, METHOD)
    alone = Alone(HERE, Settings(launches=3), None, script)
    counts = [len(alone.measure(CELL).launches) for _ in range(3)]
    assert counts == [3, 3 + most, 3]
    # A quiet launch is seen: slow ones after it are repeated again.
    assert len(alone.measure(CELL).launches) > 3


@pytest.fixture
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of the records are those of this machine."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(processors, "allowed", lambda: [0, 1])


@pytest.mark.usefixtures("two_processors")
@pytest.mark.parametrize("unlike", [{"python": "3.9.1"}, {"threads": 1}, {"threads": 64}])
def test_the_loop_of_another_python_or_of_other_threads_tells_nothing(
    tmp_path: Path, unlike: dict[str, object]
) -> None:
    first, second = (tmp_path / f"{name}{parsing.SUFFIX}" for name in ("first", "second"))
    noisy = [1.4 * QUIET_S] * 3
    measure([1.0] * 3, cell=EAGER_CELL, calibrations=noisy, record=second)
    quick, _ = measure([1.0] * 3)
    launches = [
        msgspec.structs.replace(one, environment=msgspec.structs.replace(one.environment, **unlike))
        for one in quick.launches
        if one.environment
    ]
    records.append(first, msgspec.structs.replace(quick, launches=launches))
    _, script = measure([1.0] * 3, cell=EAGER_CELL, calibrations=noisy, record=second, reuse=True)
    assert not script.kinds, "the record is as quiet as any of its kind"


@pytest.mark.usefixtures("two_processors")
def test_the_records_of_the_machine_tell_its_quiet_time(tmp_path: Path) -> None:
    """Records of any release. A measurement of a noisy hour is not reused in a quieter one."""
    first, second = (tmp_path / f"{name}{parsing.SUFFIX}" for name in ("first", "second"))
    noisy = [1.4 * QUIET_S] * 6
    found, _ = measure([1.0] * 6, calibrations=noisy, record=second)
    assert len(found.launches) == 3, "no quieter launch is known"
    measure([1.0] * 3, cell=EAGER_CELL, record=first)
    again: dict[str, Any] = {
        "record": second,
        "reuse": True,
        "calibrations": noisy,
        "cell": EAGER_CELL,
    }
    found, _ = measure([1.0] * 6, **again)
    assert len(found.launches) == settings.MOST_REPEATS + statistics.FIRST_LOOK
    found, script = measure([1.0] * 6, **again)
    assert script.kinds, "still slowed: measured again"
    _, script = measure([1.0] * 6, repeats=0, **again)
    assert not script.kinds, "no launch is repeated, so the record is reused"


def test_a_record_of_an_unsupported_cell_is_reused(tmp_path: Path) -> None:
    outcome = Outcome(Status.UNSUPPORTED, "no such mode")
    started = "2026-11-22T00:00:00+00:00"
    known = Measurement(CELL, outcome, [Launch("cold", outcome)], started, 1.0)
    record = tmp_path / "records.jsonl"
    records.append(record, known)
    found, script = measure([], record=record, reuse=True)
    assert found == known
    assert not script.kinds


def test_an_odd_result_alone_is_not_disturbed(tmp_path: Path) -> None:
    found, _ = measure([0.9, 3.0, *[0.9] * 20])
    assert not any(launch.disturbed for launch in found.launches)


def test_a_failure_ends_it(tmp_path: Path) -> None:
    found, script = measure([0.9, -1.0, 0.9])
    assert found.outcome == Outcome(Status.CRASH, "launch 2: killed")
    assert len(script.kinds) == 2
    assert found.stopped == ""


@pytest.mark.parametrize(
    "variable", [settings.PRECISION_VARIABLE, settings.BUDGET_VARIABLE, settings.LAUNCHES_VARIABLE]
)
def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "often")
    with pytest.raises(SuiteError, match=variable):
        Settings.from_environment()

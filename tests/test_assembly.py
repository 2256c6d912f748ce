"""The assembled history: every cell from one machine, every mean of ratios within machines."""

from __future__ import annotations

import math
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite import matrix
from torchcompile_suite.analysis import change, history, summary
from torchcompile_suite.cell import Cell
from torchcompile_suite.measurement import METHOD, OK, Launch, Measurement
from torchcompile_suite.results import machines
from torchcompile_suite.results.records import Record

RELEASES = ["2.4.1", "2.9.1", "2.15.0"]
CELLS = matrix.SERIES[:4]


def record(
    machine: str,
    release: str,
    cell: Cell,
    *,
    series: str = "s",
    method: int = METHOD,
    ok: bool = True,
    mode_s: float = 0.03,
    speed: float = 1.0,
) -> Record:
    launches = [
        Launch(
            "cold" if number == 1 else "warm",
            OK,
            pairs_s=[(0.04 * speed, mode_s * speed)] * 15,
            warm_up_s=[20.0 if number == 1 else 5.0, *[mode_s * speed] * 5],
            steady=True,
            method=method,
            series=series,
            round=number,
        )
        for number in range(1, 5)
    ]
    from torchcompile_suite.measurement import Outcome, Status

    outcome = OK if ok else Outcome(Status.CRASH, "killed")
    measurement = Measurement(
        cell, outcome, launches if ok else [], "2026-11-23T10:00:00+00:00", 60.0, "fixed"
    )
    return Record(machine, release, "virtualenv-py3.11", measurement, release)


def test_the_machine_with_the_most_complete_series_shows_the_cell() -> None:
    a, b, c, d = CELLS
    records = [
        # a: one machine has all releases in one series, the other as many numbers from two.
        *(record("x", release, a, series=str(number)) for number, release in enumerate(RELEASES)),
        *(record("y", release, a) for release in RELEASES),
        # b: numbers of the newest method come before more numbers of an old one.
        *(record("x", release, b, method=1) for release in RELEASES),
        *(record("y", release, b) for release in RELEASES[:2]),
        # c: a number comes before outcomes without one.
        *(record("x", release, c, ok=False) for release in RELEASES),
        record("y", RELEASES[0], c),
        # d: equal; the first by name.
        *(record(name, release, d) for name in ("y", "x") for release in RELEASES),
    ]
    found = machines.assemble(records)
    assert found.machine_of == {a: "y", b: "y", c: "y", d: "x"}
    assert found.machines == ["x", "y"]
    assert {one.measurement.cell: one.machine for one in found.records} == found.machine_of
    # Only the asked releases count for completeness.
    only = machines.assemble(records, [RELEASES[2]])
    assert only.machine_of[b] == "x"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["x", "y", "z"]),
            st.sampled_from(RELEASES),
            st.sampled_from(CELLS),
            st.sampled_from(["s", "t"]),
            st.booleans(),
        ),
        unique_by=lambda one: one[:3],
    ),
    st.randoms(),
)
def test_a_cell_always_comes_from_one_machine_whatever_the_order(
    content: list[tuple[str, str, Cell, str, bool]], chosen: random.Random
) -> None:
    records = [
        record(machine, release, cell, series=series, ok=ok)
        for machine, release, cell, series, ok in content
    ]
    found = machines.assemble(records)
    shuffled = machines.assemble(chosen.sample(records, len(records)))
    assert found.machine_of == shuffled.machine_of
    assert found.machine_of.keys() == {one.measurement.cell for one in records}
    for cell, machine in found.machine_of.items():
        mine = [one for one in found.records if one.measurement.cell == cell]
        assert {one.machine for one in mine} == {machine}
        # All of the machine's records of the cell, none left out.
        wanted = [one for one in records if one[3].cell == cell and one.machine == machine]
        assert sorted(map(repr, mine)) == sorted(map(repr, wanted))


def test_means_over_machines_are_of_ratios_within_machines() -> None:
    """A machine that is ten times slower changes no mean."""
    factors = {CELLS[0]: 0.5, CELLS[1]: 0.8, CELLS[2]: 1.25}

    def records(speeds: dict[Cell, tuple[str, float]]) -> list[Record]:
        return [
            record(
                speeds[cell][0],
                release,
                cell,
                speed=speeds[cell][1],
                mode_s=0.03 * (factors[cell] if release == RELEASES[-1] else 1.0),
            )
            for cell in factors
            for release in RELEASES
        ]

    apart = records({CELLS[0]: ("slow", 10.0), CELLS[1]: ("fast", 1.0), CELLS[2]: ("slow", 10.0)})
    together = records(dict.fromkeys(factors, ("fast", 1.0)))
    drifts = {"slow": 0.02, "fast": 0.02}
    points = history.means(summary.rows(apart), RELEASES, frozenset(factors), drifts)
    whole = history.means(summary.rows(together), RELEASES, frozenset(factors), drifts)
    for place, expected in whole.items():
        found = points[place]
        assert found.value == pytest.approx(expected.value)
        # Two machines drift apart from each other, so their mean drifts less.
        assert found.high <= expected.high * (1 + 1e-9)
    mean = math.prod(factors.values()) ** (1 / 3)
    assert points[RELEASES[-1], "compiled"].value == pytest.approx(mean)


def test_the_mean_of_one_machine_drifts_with_it() -> None:
    rows = summary.rows(
        [
            record("x", release, cell, mode_s=0.01 * number)
            for cell in CELLS
            for number, release in enumerate(RELEASES, 1)
        ]
    )
    found = history.means(rows, RELEASES, frozenset(CELLS), {"x": 0.03})
    for number, release in enumerate(RELEASES, 1):
        assert found[release, "eager"].value == pytest.approx(1)
        assert found[release, "compiled"].value == pytest.approx(number)
        # A time over the first release's has the drift of both.
        reach = 0.0 if number == 1 else math.sqrt(2) * 0.03
        assert found[release, "compiled"].high == pytest.approx(number * math.exp(reach))
        # In a ratio the drift cancels.
        assert found[release, "ratio"] == pytest.approx((number / 4,) * 3)


def test_a_mean_needs_assembled_records() -> None:
    rows = summary.rows([record(name, release, CELLS[0]) for name in "xy" for release in RELEASES])
    with pytest.raises(ValueError, match="two machines"):
        history.means(rows, RELEASES, frozenset(CELLS[:1]), {"x": 0.0, "y": 0.0})


def sides(records: list[Record]) -> dict[str, tuple[change.Side, change.Side]]:
    made = {}
    for name in sorted({one.machine for one in records}):
        mine = [one for one in records if one.machine == name]
        before, after = (
            change.Side(release, [one.measurement for one in mine if one.release == release])
            for release in ("2.9.1", "2.15.0")
        )
        made[name] = (before, after)
    return made


def noisy(machine: str, release: str, cell: Cell, factor: float, seed: int) -> Record:
    chosen = random.Random(f"{machine}{release}{cell}{seed}")
    made = record(machine, release, cell, mode_s=0.03 * factor)
    launches = [
        msgspec.structs.replace(
            launch,
            pairs_s=[
                (eager_s, mode_s * math.exp(chosen.gauss(0, 0.01)))
                for eager_s, mode_s in launch.pairs_s[:1]
            ]
            * 15,
        )
        for launch in made.measurement.launches
    ]
    return made._replace(measurement=msgspec.structs.replace(made.measurement, launches=launches))


def test_releases_are_compared_within_each_machine() -> None:
    records = [
        noisy(name, release, cell, factor if release == "2.15.0" else 1.0, 1)
        for name, cell, factor in (
            ("x", CELLS[0], 1.3),
            ("x", CELLS[1], 1.0),
            ("y", CELLS[2], 1.3),
            ("y", CELLS[3], 1.0),
        )
        for release in ("2.9.1", "2.15.0")
    ]
    found = change.compare_machines(sides(records))
    assert found.machine == "x, y"
    assert found.machine_of == {cell: name for name, cell in zip("xxyy", CELLS, strict=True)}
    worse = {one.cell for one in found.regressions}
    assert worse == {CELLS[0], CELLS[2]}
    assert found.means["time ratio"].value == pytest.approx(1.3**0.5, rel=0.02)


def test_a_cell_of_two_machines_is_an_error() -> None:
    records = [record(name, release, CELLS[0]) for name in "xy" for release in ("2.9.1", "2.15.0")]
    with pytest.raises(ValueError, match="two machines"):
        change.compare_machines(sides(records))

"""Gaps of a release are counted. A cell or number that is missing for a reason is no gap."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from torchcompile_suite import matrix
from torchcompile_suite.analysis import coverage
from torchcompile_suite.cell import Cell
from torchcompile_suite.cli import app, history
from torchcompile_suite.compiled import Compiled
from torchcompile_suite.host import machine
from torchcompile_suite.measurement import METHOD, Measurement, Outcome, Status
from torchcompile_suite.releases import catalogue, ledger
from torchcompile_suite.results import records

from . import examples

CELL = Cell("resnet18", 1, "default")
WHOLE = msgspec.convert(
    {**dict.fromkeys(coverage.NUMBERS[:-1], 1), "unknown": {"profile": "no queue"}}, Compiled
)


def measurement(
    cell: Cell,
    compiled: Compiled | None,
    outcome: Outcome | None = None,
    release: str = "2.9.1",
    method: int = 1,
) -> Measurement:
    made = examples.measurement(outcome=outcome) if outcome else examples.measurement()
    described = examples.environment(release)
    launches = [
        msgspec.structs.replace(
            one,
            compiled=compiled if number == 0 else None,
            environment=described,
            method=method,
        )
        for number, one in enumerate(made.launches)
    ]
    return msgspec.structs.replace(made, cell=cell, launches=launches)


def test_a_whole_record_has_no_gap() -> None:
    covered = coverage.coverage([measurement(CELL, WHOLE)], [CELL], "cpu")
    assert covered == coverage.Coverage(1, {}, [], [])


def test_a_number_without_a_reason_is_a_gap() -> None:
    silent = msgspec.structs.replace(WHOLE, guards=None)
    covered = coverage.coverage([measurement(CELL, silent)], [CELL], "cpu")
    assert covered.unexplained == [f"{CELL}: guards"]
    old = coverage.coverage([measurement(CELL, None)], [CELL], "cpu")
    assert old.unexplained == [f"{CELL}: what the compiler saw"]


def test_an_outcome_with_a_reason_is_no_gap() -> None:
    failed = measurement(CELL, None, Outcome(Status.UNSUPPORTED, "no such mode"))
    covered = coverage.coverage([failed], [CELL], "cpu")
    assert (covered.ok, covered.ended, covered.unexplained) == (0, {CELL: failed.outcome}, [])


def test_another_device_s_cells_are_not_these() -> None:
    assert coverage.coverage([measurement(CELL, WHOLE)], [CELL], "cuda").missing


def test_the_command_counts_and_fails_at_gaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = records.path(tmp_path / "results" / machine.detect().machine, "a" * 40, "env")
    file.parent.mkdir(parents=True)
    for cell in matrix.core_cells():
        records.append(file, measurement(cell, WHOLE))
    done = CliRunner().invoke(app.app, ["coverage", "v2.9"])
    assert done.exit_code == 0, done.output
    assert "unexplained gaps: 0" in done.output
    records.append(file, measurement(matrix.core_cells()[0], None))
    done = CliRunner().invoke(app.app, ["coverage", "v2.9"])
    assert done.exit_code == 1
    assert "unexplained gaps: 1" in done.output


def test_a_series_is_complete_where_each_release_has_numbers_or_lacks_what_it_needs() -> None:
    def outcome(status: Status) -> Measurement:
        return measurement(CELL, None, Outcome(status, "why"))

    whole = measurement(CELL, WHOLE)

    def covered(*found: Measurement | None) -> coverage.SeriesCoverage:
        names = [f"2.{number}" for number in range(len(found))]
        by_release = {name: [one] for name, one in zip(names, found, strict=True) if one}
        machines = {"here": coverage.Measured(by_release, "cpu")}
        (one,) = coverage.series(machines, [CELL], names)
        return one

    assert covered(whole, whole).complete
    lacks = covered(outcome(Status.UNSUPPORTED), whole)
    assert lacks.complete
    assert lacks.ok == ["2.1"]
    assert not lacks.failed
    failed = covered(whole, outcome(Status.TIMEOUT))
    assert not failed.complete
    assert list(failed.failed) == ["2.1"]
    assert covered(None, whole).missing == ["2.0"]
    silent = measurement(CELL, msgspec.structs.replace(WHOLE, guards=None))
    assert covered(silent).unexplained == {"2.0": [f"{CELL}: guards"]}
    assert not covered(None, whole).complete
    assert not covered(silent).complete


def test_a_series_is_counted_on_the_machine_that_has_most_of_it() -> None:
    """It is never put together from two machines."""
    whole = measurement(CELL, WHOLE)
    other = measurement(msgspec.structs.replace(CELL, mode="eager"), WHOLE)
    failed = measurement(CELL, None, Outcome(Status.TIMEOUT, "why"))
    machines = {
        "a": coverage.Measured({"2.0": [whole], "2.1": [failed]}, "cpu"),
        "b": coverage.Measured({"2.0": [whole], "2.1": [whole]}, "cpu"),
        "c": coverage.Measured({"2.0": [whole], "2.1": [whole]}, "cpu"),
        "d": coverage.Measured({"2.1": [whole], "2.2": [other]}, "cpu"),
    }
    releases = ["2.0", "2.1"]
    (one,) = coverage.series(machines, [CELL], releases)
    assert (one.machine, one.complete) == ("b", True)
    (one,) = coverage.series({name: machines[name] for name in "ad"}, [CELL], releases)
    assert (one.machine, one.missing, list(one.failed)) == ("a", [], ["2.1"])
    # Numbers count: a machine on which no release can have any is complete, and has nothing.
    lacks = measurement(CELL, None, Outcome(Status.UNSUPPORTED, "why"))
    machines["0"] = coverage.Measured({"2.0": [lacks], "2.1": [lacks]}, "cpu")
    (one,) = coverage.series({name: machines[name] for name in "0d"}, [CELL], releases)
    assert (one.machine, one.missing) == ("d", ["2.0"])
    (one,) = coverage.series(machines, [msgspec.structs.replace(CELL, batch_size=8)], releases)
    assert (one.machine, one.missing) == ("", releases)


def test_the_core_of_several_releases_counts_each_cell_on_its_own_machine() -> None:
    tuned = msgspec.structs.replace(CELL, mode="max-autotune")
    whole, other = (measurement(cell, WHOLE) for cell in (CELL, tuned))
    silent = measurement(tuned, msgspec.structs.replace(WHOLE, guards=None))
    failed = measurement(CELL, None, Outcome(Status.TIMEOUT, "why"))
    machines = {
        "a": coverage.Measured({"2.0": [whole], "2.1": [failed]}, "cpu"),
        # The cells of one machine do not fill a gap in the series of another one.
        "b": coverage.Measured({"2.0": [other], "2.1": [other], "2.2": [silent, whole]}, "cpu"),
    }
    releases = ["2.0", "2.1", "2.2"]
    by_release = coverage.by_release(coverage.series(machines, [CELL, tuned], releases), releases)
    assert by_release == {
        "2.0": coverage.Coverage(2, {}, [], []),
        "2.1": coverage.Coverage(1, {CELL: failed.outcome}, [], []),
        "2.2": coverage.Coverage(1, {}, [CELL], [f"{tuned}: guards"]),
    }


def test_the_command_counts_series_and_the_core_of_three_releases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results" / machine.detect().machine
    commits = ledger.commit_of()
    versions = [release.version for release in history.newest_patches(catalogue.read())]
    for version in versions:
        file = records.path(folder, commits[version], "env")
        file.parent.mkdir(parents=True, exist_ok=True)
        for cell in dict.fromkeys([*matrix.SERIES, *matrix.core_cells()]):
            records.append(file, measurement(cell, WHOLE, release=version, method=METHOD))
    done = CliRunner().invoke(app.app, ["coverage"])
    assert done.exit_code == 0, done.output
    planned = len(matrix.SERIES)
    counted = f"{len(versions)} releases: {planned} planned, {planned} complete, 0 failed"
    assert counted in done.output
    assert all(catalogue.find(name).version in done.output for name in matrix.CORE_OF)
    failed = measurement(matrix.SERIES[0], None, Outcome(Status.CRASH, "signal 11"), version)
    records.append(file, failed)
    done = CliRunner().invoke(app.app, ["coverage"])
    assert f"{planned - 1} complete, 1 failed in a release" in done.output
    assert f"{versions[-1]}: {matrix.SERIES[0]}: crash: signal 11" in done.output
    # Times of an older method do not count.
    records.append(file, measurement(matrix.SERIES[0], WHOLE, release=version))
    done = CliRunner().invoke(app.app, ["coverage"])
    assert f"{planned - 1} complete, 0 failed in a release, 1 lack a release" in done.output


def test_another_machine_s_whole_release_is_shown_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(machine.MACHINE_VARIABLE, "nobody")
    whole, partial = (records.path(tmp_path / "results" / name, "a" * 40, "env") for name in "ab")
    for cell in matrix.core_cells():
        records.append(whole, measurement(cell, WHOLE))
    new = measurement(matrix.core_cells()[0], WHOLE)
    launches = [msgspec.structs.replace(launch, method=METHOD) for launch in new.launches]
    records.append(partial, msgspec.structs.replace(new, launches=launches))
    done = CliRunner().invoke(app.app, ["coverage", "v2.9"])
    assert done.exit_code == 0, done.output
    assert "unexplained gaps: 0" in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("results of a: this machine (nobody) has none of v2.9.1; choose another")
    assert "--machine" in line
    # Times of an older method may favour eager, so that the report shows the other machine.
    done = CliRunner().invoke(app.app, ["report", "v2.9"])
    assert done.stderr.startswith("results of b: "), done.output

"""Records come back, and what is not a record is named and left out."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite.analysis import summaries
from torchcompile_suite.cell import Cell
from torchcompile_suite.measurement import OK, Launch, Measurement, Outcome, Status
from torchcompile_suite.results import records, sealing
from torchcompile_suite.results.parsing import decode

from . import examples
from .irregular import IRREGULAR

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def record_file(results: Path, machine: str = "box") -> Path:
    return records.path(results / machine, COMMIT, "virtualenv-py3.11")


def test_the_newest_measurement_of_a_cell_counts(tmp_path: Path) -> None:
    file = record_file(tmp_path)
    first, second = examples.measurement(scale=1.0), examples.measurement(scale=2.0)
    other = examples.measurement(mode="eager")
    for measurement in (first, other, second):
        records.append(file, measurement)
    content = records.read(tmp_path)
    assert content.problems == []
    assert {record.measurement.cell: record.measurement for record in content.records} == {
        second.cell: second,
        other.cell: other,
    }
    assert {(r.machine, r.commit, r.env_name) for r in content.records} == {
        ("box", COMMIT[:8], "virtualenv-py3.11")
    }
    assert records.newest(file, first.cell) == second
    assert records.newest(file, Cell("other", 1, "eager")) is None


def test_of_two_environments_the_later_measurement_is_the_last(tmp_path: Path) -> None:
    """Their names decide on the files, and not on what counts."""
    for name, year in (("py3.10", 2025), ("py3.11", 2024), ("try", 2026)):
        started_at = f"{year}-01-01T00:00:00+00:00"
        one = msgspec.structs.replace(examples.measurement(), started_at=started_at)
        records.append(records.path(tmp_path / "box", COMMIT, name), one)
    assert [one.env_name for one in records.read(tmp_path).records] == ["py3.11", "py3.10", "try"]


def test_asv_does_not_take_a_record_for_a_result(tmp_path: Path) -> None:
    from asv.results import iter_results_paths

    records.append(record_file(tmp_path), examples.measurement())
    (tmp_path / "box" / "machine.json").write_text('{"machine": "box", "version": 1}')
    assert list(iter_results_paths(str(tmp_path))) == []


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"{", "not a measurement"),
        (b"null", "not a measurement"),
        (b'{"schema": 99}', "newer version"),
        (b'{"schema": "1"}', "not a measurement"),
        (b"[" * 100_000, "not a measurement"),
        (b"\xff\xfe\x00", "not a measurement"),
        (b'{"schema": 1, "cell": NaN}', "not a measurement"),
    ],
)
def test_a_bad_line_is_named_and_the_rest_is_read(tmp_path: Path, line: bytes, text: str) -> None:
    file = record_file(tmp_path)
    records.append(file, examples.measurement(mode="eager"))
    with file.open("ab") as stream:
        stream.write(line + b"\n")
    records.append(file, examples.measurement(mode="default"))
    content = records.read(tmp_path)
    assert [record.measurement.cell.mode for record in content.records] == ["eager", "default"]
    (problem,) = content.problems
    assert text in problem.reason
    assert "\n" not in str(problem)
    assert problem.where == f"box/{file.name}:2"


def test_a_binary_file_is_one_problem_with_its_count(tmp_path: Path) -> None:
    file = record_file(tmp_path)
    records.append(file, examples.measurement())
    with file.open("ab") as stream:
        stream.write(b"\xff\x00\n" * 425 + b"\xff")
    content = records.read(tmp_path)
    assert len(content.records) == 1
    (problem,) = content.problems
    assert problem.where == f"box/{file.name}:2"
    assert problem.reason.startswith("not a measurement: ")
    assert problem.reason.endswith("(the first of 426 bad lines)")
    assert "\n" not in str(problem)


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("start", [1, 3, "99991231T000000", "yesterday"])
def test_what_begins_in_the_future_is_not_the_newest(
    tmp_path: Path, start: int | str, sealed: bool
) -> None:
    """And neither is what begins at no date. A clock may be wrong by a day."""
    counts = start == 1
    if isinstance(start, int):
        start = (datetime.now(timezone.utc) + timedelta(days=start)).isoformat()
    file = record_file(tmp_path)
    now, later = examples.measurement(), examples.measurement(scale=2.0)
    for one in (now, msgspec.structs.replace(later, started_at=start)):
        records.append(file, one)
    if sealed:
        sealing.seal(file.parent)
    for read in (records.read, summaries.read, summaries.read):
        content = read(tmp_path)
        ((_, _, _, found, _),) = content.records
        assert (found.started_at == start) is counts
        reasons = [problem.reason for problem in content.problems]
        assert reasons == (
            [] if counts else [f"its start is in the future, or no date: {start[:25]!a}"]
        )
    newest = records.newest(file, now.cell)
    assert newest is not None
    assert (newest.started_at == start) is counts


@pytest.mark.timeout(60)
@pytest.mark.parametrize("place", IRREGULAR)
def test_only_regular_files_are_read(tmp_path: Path, place: str) -> None:
    records.append(record_file(tmp_path), examples.measurement())
    odd = record_file(tmp_path, "odd")
    with IRREGULAR[place](odd):
        content = records.read(tmp_path)
        assert records.newest(odd, examples.measurement().cell) is None
        assert list(records.launches(odd.parent)) == []
    assert len(content.records) == 1
    (problem,) = content.problems
    assert str(problem) == f"odd/{odd.name}: cannot be read: not a regular file"


@pytest.mark.parametrize("pair", [[0, 0.001], [0.001, 0], [5e-324, 1]])
@pytest.mark.parametrize("outcome", ["ok", "crash"])
@pytest.mark.parametrize("target", ["", "cuda:sm90"])
def test_a_call_takes_time(pair: list[float], outcome: str, target: str) -> None:
    """Whatever became of the cell: figures are computed of what it measured before it failed."""
    line = msgspec.to_builtins(examples.measurement())
    line["outcome"] = {"status": outcome}
    line["cell"]["target"] = target
    line["launches"][0]["pairs_s"][0] = pair
    with pytest.raises(ValueError, match="a call takes no time"):
        decode(msgspec.json.encode(line))


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    try:
        assert isinstance(decode(data), Measurement)
    except ValueError:
        pass


@given(examples.measurements, st.data())
def test_a_measurement_with_one_wrong_field_never_raises_anything_else(
    measurement: Measurement, data: st.DataObject
) -> None:
    fields = msgspec.to_builtins(measurement)
    name = data.draw(st.sampled_from(sorted(fields)))
    fields[name] = data.draw(st.none() | st.booleans() | st.text(max_size=5) | st.lists(st.none()))
    try:
        decode(msgspec.json.encode(fields))
    except ValueError:
        pass


def test_a_failure_is_tried_again_and_a_number_is_not(tmp_path: Path) -> None:
    file = record_file(tmp_path)
    records.append(file, examples.measurement(outcome=Outcome(Status.CRASH, "killed")))
    crashed = records.newest(file, Cell("resnet18", 1, "default"))
    assert crashed is not None
    assert not crashed.outcome.settled
    records.append(file, examples.measurement())
    made = records.newest(file, Cell("resnet18", 1, "default"))
    assert made is not None
    assert made.outcome.settled


@pytest.mark.parametrize(
    "hollow",
    [
        {"launches": []},
        {"launches": [Launch("cold", OK)]},
        {"launches": [msgspec.structs.replace(examples.launch(), disturbed="disturbed")]},
    ],
)
def test_an_ok_without_timings_is_refused(hollow: dict[str, object]) -> None:
    measurement = msgspec.structs.replace(examples.measurement(), **hollow)
    with pytest.raises(ValueError, match="lacks launches or timings"):
        decode(msgspec.json.encode(measurement))


def test_a_failure_that_names_no_release_has_its_neighbours(tmp_path: Path) -> None:
    """A launch that was killed could not say which torch it ran; the file's others can."""
    file = record_file(tmp_path)
    killed = examples.measurement("vit", outcome=Outcome(Status.CRASH, "killed"))
    records.append(file, killed)
    assert [record.release for record in records.read(tmp_path).records] == [""]
    records.append(file, examples.measurement())
    assert [record.release for record in records.read(tmp_path).records] == ["2.9.1", "2.9.1"]

"""JSON between processes and machines is read back unchanged, or refused."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from torchcompile_suite.cell import Cell
from torchcompile_suite.compiled import Compiled, Profile
from torchcompile_suite.conditions import Overlay
from torchcompile_suite.measurement import OK, Accuracy, Launch, Measurement, Outcome, Status
from torchcompile_suite.request import Request

from .examples import measurements


@given(measurements)
def test_json_round_trip(measurement: Measurement) -> None:
    assert msgspec.json.decode(msgspec.json.encode(measurement), type=Measurement) == measurement


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"cell": {"workload": "x", "batch_size": 1, "mode": "m"}, "kind": "hot",'
        b' "cache_dir": ""}',
        b'{"cell": {"workload": "x", "batch_size": 0, "mode": "m"}, "kind": "cold",'
        b' "cache_dir": ""}',
        b'{"cell": {"workload": "../x", "batch_size": 1, "mode": "m"}, "kind": "cold",'
        b' "cache_dir": ""}',
        b'{"cell": {"workload": "x\\n", "batch_size": 1, "mode": "m"}, "kind": "cold",'
        b' "cache_dir": ""}',
        b'{"cell": {"workload": "x", "batch_size": 1, "mode": "m", "target": "cuda:sm90\\n"},'
        b' "kind": "cold", "cache_dir": ""}',
        b'{"cell": {"workload": "x", "batch_size": 1, "mode": "m"}, "kind": "cold",'
        b' "cache_dir": "", "schema": 99}',
        b'{"cell": {"workload": "x", "batch_size": 1, "mode": "m", "more": 1}, "kind": "cold",'
        b' "cache_dir": ""}',
        b'{"cell": {"workload": "x", "batch_size": 1, "mode": "m", "shapes": "odd"},'
        b' "kind": "cold", "cache_dir": ""}',
    ],
)
def test_a_bad_request_is_refused(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(data, type=Request)


def test_only_what_cannot_change_is_settled() -> None:
    settled = {status for status in Status if Outcome(status).settled}
    assert settled == {Status.OK, Status.UNSUPPORTED}
    missing = "libtcmalloc is not installed; on Debian: apt-get install libtcmalloc-minimal4"
    assert not Outcome(Status.UNSUPPORTED, missing).settled, "the user may install it"
    assert Outcome(OK.status, "install").settled


def test_an_outcome_reads_as_its_status_and_reason() -> None:
    assert str(Outcome(Status.CRASH, "killed by SIGKILL")) == "crash: killed by SIGKILL"
    assert f"{Outcome(Status.CRASH)}" == "crash"


def test_a_cells_name_mentions_only_the_differences() -> None:
    assert str(Cell("resnet18", 8, "default")) == "resnet18, batch 8, default"
    assert "bfloat16" in str(Cell("resnet18", 8, "default", dtype="bfloat16"))
    step = Cell("resnet18", 4, "eager", phase="training", accumulation=4, device="cuda")
    assert step.differs() == {"phase", "accumulation"}
    assert step.variant == "training, 4 micro-batches"


def test_each_axis_but_the_device_counts_as_a_difference() -> None:
    """Also an axis that is added later."""
    axes = {field.name for field in msgspec.structs.fields(Cell) if not field.required}
    changed = dict.fromkeys(axes, "bfloat16") | {"accumulation": 2}
    cell = Cell("resnet18", 1, "default", **changed)  # type: ignore[arg-type]
    assert cell.differs() == axes - {"device"}


def test_an_unknown_policy_is_refused_with_its_name() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"'odd'.*shapes"):
        msgspec.json.decode(
            b'{"workload": "x", "batch_size": 1, "mode": "m", "shapes": "odd"}', type=Cell
        )


def test_published_names_stay() -> None:
    """Attributes may have other names; results are read by the JSON names."""
    launch = Launch("cold", OK, calibration_s=1e-4, disturbed="by others")
    published = msgspec.to_builtins(launch)
    assert (published["yardstick_s"], published["set_aside"]) == (1e-4, "by others")
    assert msgspec.to_builtins(Overlay("2.9.1", "c", overlaid=["a.py"]))["laid"] == ["a.py"]
    assert msgspec.to_builtins(Profile(1, 2, 3, 0.1, 0.1, 0.1))["launches"] == 2
    assert msgspec.to_builtins(Compiled(launches=3))["launches"] == 3


def test_notes_of_all_launches_are_kept_once_and_old_records_have_none() -> None:
    accuracy = Accuracy("float64", None, None, 1e-4, ["one"], compared=False)
    launches = [Launch("cold", OK, accuracy=accuracy), Launch("warm", OK, accuracy=accuracy)]
    measurement = Measurement(Cell("x", 1, "eager"), OK, launches, "", 1.0)
    assert measurement.notes == ["one"]
    old = b'{"reference": "float64", "eager_error": 0.1, "mode_error": 0.1, "tolerance": 1.0}'
    assert msgspec.json.decode(old, type=Accuracy).notes == []

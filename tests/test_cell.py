"""What crosses processes and machines comes back as it was, or is refused."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from torchcompile_suite.cell import Cell, Measurement, Outcome, Request, Status

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
        b'{"cell": {"workload": "x", "batch_size": 1, "mode": "m"}, "kind": "cold",'
        b' "cache_dir": "", "schema": 99}',
        b'{"cell": {"workload": "x", "batch_size": 1, "mode": "m", "more": 1}, "kind": "cold",'
        b' "cache_dir": ""}',
    ],
)
def test_a_bad_request_is_refused(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(data, type=Request)


def test_only_what_cannot_change_is_settled() -> None:
    settled = {status for status in Status if Outcome(status).settled}
    assert settled == {Status.OK, Status.UNSUPPORTED}


def test_a_cells_name_mentions_only_what_is_special() -> None:
    assert str(Cell("resnet18", 8, "default")) == "resnet18, batch 8, default"
    assert "bfloat16" in str(Cell("resnet18", 8, "default", dtype="bfloat16"))

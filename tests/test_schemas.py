"""The schemas are those of the types, and what is published conforms to them.

Each test of a command's JSON validates it, too (`schemas.validated`).
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from docs.schemas import write
from hypothesis import given
from jsonschema import Draft202012Validator, ValidationError

from torchcompile_suite import targets
from torchcompile_suite.cli.app import app
from torchcompile_suite.measurement import Measurement, Outcome, Status
from torchcompile_suite.trial.generated import GeneratedResult, as_json
from torchcompile_suite.trial.plan import Trial

from . import examples
from .conftest import ROOT
from .examples import measurements
from .schemas import FOLDER, validated

# The largest segment of each release of each machine.
SEGMENTS = sorted(
    max(folder.glob("*.jsonl.xz"), key=lambda file: file.stat().st_size)
    for folder in (ROOT / "results").glob("*/*.*.*")
    if folder.is_dir()  # a run of ASV leaves files beside them
)


def test_the_committed_schemas_are_those_of_the_types() -> None:
    committed = {file.stem: json.loads(file.read_bytes()) for file in FOLDER.glob("*.json")}
    assert committed == write.schemas(), "run: python docs/schemas/write.py"


@pytest.mark.parametrize("name", [*write.OUTPUTS, *write.RECORDS])
def test_a_schema_is_valid_and_listed(name: str) -> None:
    schema = json.loads((FOLDER / f"{name}.json").read_bytes())
    Draft202012Validator.check_schema(schema)
    assert r"\\Z" not in json.dumps(schema), "Python's own"
    assert f"({name}.json)" in (FOLDER / "README.md").read_text()


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("report", "report v2.15 --format json"),
        ("report-releases", "report v2.4 v2.15 --format json"),
        ("answers", "answers --format json"),
        ("claims", "claims --json"),
    ],
)
def test_an_answer_from_the_published_results_conforms(
    monkeypatch: pytest.MonkeyPatch, name: str, command: str
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("TORCHCOMPILE_SUITE_MACHINE", "nobody")
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 0, done.stderr
    assert len(validated(name, done.stdout)) > 1


@pytest.mark.parametrize("file", SEGMENTS, ids=lambda file: "/".join(file.parts[-3:-1]))
def test_a_published_segment_conforms(file: Path) -> None:
    header, *measured = lzma.decompress(file.read_bytes()).splitlines()
    validated("segment-header", header)
    for measurement in measured[::10]:
        validated("measurement", measurement)


@given(measurements)
def test_what_is_stored_conforms(measurement: Measurement) -> None:
    validated("measurement", msgspec.json.encode(measurement))


def test_what_a_target_would_get_conforms() -> None:
    one, failed = examples.generated(), examples.generated(outcome=Outcome(Status.CRASH, "torn"))
    cells = (one.cell, msgspec.structs.replace(failed.cell, mode="reduce-overhead"))
    launches = dict(zip(cells, (one.launches[0], failed.launches[0]), strict=True))
    result = GeneratedResult(targets.get(examples.SM90), "2.15.0", launches)
    content = validated("try-target", as_json(Trial("resnet18"), result))
    assert [each["counts"] is None for each in content["cells"]] == [False, True]


@pytest.mark.usefixtures("brief_doctor")
def test_the_doctor_conforms() -> None:
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert {"torch", "memory"} <= {each["name"] for each in validated("doctor", done.stdout)}


def test_another_value_does_not_conform() -> None:
    with pytest.raises(ValidationError):
        validated("doctor", b'[{"name": "torch", "level": "fine", "says": "", "remedy": ""}]')
    with pytest.raises(ValidationError):
        validated("claims", b"[{}]")

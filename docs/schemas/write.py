"""Writes the JSON Schemas of this folder from the types that the suite encodes and decodes.

``python docs/schemas/write.py``, after a change of such a type. A test compares them.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import msgspec

from torchcompile_suite.analysis.summary import Row
from torchcompile_suite.cli.bisect import Bisected
from torchcompile_suite.doctor import Check
from torchcompile_suite.measurement import Measurement
from torchcompile_suite.presentation import documents
from torchcompile_suite.presentation.why import Explained
from torchcompile_suite.results.segments import Header
from torchcompile_suite.trial.generated import TriedTarget
from torchcompile_suite.trial.view import Tried

HERE = Path(__file__).parent
# What a command writes, by the name of its schema.
OUTPUTS: dict[str, Any] = {
    "answers": list[documents.AnsweredQuestion],
    "bisect": Bisected,
    "claims": list[documents.JudgedClaim],
    "doctor": list[Check],
    "report": list[Row],
    "report-releases": documents.ComparedReleases,
    "report-targets": documents.ComparedTargets,
    "try": Tried,
    "try-target": TriedTarget,
    "why": Explained,
}
# What is stored, and read again.
RECORDS: dict[str, Any] = {"segment-header": Header, "measurement": Measurement}


def schemas() -> dict[str, Any]:
    """Each schema by its name."""
    written = {name: _adapted(msgspec.json.schema(of), True) for name, of in OUTPUTS.items()}
    stored = {name: _adapted(msgspec.json.schema(of), False) for name, of in RECORDS.items()}
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {name: dialect | of for name, of in (written | stored).items()}


def _adapted(schema: Any, output: bool) -> Any:
    """The schema for readers in any language.

    Python's ``\\Z`` is ``$`` in JSON Schema. In an ``output``, a number that is NaN or infinite is
    written as null; a record has no such number. Only msgspec 0.23 and newer name the keys of a
    mapping: the schemas are the same with each version.
    """
    if isinstance(schema, list):
        return [_adapted(one, output) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if output and schema == {"type": "number"}:
        return {"type": ["number", "null"]}
    made = {key: _adapted(value, output) for key, value in schema.items() if key != "propertyNames"}
    if isinstance(pattern := made.get("pattern"), str):
        made["pattern"] = pattern.replace(r"\Z", "$")
    if isinstance(text := made.get("description"), str):
        made["description"] = inspect.cleandoc(text)
    return made


if __name__ == "__main__":
    for name, schema in schemas().items():
        (HERE / f"{name}.json").write_text(json.dumps(schema, indent=1) + "\n")

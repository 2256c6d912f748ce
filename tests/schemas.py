"""The published schemas (docs/schemas), for the tests of what commands write."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator

from .conftest import ROOT

FOLDER = ROOT / "docs" / "schemas"


def validated(name: str, content: str | bytes) -> Any:
    """The JSON value, which the schema of that name allows. Raises ValidationError."""
    value = json.loads(content)
    schema = json.loads((FOLDER / f"{name}.json").read_bytes())
    Draft202012Validator(schema).validate(value)
    return value

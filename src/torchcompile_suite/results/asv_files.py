"""Which of ASV's result files can be published: ASV itself stops at the first broken one.

Results are merged from machines and people we do not know, so each file is checked before ASV sees
it, and what is broken, truncated or foreign is named and left out.
"""

from __future__ import annotations

import json
from collections.abc import Container
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from .records import Problem

# Far beyond any time, count or size, and ASV stops at what overflows.
LARGEST = 1e30
Name = Annotated[str, msgspec.Meta(max_length=500)]
Numbers = list[float | None] | float | None


class _Machine(msgspec.Struct):
    """``machine.json``: the fields are graph parameters, hence text."""

    machine: Name
    version: Literal[1]


class _Result(msgspec.Struct):
    """What ASV 0.6 writes for a machine, commit and environment."""

    commit_hash: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40}$")]
    date: int
    env_name: Name
    params: dict[Name, Name | None]
    python: Name
    requirements: dict[Name, Any]
    result_columns: list[Name]
    results: dict[Name, list[Any]]
    version: Literal[2]
    env_vars: dict[Name, Name] = {}
    durations: dict[Name, Any] = {}


# The columns of a benchmark's line, by name; ASV leaves out those at the end that are empty.
_COLUMNS: dict[str, Any] = {
    "result": Numbers,
    "params": list[list[Name]] | None,
    "version": Name | None,
    "started_at": int | None,
    "duration": float | None,
    "samples": list[list[float] | None] | None,
    "profile": Any,
}


def sound(results: Path, commits: Container[str] | None) -> tuple[set[Path], list[Problem]]:
    """The files under ``results`` that ASV can publish, and what is wrong with the others.

    ``commits`` are those of the ledger, beside which ASV knows no other; None where ASV looks for
    each itself.
    """
    good: set[Path] = set()
    problems: list[Problem] = []
    for file in sorted(results.glob("*/machine.json")):
        try:
            machine = _machine(file)
        except ValueError as error:
            problems.append(Problem(f"{file.parent.name}/machine.json", str(error)))
            continue
        good.add(file)
        for result in sorted(file.parent.glob("*.json")):
            if result == file:
                continue
            try:
                _check(result, machine, commits)
                good.add(result)
            except ValueError as error:
                problems.append(Problem(f"{file.parent.name}/{result.name}", str(error)))
    return good, problems


def _machine(file: Path) -> str:
    content = _read(file)
    machine = msgspec.convert(content, _Machine).machine
    if machine != file.parent.name:
        raise ValueError(f"it is of machine {machine!r}, not of its folder's")
    for key, value in content.items():
        if key != "version" and not isinstance(value, str):
            raise ValueError(f"{key} must be text")
    return machine


def _check(file: Path, machine: str, commits: Container[str] | None) -> None:
    """Raises ValueError, in one line, where ASV could not publish the file."""
    content = msgspec.convert(_read(file), _Result)
    if content.params.get("machine") != machine:
        raise ValueError(f"it is of machine {content.params.get('machine')!r}")
    if commits is not None and content.commit_hash not in commits:
        raise ValueError(f"commit {content.commit_hash[:8]} is none of the ledger's")
    for name, line in content.results.items():
        for column, value in zip(content.result_columns, line, strict=False):
            if column.startswith("stats_"):
                shape: Any = Numbers
            elif column in _COLUMNS:
                shape = _COLUMNS[column]
            else:
                raise ValueError(f"unknown column {column!r}")
            try:
                msgspec.convert(value, shape)
            except msgspec.ValidationError as error:
                raise ValueError(f"{name}: {column}: {error}") from None
            if column == "result":
                for number in value if isinstance(value, list) else [value]:
                    if number is not None and abs(number) > LARGEST:
                        raise ValueError(f"{name}: {number} is nothing that was measured")


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_bytes())
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError("no JSON object")
    version = content.get("version")
    if isinstance(version, int) and version > 2:
        raise ValueError(f"written by a newer ASV (version {version})")
    return content

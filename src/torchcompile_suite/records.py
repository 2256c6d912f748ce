"""The raw record of every measurement, beside ASV's own results.

``results/<machine>/<commit>-<environment>.records.jsonl``: one JSON line a measurement, appended.
ASV reads only ``*.json``, so its commands ignore these, and copying results/ copies everything.
The last line of a cell counts; the earlier ones are its history.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from .cell import SCHEMA, Cell, Measurement
from .files import append_line

SUFFIX = ".records.jsonl"
# A measurement takes some ten kilobytes; a line beyond this was not written by us.
LONGEST_LINE = 4 << 20


class Record(NamedTuple):
    """A measurement and where it was found: machine, ledger commit (8 digits), environment."""

    machine: str
    commit: str
    env_name: str
    measurement: Measurement


class Problem(NamedTuple):
    """A line that could not be read: which, and why, in one line."""

    where: str
    reason: str

    def __str__(self) -> str:
        """For the terminal."""
        return f"{self.where}: {self.reason}"


class Records(NamedTuple):
    """Everything readable under results/, and what was not."""

    records: list[Record]
    problems: list[Problem]


def path(machine_folder: Path, commit: str, env_name: str) -> Path:
    """The record file beside ASV's result of that commit and environment."""
    return machine_folder / f"{commit[:8]}-{env_name}{SUFFIX}"


def append(file: Path, measurement: Measurement) -> None:
    """Add a measurement to its file, whole or not at all. Raises OSError."""
    append_line(file, msgspec.json.encode(measurement))


def newest(file: Path, cell: Cell) -> Measurement | None:
    """The last readable measurement of the cell in one file, or None."""
    found = None
    for _, measurement in _lines(file, []):
        if measurement.cell == cell:
            found = measurement
    return found


def read(results: Path) -> Records:
    """The newest measurement of each machine, commit, environment and cell under ``results``.

    Unreadable lines are left out and named in ``problems``; they never stop the rest.
    """
    newest: dict[tuple[str, str, str, Cell], Record] = {}
    problems: list[Problem] = []
    for file in sorted(results.glob(f"*/*{SUFFIX}")):
        commit, _, env_name = file.name.removesuffix(SUFFIX).partition("-")
        machine = file.parent.name
        for _, measurement in _lines(file, problems):
            key = (machine, commit, env_name, measurement.cell)
            newest[key] = Record(machine, commit, env_name, measurement)
    return Records(list(newest.values()), problems)


def _lines(file: Path, problems: list[Problem]) -> Iterator[tuple[int, Measurement]]:
    where = f"{file.parent.name}/{file.name}"
    try:
        stream = file.open("rb")
    except FileNotFoundError:
        return
    except OSError as error:
        problems.append(Problem(where, f"cannot be read: {error.strerror}"))
        return
    with stream:
        number = 0
        while line := stream.readline(LONGEST_LINE):
            number += 1
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                problems.append(Problem(f"{where}:{number}", "longer than any measurement"))
                return
            if not line.strip():
                continue
            try:
                yield number, decode(line)
            except ValueError as error:
                problems.append(Problem(f"{where}:{number}", str(error)))


class _Schema(msgspec.Struct):
    schema: int = 0


def decode(line: bytes) -> Measurement:
    """One line as a measurement. ValueError says in one line what is wrong with it."""
    try:
        schema = msgspec.json.decode(line, type=_Schema).schema
        if schema > SCHEMA:
            raise ValueError(
                f"written by a newer version of the suite (schema {schema}, this one reads up to "
                f"{SCHEMA}); update torchcompile-suite"
            )
        return msgspec.json.decode(line, type=Measurement)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"not a measurement: {error}") from None

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

from ..cell import SCHEMA, Cell, Launch, Measurement
from ..host.files import append_line

SUFFIX = ".records.jsonl"
# A measurement takes some ten kilobytes; a line beyond this was not written by us.
LONGEST_LINE = 4 << 20


class Record(NamedTuple):
    """A measurement and where it was found: machine, ledger commit (8 digits), environment.

    ``release`` is the version of torch, without its build. Where the measurement ended before it
    could say it, it is that of the others in the same file; empty where none says it.
    """

    machine: str
    commit: str
    env_name: str
    measurement: Measurement
    release: str = ""


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
    return next(reversed(history(file, cell)), None)


def history(file: Path, cell: Cell) -> list[Measurement]:
    """Every readable measurement of the cell in one file, oldest first."""
    return [measurement for _, measurement in _lines(file, []) if measurement.cell == cell]


def launches(machine_folder: Path) -> Iterator[Launch]:
    """Every launch of a machine that can be read."""
    return (
        launch
        for file in machine_folder.glob(f"*{SUFFIX}")
        for _, measurement in _lines(file, [])
        for launch in measurement.launches
    )


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
    found = list(newest.values())
    versions = {
        (each.machine, each.commit, each.env_name): version
        for each in found
        if (version := _release(each.measurement))
    }
    return Records(
        [
            each._replace(
                release=_release(each.measurement)
                or versions.get((each.machine, each.commit, each.env_name), "")
            )
            for each in found
        ],
        problems,
    )


def _release(measurement: Measurement) -> str:
    environment = measurement.environment
    return environment.torch.partition("+")[0] if environment else ""


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
        measurement = msgspec.json.decode(line, type=Measurement)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"not a measurement: {error}") from None
    if measurement.outcome.ok and not _whole(measurement):
        raise ValueError("not a measurement: it claims to be ok and lacks launches or timings")
    return measurement


def _whole(measurement: Measurement) -> bool:
    """Whether there is what every figure is made from: launches that count, with times above 0."""
    launches = measurement.launches
    return any(not launch.disturbed for launch in launches) and all(
        launch.pairs_s and launch.warm_up_s and min(map(min, launch.pairs_s)) > 0
        for launch in launches
    )

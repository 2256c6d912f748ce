"""The raw record of every measurement, beside ASV's own results.

``results/<machine>/<commit>-<environment>.records.jsonl`` has one line of JSON for a measurement.
New lines are appended. ASV reads only ``*.json``, so its commands ignore the records, and a copy of
results/ has everything. The last line of a cell counts. Its earlier lines are its history.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from ..cell import SCHEMA, Cell, Launch, Measurement
from ..host.files import append_line
from . import regular

SUFFIX = ".records.jsonl"
# A measurement takes about ten kilobytes. The suite never writes a longer line than this.
LONGEST_LINE = 4 << 20


class Record(NamedTuple):
    """A measurement and its place: machine, ledger commit (8 digits), environment.

    ``release`` is the version of torch, without its build. A measurement that ended too early to
    know its torch has the release of the other measurements in the same file. ``release`` is empty
    where no measurement of the file knows it.
    """

    machine: str
    commit: str
    env_name: str
    measurement: Measurement
    release: str = ""


class Problem(NamedTuple):
    """A file or line that could not be read, and the reason, in one line of text."""

    where: str
    reason: str

    def __str__(self) -> str:
        """For the terminal."""
        return f"{self.where}: {self.reason}"


class Records(NamedTuple):
    """Every readable record under results/, and the problems with the others."""

    records: list[Record]
    problems: list[Problem]


def path(machine_folder: Path, commit: str, env_name: str) -> Path:
    """The record file beside ASV's result file of that commit and environment."""
    return machine_folder / f"{commit[:8]}-{env_name}{SUFFIX}"


def append(file: Path, measurement: Measurement) -> None:
    """Add a measurement to its file, completely or not at all. Raises OSError."""
    append_line(file, msgspec.json.encode(measurement))


def newest(file: Path, cell: Cell) -> Measurement | None:
    """The last readable measurement of the cell in one file, or None."""
    return next(reversed(history(file, cell)), None)


def history(file: Path, cell: Cell) -> list[Measurement]:
    """Every readable measurement of the cell in one file, oldest first."""
    return [measurement for measurement in _lines(file, []) if measurement.cell == cell]


def launches(machine_folder: Path) -> Iterator[Launch]:
    """Every readable launch of a machine."""
    return (
        launch
        for file in machine_folder.glob(f"*{SUFFIX}")
        for measurement in _lines(file, [])
        for launch in measurement.launches
    )


def read(results: Path) -> Records:
    """The newest measurement of each machine, commit, environment and cell under ``results``.

    Unreadable lines are left out and named in ``problems``. They never stop the rest.
    """
    newest: dict[tuple[str, str, str, Cell], Record] = {}
    problems: list[Problem] = []
    for file in sorted(results.glob(f"*/*{SUFFIX}")):
        commit, _, env_name = file.name.removesuffix(SUFFIX).partition("-")
        machine = file.parent.name
        for measurement in _lines(file, problems):
            key = (machine, commit, env_name, measurement.cell)
            newest[key] = Record(machine, commit, env_name, measurement)
    records = list(newest.values())
    versions = {
        record[:3]: version for record in records if (version := _release(record.measurement))
    }
    return Records(
        [
            record._replace(release=_release(record.measurement) or versions.get(record[:3], ""))
            for record in records
        ],
        problems,
    )


def _release(measurement: Measurement) -> str:
    environment = measurement.environment
    return environment.torch.partition("+")[0] if environment else ""


def _lines(file: Path, problems: list[Problem]) -> Iterator[Measurement]:
    """The measurements of one file. Its bad lines together add one problem."""
    where = f"{file.parent.name}/{file.name}"
    bad: list[Problem] = []
    try:
        with regular.open_binary(file) as stream:
            yield from _decoded(stream, where, bad)
    except FileNotFoundError:
        return
    except OSError as error:
        problems.append(Problem(where, f"cannot be read: {error.strerror}"))
    if bad:
        more = f" (the first of {len(bad)} bad lines)" if len(bad) > 1 else ""
        problems.append(Problem(bad[0].where, bad[0].reason + more))


def _decoded(stream: BinaryIO, where: str, bad: list[Problem]) -> Iterator[Measurement]:
    number = 0
    while line := stream.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            bad.append(Problem(f"{where}:{number}", "longer than any measurement"))
            return
        if not line.strip():
            continue
        try:
            yield decode(line)
        except ValueError as error:
            bad.append(Problem(f"{where}:{number}", str(error)))


class _Schema(msgspec.Struct):
    schema: int = 0


def decode(line: bytes) -> Measurement:
    """The measurement of one line. Raises ValueError with a message of one line."""
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
        raise ValueError("not a measurement: its outcome is ok, but it lacks launches or timings")
    return measurement


def _whole(measurement: Measurement) -> bool:
    """Whether every figure can be computed: some launch counts, and all times are above 0."""
    launches = measurement.launches
    return any(not launch.disturbed for launch in launches) and all(
        launch.pairs_s and launch.warm_up_s and min(map(min, launch.pairs_s)) > 0
        for launch in launches
    )

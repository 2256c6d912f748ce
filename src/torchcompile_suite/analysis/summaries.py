"""Summaries: measurements without their samples, made once for each segment.

A summary is a `Measurement` whose launches are `CondensedLaunch`: everything that reports and
comparisons need, at a tenth of the size. All figures are those of the whole measurement, to the
last bit, because the same functions have computed them. It is kept in the user's cache folder
(`results.cached`), by the segment, the code that made it and the schema of the records. So a report
reads whole only what is new.

Only the lists of samples are missing: whoever draws single calls needs `results.records.read`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from ..cell import Environment, Launch, Measurement
from ..results import cached, records, segments
from ..results.cached import Made
from ..results.records import Entry, Piece, Problem, Record, Records
from ..results.segments import Header
from . import statistics
from .statistics import CondensedLaunch


class _Held(NamedTuple):
    """Which environment of the segment's a launch has, and the load that differs in it."""

    launch: int
    environment: int
    load_1min: float


class _Entry(Struct):
    """An `Entry`, with its launches apart, because they are condensed.

    ``held``: None without an environment.
    """

    entry: Entry
    launches: list[CondensedLaunch]
    held: _Held | None

    def whole(self, environments: Sequence[Environment]) -> Entry:
        launches: list[Launch] = [*self.launches]
        if self.held is not None:
            number, place, load_1min = self.held
            # The packages stay shared.
            environment = msgspec.structs.replace(environments[place], load_1min=load_1min)
            launches[number] = msgspec.structs.replace(launches[number], environment=environment)
        measurement = msgspec.structs.replace(self.entry.measurement, launches=launches)
        return self.entry._replace(measurement=measurement)


class _Summary(Struct):
    """What is kept of a segment.

    Nearly all measurements of a segment have one environment but for the load of the machine. With
    its packages it would take most of the memory and of the time, if each of them had its own.
    """

    header: Header
    environments: list[Environment]
    entries: list[_Entry]


def read(results: Path) -> Records:
    """`records.read`, with condensed measurements."""
    return _of_journals_too(records.read_with(results, _read))


def read_files(found: Iterable[Path], problems: list[Problem]) -> Iterator[Piece]:
    """`records.read_files`, with condensed measurements from segments."""
    return records.read_files(found, problems, _read)


def read_machine(folder: Path) -> Records:
    """`records.read_machine`, with condensed measurements."""
    return _of_journals_too(records.read_machine(folder, _read))


def read_generated(results: Path) -> list[Record]:
    """The records of cells with a target, of all machines.

    Segments that have none are known by the cache, so that this takes little even where the results
    of many machines take long to read.
    """
    return list(records.read_with(results, _read_generated).generated)


def _of_journals_too(found: Records) -> Records:
    """The records, all condensed: only segments have a summary."""
    timed = [one._replace(measurement=condensed(one.measurement)) for one in found.records]
    return found._replace(records=timed)


def condensed(measurement: Measurement) -> Measurement:
    """The measurement without its samples; one that is condensed already stays as it is."""
    environment = measurement.environment
    launches: list[Launch] = []
    for launch in measurement.launches:
        # All launches share the environment. In each of them it would be most of the summary.
        shared = None if environment is None or launch.environment is None else environment
        launches.append(_condensed(launch, shared))
        environment = None if shared is not None else environment
    return msgspec.structs.replace(measurement, launches=launches)


def _condensed(launch: Launch, environment: Environment | None) -> CondensedLaunch:
    if isinstance(launch, CondensedLaunch):
        return launch
    fields = msgspec.structs.asdict(launch)
    fields |= {"environment": environment, "pairs_s": [], "latency_s": [], "warm_up_s": []}
    figures = statistics.figures(launch) if launch.pairs_s and launch.warm_up_s else None
    return CondensedLaunch(**fields, figures=figures)


def _read(file: Path, problems: list[Problem]) -> Piece:
    """A segment's measurements, condensed; see `records.SegmentReader`."""
    data = cached.get("summaries", _key(file), partial(_make, file, problems))
    summary = msgspec.msgpack.decode(data, type=_Summary)
    header = summary.header
    segments.check_place(file, header)
    entries = [entry.whole(summary.environments) for entry in summary.entries]
    return Piece(file, header.commit, header.env_name, entries)


def _read_generated(file: Path, problems: list[Problem]) -> Piece:
    """As `_read`; nothing of a segment without a cell that has a target."""

    def make() -> Made:
        bad: list[Problem] = []
        piece = _read(file, bad)
        has = any(entry.measurement.cell.target for entry in piece.entries)
        return Made(b"1" if has else b"0", keep=not bad)

    if cached.get("targets", _key(file), make) != b"0":
        return _read(file, problems)
    return Piece(file, "", "", [])


def _key(file: Path) -> tuple[str, ...]:
    return file.name, str(file.lstat().st_size)


def _make(file: Path, problems: list[Problem]) -> Made:
    """The summary of a segment. One with bad lines is not kept, so that they are named again."""
    bad: list[Problem] = []
    piece = records.read_segment(file, bad)
    problems += bad
    known: dict[bytes, int] = {}
    environments: list[Environment] = []

    def place(environment: Environment) -> int:
        same = msgspec.structs.replace(environment, load_1min=0.0)
        number = known.setdefault(msgspec.msgpack.encode(same), len(environments))
        if number == len(environments):
            environments.append(same)
        return number

    entries = [_entry(entry, place) for entry in piece.entries]
    summary = _Summary(segments.header(file), environments, entries)
    return Made(msgspec.msgpack.encode(summary), keep=not bad)


def _entry(entry: Entry, place: Callable[[Environment], int]) -> _Entry:
    """``place`` tells where the segment has an environment."""
    measurement = condensed(entry.measurement)
    launches = [one for one in measurement.launches if isinstance(one, CondensedLaunch)]
    # `condensed` leaves it in one launch at most.
    held = None
    for number, launch in enumerate(launches):
        if launch.environment is not None:
            held = _Held(number, place(launch.environment), launch.environment.load_1min)
            launches[number] = msgspec.structs.replace(launch, environment=None)
    bare = msgspec.structs.replace(measurement, launches=[])
    return _Entry(entry._replace(measurement=bare), launches, held)

"""Summaries: measurements without their samples, made once for each segment.

A summary is a `Measurement` whose launches are `CondensedLaunch`: everything that reports and
comparisons need, at a tenth of the size. All figures are those of the whole measurement, to the
last bit, because the same functions have computed them. It is kept in the user's cache folder
(`results.cached`), by the segment, the code that made it and the schema of the records. So a report
reads whole only what is new.

Only the lists of samples are missing: whoever draws single calls needs `results.records.read`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from .. import cell as vocabulary
from ..cell import (
    SCHEMA,
    Cell,
    Environment,
    Launch,
    Measurement,
    Outcome,
    Schema,
    Seconds,
    Stopped,
)
from ..results import cached, records, segments
from ..results.cached import Made
from ..results.records import Entry, Piece, Problem, Record, Records
from ..results.segments import Header
from . import statistics
from .statistics import CondensedLaunch

_SOURCES = (Path(vocabulary.__file__), Path(__file__), Path(statistics.__file__).parent)


class _Entry(Struct):
    """An `Entry` with the fields of its condensed measurement."""

    position: int
    identity: str
    cell: Cell
    outcome: Outcome
    launches: list[CondensedLaunch]
    started_at: str
    duration_s: Seconds
    stopped: Stopped
    schema: Schema

    def entry(self) -> Entry:
        launches: list[Launch] = [*self.launches]
        measurement = Measurement(
            self.cell,
            self.outcome,
            launches,
            self.started_at,
            self.duration_s,
            self.stopped,
            self.schema,
        )
        return Entry(self.position, self.identity, measurement)


class _Summary(Struct):
    """What is kept of a segment."""

    header: Header
    entries: list[_Entry]


def read(results: Path) -> Records:
    """`records.read`, with condensed measurements."""
    found = records.read_with(results, _read)
    return Records(_of_journals_too(found.records), found.problems)


def read_files(found: Iterable[Path], problems: list[Problem]) -> Iterator[Piece]:
    """`records.read_files`, with condensed measurements from segments."""
    return records.read_files(found, problems, _read)


def read_machine(folder: Path, problems: list[Problem]) -> list[Record]:
    """`records.read_machine`, with condensed measurements."""
    return _of_journals_too(records.read_machine(folder, _read, problems))


def _of_journals_too(found: list[Record]) -> list[Record]:
    """The records, all condensed: only segments have a summary."""
    return [record._replace(measurement=condensed(record.measurement)) for record in found]


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
    fields = {name: getattr(launch, name) for name in Launch.__struct_fields__}
    fields |= {"environment": environment, "pairs_s": [], "warm_up_s": []}
    figures = statistics.figures(launch) if launch.pairs_s and launch.warm_up_s else None
    return CondensedLaunch(**fields, figures=figures)


def _read(file: Path, problems: list[Problem]) -> Piece:
    """A segment's measurements, condensed; see `records.SegmentReader`."""
    key = (file.name, str(file.lstat().st_size), cached.version(*_SOURCES), str(SCHEMA))
    data = cached.get("summaries", key, partial(_make, file, problems))
    try:
        summary = msgspec.msgpack.decode(data, type=_Summary)
    except msgspec.DecodeError:  # a damaged cache
        summary = msgspec.msgpack.decode(_make(file, problems).content, type=_Summary)
    header = summary.header
    segments.check_place(file, header)
    entries = [entry.entry() for entry in summary.entries]
    return Piece(file, header.commit, header.env_name, entries)


def _make(file: Path, problems: list[Problem]) -> Made:
    """The summary of a segment. One with bad lines is not kept, so that they are named again."""
    bad: list[Problem] = []
    piece = records.read_segment(file, bad)
    problems += bad
    entries = [_entry(entry) for entry in piece.entries]
    summary = _Summary(segments.header(file), entries)
    return Made(msgspec.msgpack.encode(summary), keep=not bad)


def _entry(entry: Entry) -> _Entry:
    measurement = condensed(entry.measurement)
    return _Entry(
        entry.position,
        entry.identity,
        measurement.cell,
        measurement.outcome,
        [one for one in measurement.launches if isinstance(one, CondensedLaunch)],
        measurement.started_at,
        measurement.duration_s,
        measurement.stopped,
        measurement.schema,
    )

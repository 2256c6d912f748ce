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

import msgspec
from msgspec import Struct

from ..cell import Cell
from ..conditions import Environment
from ..measurement import Launch, Measurement
from ..results import cached, parsing, records, segments
from ..results.cached import Made
from ..results.parsing import Entry, Problem, Read, SegmentReader
from ..results.records import Record, Records
from ..results.segments import Header
from . import statistics
from .statistics import CondensedLaunch

# Flags of `_kinds`.
_GENERATED, _DIVIDED = b"g", b"d"


class _Entry(Struct):
    """An `Entry`, with its launches apart, because they are condensed.

    ``held``: which launch has an environment, which one of the segment's, and the load that differs
    in it; None without an environment.
    """

    entry: Entry
    launches: list[CondensedLaunch]
    held: tuple[int, int, float] | None

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
    problems: list[Problem]


def read(results: Path) -> Records:
    """`records.read`, with condensed measurements."""
    return _of_journals_too(records.read(results, _read))


def read_files(found: Iterable[Path]) -> Iterator[Read[list[Entry]]]:
    """`parsing.read_files`, with condensed measurements from segments."""
    return parsing.read_files(found, _read)


def read_machine(folder: Path) -> Records:
    """`records.read_machine`, with condensed measurements."""
    return _of_journals_too(records.read_machine(folder, _read))


def read_generated(results: Path) -> list[Record]:
    """The records of cells with a target, of all machines.

    Segments that have none are known by the cache, so that this takes little even where the results
    of many machines take long to read.
    """
    return records.read(results, partial(_having, _GENERATED, _read)).generated


def read_divided(folder: Path) -> list[Record]:
    """The records of a machine's cells whose calls were divided, whole; the newest one last."""
    return records.read_machine(folder, partial(_having, _DIVIDED, parsing.read_segment)).divided


def divided_by_place(
    found: Iterable[Record], point: Callable[[Record], str | None] = lambda record: record.release
) -> dict[tuple[str, str, Cell], Record]:
    """Records of divided calls by machine, point and plain cell; of several the last one.

    ``point``: that of a record, if it has one; its release by default.
    """
    return {
        (one.machine, at, msgspec.structs.replace(one.measurement.cell, protocol="right")): one
        for one in found
        if (at := point(one))
    }


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
        launches.append(_condensed(launch, environment if launch.environment else None))
        environment = None if launch.environment else environment
    return msgspec.structs.replace(measurement, launches=launches)


def _condensed(launch: Launch, environment: Environment | None) -> CondensedLaunch:
    if isinstance(launch, CondensedLaunch):
        return launch
    fields = msgspec.structs.asdict(launch)
    fields |= {"environment": environment, "pairs_s": [], "latency_s": [], "warm_up_s": []}
    fields["attribution"] = launch.attribution and launch.attribution.condensed()
    if (shares := launch.interference) is not None and shares.host is not None:
        host = msgspec.structs.replace(shares.host, handoff_ns=[statistics.handoff_ns(launch)])
        fields["interference"] = msgspec.structs.replace(shares, host=host)
    figures = statistics.figures(launch) if launch.pairs_s and launch.warm_up_s else None
    return CondensedLaunch(**fields, figures=figures)


def _read(file: Path) -> Read[list[Entry]]:
    """A segment's measurements, condensed; see `parsing.SegmentReader`."""
    data = cached.get("summaries", [records.identity(file)], partial(_make, file))
    summary = msgspec.msgpack.decode(data, type=_Summary)
    segments.check_place(file, summary.header)
    return [entry.whole(summary.environments) for entry in summary.entries], summary.problems


def _having(kind: bytes, reader: SegmentReader, file: Path) -> Read[list[Entry]]:
    """What the reader finds in a segment; nothing in one that has no cell of the kind."""
    return reader(file) if kind in _kinds(file) else ([], [])


def _kinds(file: Path) -> bytes:
    """Which of the cells that few readers want a segment has."""

    def make() -> Made:
        cells = [entry.measurement.cell for entry in _read(file)[0]]
        kinds = (
            _GENERATED if any(cell.target for cell in cells) else b"",
            _DIVIDED if any(cell.divided for cell in cells) else b"",
        )
        return Made(b"".join(kinds))

    return cached.get("kinds", [records.identity(file)], make)


def _make(file: Path) -> Made:
    """The summary of a segment. Its bad lines are a part of it, so that they are always named."""
    found, problems = parsing.read_segment(file)
    known: dict[bytes, int] = {}
    environments: list[Environment] = []

    def place(environment: Environment) -> int:
        same = msgspec.structs.replace(environment, load_1min=0.0)
        number = known.setdefault(msgspec.msgpack.encode(same), len(environments))
        if number == len(environments):
            environments.append(same)
        return number

    entries = [_entry(entry, place) for entry in found]
    summary = _Summary(segments.header(file), environments, entries, problems)
    return Made(msgspec.msgpack.encode(summary))


def _entry(entry: Entry, place: Callable[[Environment], int]) -> _Entry:
    """``place`` tells where the segment has an environment."""
    measurement = condensed(entry.measurement)
    launches = [one for one in measurement.launches if isinstance(one, CondensedLaunch)]
    # `condensed` leaves it in one launch at most.
    held = None
    for number, launch in enumerate(launches):
        if launch.environment is not None:
            held = number, place(launch.environment), launch.environment.load_1min
            launches[number] = msgspec.structs.replace(launch, environment=None)
    bare = msgspec.structs.replace(measurement, launches=[])
    return _Entry(entry._replace(measurement=bare), launches, held)

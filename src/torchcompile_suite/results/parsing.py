"""The measurements of one file: of a journal, or of a segment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

import msgspec

from ..fields import SCHEMA
from ..measurement import Measurement
from . import regular, segments
from .segments import canonical, record_id

SUFFIX = ".records.jsonl"
# A measurement takes about ten kilobytes. The suite never writes a longer line than this.
LONGEST_LINE = 4 << 20
# No call is as short. A quotient with a shorter time may not be a number.
_SHORTEST_S = 1e-12
# A clock may be wrong by hours, or in another zone.
_AHEAD = timedelta(days=2)


class Problem(NamedTuple):
    """A file or line that could not be read, and the reason, in one line of text."""

    where: str
    reason: str

    def __str__(self) -> str:
        """For the terminal."""
        return f"{self.where}: {self.reason}"


T = TypeVar("T")
Read = tuple[T, list[Problem]]
"""What could be read, and the problems with the rest."""


class Entry(NamedTuple):
    """A measurement of a file. ``position``: the number of its line among the file's lines.

    ``identity`` is that of `segments.record_id`.
    """

    position: int
    identity: str
    measurement: Measurement

    @property
    def order(self) -> tuple[str, int, str]:
        """The newest of several entries has the largest."""
        return self.measurement.started_at, self.position, self.identity


# Reads the measurements of a segment. Raises the errors of `segments.read`.
SegmentReader = Callable[[Path], Read[list[Entry]]]


def as_text(name: str) -> str:
    """The name of a stranger's file or folder, which may be no text."""
    return name.encode("utf-8", "backslashreplace").decode()


def read_files(
    found: Iterable[Path], reader: SegmentReader | None = None
) -> Iterator[Read[list[Entry]]]:
    """The measurements of each journal and segment. One that cannot be read is one problem."""
    for file in found:
        problems: list[Problem] = []
        sealed = file.name.endswith(segments.SUFFIX)
        with named(name(file), problems):
            read = (reader or read_segment)(file) if sealed else read_journal(file)
            yield _begun(name(file), *read)
        if problems:
            yield [], problems


def _begun(where: str, entries: list[Entry], problems: list[Problem]) -> Read[list[Entry]]:
    """Without the measurements of the future, which would be the newest for years.

    A summary of a segment may be older than this day, so this is asked each time.
    """
    # Starts are ordered as texts, so this finds most of what is no date, too.
    latest = (datetime.now(timezone.utc) + _AHEAD).isoformat()
    late = [entry for entry in entries if entry.measurement.started_at > latest]
    if not late:
        return entries, problems
    started = late[0].measurement.started_at
    reason = f"its start is in the future, or no date: {started[:25]!a}"
    counted = [entry for entry in entries if entry.measurement.started_at <= latest]
    return counted, [*problems, Problem(f"{where}:{late[0].position}", reason)]


def read_journal(journal: Path) -> Read[list[Entry]]:
    """The measurements of a journal. Its bad lines together are one problem. Raises OSError."""
    with regular.open_own(journal) as stream:
        return _entries(_lines(stream), name(journal), canonical)


def read_segment(file: Path, containing: bytes = b"") -> Read[list[Entry]]:
    """The measurements of a segment whose lines contain these bytes; see `SegmentReader`."""
    lines = segments.read(file).lines
    # The lines of a segment have the canonical form. The first one is the header.
    numbered = ((number, line) for number, line in enumerate(lines, 2) if containing in line)
    return _entries(numbered, name(file), bytes)


def name(file: Path) -> str:
    """How a journal or segment is called in messages: machine, release of a segment, and file."""
    return as_text("/".join(file.parts[-3 if file.name.endswith(segments.SUFFIX) else -2 :]))


@contextmanager
def named(where: str, problems: list[Problem], fault: str = "cannot be read") -> Iterator[None]:
    """An OSError or ValueError becomes a problem with that place; a missing file is none."""
    try:
        yield
    except FileNotFoundError:
        pass
    except OSError as error:
        problems.append(Problem(where, f"{fault}: {error.strerror}"))
    except ValueError as error:
        problems.append(Problem(where, str(error)))


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines of a journal with their numbers; ends after a line that is too long."""
    for number, line in enumerate(iter(partial(stream.readline, LONGEST_LINE), b""), 1):
        yield number, line
        if _too_long(line):
            return


def _too_long(line: bytes) -> bool:
    return len(line) >= LONGEST_LINE and not line.endswith(b"\n")


def _entries(
    lines: Iterable[tuple[int, bytes]], where: str, form: Callable[[bytes], bytes]
) -> Read[list[Entry]]:
    """The measurements of numbered lines. ``form`` gives the canonical form of a line.

    All bad lines are one problem.
    """
    entries: list[Entry] = []
    bad: list[Problem] = []
    for number, line in lines:
        if not line.strip():
            continue
        try:
            if _too_long(line):
                raise ValueError("longer than any measurement")
            measurement = decode(line)
            entries.append(Entry(number, record_id(form(line)), measurement))
        except ValueError as error:
            bad.append(Problem(f"{where}:{number}", str(error)))
    if len(bad) > 1:
        where, reason = bad[0]
        bad = [Problem(where, f"{reason} (the first of {len(bad)} bad lines)")]
    return entries, bad


class _Schema(msgspec.Struct):
    schema: int = 0


def decode(line: bytes) -> Measurement:
    """The measurement of one line of a journal or segment, which has every figure that it claims.

    Raises ValueError with a message of one line.
    """
    schema = regular.decoded(line, _Schema, "not a measurement").schema
    if schema > SCHEMA:
        raise ValueError(
            f"written by a newer version of the suite (schema {schema}, this one reads up to "
            f"{SCHEMA}); update torchcompile-suite"
        )
    measurement = regular.decoded(line, Measurement, "not a measurement")
    # Figures are computed of failed cells, too: of what they measured before they failed.
    pairs = (pair for launch in measurement.launches for pair in launch.pairs_s)
    if any(min(pair) < _SHORTEST_S for pair in pairs):
        raise ValueError("not a measurement: a call takes no time")
    if measurement.outcome.ok and not _whole(measurement):
        raise ValueError(
            "not a measurement: its outcome is ok, but it lacks launches or timings, or counts"
        )
    return measurement


def _whole(measurement: Measurement) -> bool:
    """Whether every figure can be computed: some launch counts, and all of them have times."""
    launches = measurement.launches
    if measurement.cell.target:
        return measurement.generated is not None
    if not measurement.cell.timed:
        return any(launch.attribution is not None for launch in launches)
    return any(not launch.disturbed for launch in launches) and all(
        launch.pairs_s and launch.warm_up_s for launch in launches
    )

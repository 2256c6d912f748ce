"""Sealing: the journals of a machine become segments.

`asv run`, `history` and `try --save` do this at their end. After a kill the next one does it at its
beginning.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..cell import Measurement
from ..host import files
from ..host.files import write_atomically
from . import records, regular, segments
from .canonical import canonical
from .records import Problem
from .segments import Header, Segment


class Sealed(NamedTuple):
    """What became of the journals: the new segments, and what could not be sealed."""

    segments: list[Path]
    problems: list[Problem]


class Content(NamedTuple):
    """The content of a journal: segments of its measurements, and the bytes of all other lines."""

    segments: list[Segment]
    left: bytes


def seal(machine_folder: Path) -> Sealed:
    """Turn every journal of the folder into segments, and remove it.

    Lines that are no measurements stay in the journal: they may be those of a newer version. A
    journal that cannot be read or written stays as it is. Both are problems. A run that is in
    progress may add to its journal meanwhile.
    """
    sealed = Sealed([], [])
    for journal in records.journals(machine_folder):
        with records.named(records.journal_name(journal), sealed.problems, "cannot be sealed"):
            with regular.open_own(journal):
                pass  # nothing but a file is opened for writing
            with files.alone(journal):  # nobody adds a line until the journal is gone
                sealed.segments.extend(_seal(journal, sealed.problems))
    return sealed


def _seal(journal: Path, problems: list[Problem]) -> list[Path]:
    made, left = content(journal, problems)
    written = []
    for segment in made:
        file = segments.write(journal.parent, segment)
        # The journal is removed next, so the file has to be what was meant.
        if segments.read(file) != segment:
            raise ValueError(f"{records.segment_name(file)} is not what was written")
        written.append(file)
    if left:
        write_atomically(journal, left)
    else:
        journal.unlink()
    return written


def content(journal: Path, problems: list[Problem]) -> Content:
    """The content of a journal; the same journal always gives the same segments.

    Lines that are no measurements add one problem. Raises OSError, and ValueError for a journal
    with a name that no segment can have.
    """
    found = records.read_journal(journal, problems).entries
    good = {entry.position for entry in found}
    lines: list[bytes] = []
    left: list[bytes] = []
    with regular.open_own(journal) as stream:
        parts = iter(lambda: stream.readline(records.LONGEST_LINE), b"")
        for number, line in enumerate(parts, 1):
            if number in good:
                lines.append(canonical(line))
            elif line.strip():
                left.append(line)
    header = _header(journal, (entry.measurement for entry in found))
    return Content([Segment(header, piece) for piece in segments.pieces(lines)], b"".join(left))


def _header(journal: Path, measurements: Iterable[Measurement]) -> Header:
    commit, env_name = records.place(journal)
    release = next(filter(None, map(_release, measurements)), "")
    header = Header(journal.parent.name, segments.folder_name(release, commit), commit, env_name)
    # The constructor checks nothing.
    return msgspec.convert(msgspec.to_builtins(header), Header)


def _release(measurement: Measurement) -> str:
    """The release that names the folder; empty for a commit over a release."""
    environment = measurement.environment
    return "" if environment and environment.overlay else records.release(measurement)

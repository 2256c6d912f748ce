"""How a store grows: journals become segments, and the measurements of other stores are added.

Sealing: the journals of a machine become segments. `asv run`, `history` and `try --save` do this at
their end. After a kill the next one does it at its beginning.

Merging: a segment is never changed and its name tells its bytes, so merging is the union of files.
The order of merges makes no difference, and merging again changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..errors import SuiteError
from ..host import files, machine
from ..host.files import write_atomically
from ..measurement import Measurement
from . import descriptions, parsing, records, regular, segments
from .descriptions import Description
from .parsing import Problem
from .segments import Header, Segment, canonical


class Sealed(NamedTuple):
    """What became of the journals: the new segments, and what could not be sealed."""

    segments: list[Path]
    problems: list[Problem]


class Content(NamedTuple):
    """The content of a journal: segments of its measurements, the bytes of all other lines, and a
    problem if there are such lines.
    """

    segments: list[Segment]
    left: bytes
    problems: list[Problem]


class Merged(NamedTuple):
    """What a merge did: the number of new segments, and what was left out."""

    added: int
    problems: list[Problem]


def seal(machine_folder: Path) -> Sealed:
    """Turn every journal of the folder into segments, and remove it.

    Lines that are no measurements stay in the journal: they may be those of a newer version. A
    journal that cannot be read or written stays as it is. Both are problems. A run that is in
    progress may add to its journal meanwhile.
    """
    sealed = Sealed([], [])
    for journal in records.journals(machine_folder):
        with parsing.named(parsing.name(journal), sealed.problems, "cannot be sealed"):
            with regular.open_own(journal):
                pass  # nothing but a file is opened for writing
            with files.alone(journal):  # nobody adds a line until the journal is gone
                made = content(journal)
                sealed.problems.extend(made.problems)
                sealed.segments.extend([_written(journal.parent, one) for one in made.segments])
                if made.left:
                    write_atomically(journal, made.left)
                else:
                    journal.unlink()
    return sealed


def seal_all(results: Path) -> Sealed:
    """`seal` for every machine of a results folder."""
    folders, problems = records.machine_folders(results)
    sealed = [seal(folder) for folder in folders]
    problems += [problem for one in sealed for problem in one.problems]
    return Sealed([file for one in sealed for file in one.segments], problems)


def carry_over(results: Path) -> tuple[int, Sealed]:
    """`seal_all`, and the number of measurements that are in ``results`` then.

    Older versions of the suite committed journals, which only grew. Running it again changes
    nothing. Raises OSError, and SuiteError if a measurement is not there afterwards.
    """
    before = _identities(results)
    sealed = seal_all(results)
    after = _identities(results)
    if lost := len(before - after):
        raise SuiteError(f"measurements of {results} not in its segments: {lost}; restore it")
    return len(after), sealed


def _identities(results: Path) -> set[tuple[Path, object]]:
    """What tells each measurement of a results folder."""
    return {
        (journal, entry.identity)
        for folder in records.machine_folders(results)[0]
        for journal, found in records.files(folder)[0].items()
        for entries, _ in parsing.read_files(found)
        for entry in entries
    }


def _written(machine_folder: Path, segment: Segment) -> Path:
    file = segments.write(machine_folder, segment)
    # The journal is removed next, so the file has to be what was meant.
    if segments.read(file) != segment:
        raise ValueError(f"{parsing.name(file)} is not what was written")
    return file


def content(journal: Path) -> Content:
    """The content of a journal; the same journal always gives the same segments.

    Raises OSError, and ValueError for a journal with a name that no segment can have.
    """
    found, problems = parsing.read_journal(journal)
    good = {entry.position for entry in found}
    lines: list[bytes] = []
    left: list[bytes] = []
    with regular.open_own(journal) as stream:
        parts = iter(lambda: stream.readline(parsing.LONGEST_LINE), b"")
        for number, line in enumerate(parts, 1):
            if number in good:
                lines.append(canonical(line))
            elif line.strip():
                left.append(line)
    header = _header(journal, (entry.measurement for entry in found))
    made = [Segment(header, piece) for piece in segments.pieces(lines)]
    return Content(made, b"".join(left), problems)


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


def merge(target: Path, source: Path) -> Merged:
    """Add what ``source`` has to ``target``. The source is only read.

    Journals of both become segments in the target. A damaged file is a problem and is left out, and
    so is a machine of the source whose hardware is not that of the target's machine of the same
    name. ASV's files are not merged: they are made from the measurements. Raises OSError where the
    target cannot be written.
    """
    target.mkdir(parents=True, exist_ok=True)
    folders, unread = records.machine_folders(source)
    problems = [*seal_all(target).problems, *unread]
    added = 0
    for folder in folders:
        into = target / folder.name
        # A link in place of the target's machine is named above.
        if not into.is_symlink() and _merge_machine(folder, into, problems):
            for file, data in _files(folder, problems):
                added += segments.add(into / file, data)
    return Merged(added, problems)


def _merge_machine(source: Path, target: Path, problems: list[Problem]) -> bool:
    """Copy the description of a machine. False if the target has another machine of that name.

    Both may describe one machine in different words. Then the smaller text is kept, so that the
    order of merges makes no difference.
    """
    theirs, ours = _description(source, problems), _description(target, problems)
    if theirs is None:
        return True  # files of a store may come one by one
    if ours is not None:
        try:
            machine.check_same(ours.fields, theirs.fields)
        except SuiteError as error:
            problems.append(Problem(f"{source.name}/{machine.FILE}", str(error)))
            return False
    if ours is None or theirs.text < ours.text:
        write_atomically(target / machine.FILE, theirs.text)
    return True


def _description(folder: Path, problems: list[Problem]) -> Description | None:
    """The description of a machine; None if it is missing or cannot be read."""
    if os.path.lexists(folder / machine.FILE):
        with parsing.named(f"{folder.name}/{machine.FILE}", problems):
            return descriptions.read(folder)
    return None


def _files(folder: Path, problems: list[Problem]) -> Iterator[tuple[Path, bytes]]:
    """The sound segments of a machine, and those of its journals: path in its folder, bytes."""
    found, unread = records.segment_files(folder)
    problems += unread
    for file in found:
        with parsing.named(parsing.name(file), problems):
            data = regular.read_own(file, segments.MOST_BYTES)
            segments.decode(file, data)
            yield file.relative_to(folder), data
    for journal in records.journals(folder):
        with parsing.named(parsing.name(journal), problems):
            made = content(journal)
            problems += made.problems
            yield from map(segments.encode, made.segments)

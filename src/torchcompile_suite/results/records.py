"""The raw record of every measurement: journals, to which a run adds, and segments, for ever.

While a run is in progress each measurement is added to a *journal*,
``results/<machine>/<commit>-<environment>.records.jsonl``, a line of JSON for a measurement. A kill
or a full disk loses at most the line that is being written. At the end of the run the journal is
sealed: it becomes a *segment* (`segments`), compressed and never changed again. Whoever reads gets
both. Older versions of the suite had journals only, and committed them.

Of several measurements of one machine, commit, environment and cell the newest counts: the one that
started last. Within one second, the one that is further down in its file, then the one with the
larger identity (`canonical.record_id`). The same measurement in two files is one. So the order in
which files were added makes no difference. The older measurements are the history of the cell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from ..cell import SCHEMA, Cell, Launch, Measurement
from ..host.files import append_line
from . import descriptions, regular, segments
from .canonical import canonical, record_id

SUFFIX = ".records.jsonl"
# Of a commit's SHA, as in the names of ASV's files.
COMMIT_DIGITS = 8
# A measurement takes about ten kilobytes. The suite never writes a longer line than this.
LONGEST_LINE = 4 << 20
# The environment of measurements that `try --save` made: they are none of ASV's.
TRIAL = "try"
# Why a folder that is a link is not read: it may lead anywhere.
LINK = "a link, which is not followed"
# No call is as short. A quotient with a shorter time may not be a number.
_SHORTEST_S = 1e-12
# Files are read in parts of this size.
_PART_BYTES = 1 << 20


class Record(NamedTuple):
    """A measurement and its place: machine, ledger commit (8 digits), environment.

    ``release`` is the version of torch, without its build. A measurement that ended too early to
    know its torch has the release of the other measurements of its place. ``release`` is empty
    where none of them knows it.
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
    """Every readable record under results/, and the problems with the others.

    ``records`` are those of cells that are timed. ``generated`` are those of cells with a target:
    counts without times, which `analysis.generated` reads.
    """

    records: list[Record]
    problems: list[Problem]
    generated: Sequence[Record] = ()


class Entry(NamedTuple):
    """A measurement of a file. ``position``: the number of its line among the file's lines.

    ``identity`` is that of `canonical.record_id`.
    """

    position: int
    identity: str
    measurement: Measurement

    @property
    def order(self) -> tuple[str, int, str]:
        """The newest of several entries has the largest."""
        return self.measurement.started_at, self.position, self.identity


class Piece(NamedTuple):
    """The readable measurements of one file, which share their place. ``file``: the file itself."""

    file: Path
    commit: str
    env_name: str
    entries: list[Entry]


# Reads a segment. Raises the errors of `segments.read`; adds the bad lines to the problems.
SegmentReader = Callable[[Path, list[Problem]], Piece]


def path(machine_folder: Path, commit: str, env_name: str) -> Path:
    """The journal of that commit and environment."""
    return machine_folder / f"{commit[:COMMIT_DIGITS]}-{env_name}{SUFFIX}"


def place(journal: Path) -> tuple[str, str]:
    """The commit (8 digits) and the environment of a journal."""
    commit, _, env_name = journal.name.removesuffix(SUFFIX).partition("-")
    return commit, env_name


def files(machine_folder: Path, problems: list[Problem]) -> dict[Path, list[Path]]:
    """The files with measurements, by the journal of their commit and environment.

    A journal whose lines are all sealed does not exist. Segments are not read as a whole.
    """
    found: dict[Path, list[Path]] = {}
    for journal in journals(machine_folder):
        found.setdefault(journal, []).append(journal)
    for file in segment_files(machine_folder, problems):
        with named(segment_name(file), problems):
            header = segments.header(file)
            journal = path(machine_folder, header.commit, header.env_name)
            found.setdefault(journal, []).append(file)
    return dict(sorted(found.items()))


def append(journal: Path, measurement: Measurement) -> None:
    """Add a measurement to a journal, completely or not at all.

    Raises OSError, and SuiteError if it is of another device than the machine of the journal.
    """
    descriptions.check_device(journal.parent, measurement)
    append_line(journal, msgspec.json.encode(measurement))


def newest(journal: Path, cell: Cell) -> Measurement | None:
    """The newest readable measurement of the cell at the place of the journal, or None."""
    return next(reversed(history(journal, cell)), None)


def history(journal: Path, cell: Cell) -> list[Measurement]:
    """Every readable measurement of the cell at the place of the journal, oldest first.

    Those that are sealed, and those in the journal.
    """
    found: dict[str, Entry] = {}
    # The journal first: another process may seal it meanwhile, and then has a segment of it.
    unsealed = read_journal(journal, [])
    sealed = [file for file in files(journal.parent, []).get(journal, ()) if file != journal]
    # A run asks for each cell and metric: only the lines of the workload are worth decoding.
    of_workload = partial(read_segment, containing=msgspec.json.encode(cell.workload))
    for piece in (unsealed, *read_files(sealed, [], of_workload)):
        for entry in piece.entries:
            same = found.get(entry.identity)
            if entry.measurement.cell == cell and (same is None or same.order < entry.order):
                found[entry.identity] = entry
    return [entry.measurement for entry in sorted(found.values(), key=lambda entry: entry.order)]


def launches(machine_folder: Path) -> Iterator[Launch]:
    """Every readable launch of a machine."""
    return (
        launch
        for of_place in files(machine_folder, []).values()
        for piece in read_files(of_place, [])
        for entry in piece.entries
        for launch in entry.measurement.launches
    )


def read(results: Path) -> Records:
    """The newest measurement of each machine, commit, environment and cell under ``results``.

    Unreadable files and lines are left out and named in ``problems``. They never stop the rest.
    """
    return read_with(results, read_segment)


def read_with(results: Path, reader: SegmentReader) -> Records:
    """`read`, with another way to read a segment."""
    timed: list[Record] = []
    problems: list[Problem] = []
    generated: list[Record] = []
    for folder in machine_folders(results, problems):
        of_machine = read_machine(folder, reader)
        timed += of_machine.records
        problems += of_machine.problems
        generated += of_machine.generated
    return Records(timed, problems, generated)


def read_machine(folder: Path, reader: SegmentReader) -> Records:
    """The records of one machine, as those of `read`."""
    found: list[Record] = []
    problems: list[Problem] = []
    for journal, of_place in files(folder, problems).items():
        found += _of_place(journal, newest_of(read_files(of_place, problems, reader)))
    timed = [record for record in found if not record.measurement.cell.target]
    generated = [record for record in found if record.measurement.cell.target]
    return Records(timed, problems, generated)


def identity(file: Path) -> str:
    """Cache key of the content of a file with measurements, for `cached`.

    The name of a segment tells its bytes, unless it is damaged; then its size differs, as a rule.
    A journal grows, so its bytes are read.
    """
    if file.name.endswith(SUFFIX):
        return digest(file)
    # A stranger's name may be no text.
    name = segment_name(file).encode("utf-8", "backslashreplace").decode()
    try:
        return f"{name} {file.lstat().st_size}"
    except OSError:
        return name


def digest(file: Path) -> str:
    """The SHA-256 of the bytes of a file; that of nothing if it cannot be read."""
    found = hashlib.sha256()
    try:
        with regular.open_binary(file) as stream:
            while part := stream.read(_PART_BYTES):
                found.update(part)
    except OSError:
        pass
    return found.hexdigest()


def _of_place(journal: Path, entries: Iterable[Entry]) -> list[Record]:
    measured = [entry.measurement for entry in entries]
    known = next(filter(None, map(release, reversed(measured))), "")
    return [
        Record(journal.parent.name, *place(journal), one, release(one) or known) for one in measured
    ]


def newest_of(pieces: Iterable[Piece]) -> list[Entry]:
    """The newest entry of each cell. The pieces are of one machine, commit and environment."""
    found: dict[Cell, Entry] = {}
    for piece in pieces:
        for entry in piece.entries:
            cell = entry.measurement.cell
            if cell not in found or found[cell].order < entry.order:
                found[cell] = entry
    return list(found.values())


def release(measurement: Measurement) -> str:
    """The version of torch, without its build; empty if the measurement does not know it."""
    environment = measurement.environment
    return environment.torch.partition("+")[0] if environment else ""


def machine_folders(results: Path, problems: list[Problem]) -> Iterator[Path]:
    """The folders of machines, sorted. A link to a folder is a problem."""
    try:
        found = sorted(one for one in results.iterdir() if one.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return
    for folder in found:
        if folder.is_symlink():
            problems.append(Problem(folder.name, LINK))
        else:
            yield folder


def journals(machine_folder: Path) -> list[Path]:
    """The journals of a machine, sorted."""
    return sorted(machine_folder.glob(f"*{SUFFIX}"))


def read_files(
    found: Iterable[Path], problems: list[Problem], reader: SegmentReader | None = None
) -> Iterator[Piece]:
    """The measurements of journals and segments.

    What cannot be read is added to ``problems``: one for each file.
    """
    for file in found:
        if file.name.endswith(SUFFIX):
            yield read_journal(file, problems)
        else:
            with named(segment_name(file), problems):
                yield (reader or read_segment)(file, problems)


def read_journal(journal: Path, problems: list[Problem]) -> Piece:
    """The measurements of a journal. Its bad lines together add one problem."""
    where = journal_name(journal)
    entries: list[Entry] = []
    bad: list[Problem] = []
    with named(where, problems), regular.open_binary(journal) as stream:
        entries = _entries(_lines(stream), where, bad, canonical)
    _name(bad, problems)
    return Piece(journal, *place(journal), entries)


def read_segment(file: Path, problems: list[Problem], containing: bytes = b"") -> Piece:
    """The measurements of a segment whose lines contain these bytes; see `SegmentReader`."""
    header, lines = segments.read(file)
    bad: list[Problem] = []
    # The lines of a segment have the canonical form. The first one is the header.
    numbered = ((number, line) for number, line in enumerate(lines, 2) if containing in line)
    entries = _entries(numbered, segment_name(file), bad, bytes)
    _name(bad, problems)
    return Piece(file, header.commit, header.env_name, entries)


def journal_name(journal: Path) -> str:
    """How a journal is called in messages: machine and file."""
    return "/".join(journal.parts[-2:])


def segment_name(file: Path) -> str:
    """How a segment is called in messages: machine, release and file."""
    return "/".join(file.parts[-3:])


def segment_files(machine_folder: Path, problems: list[Problem]) -> list[Path]:
    """Everything that has the name of a segment, sorted. A link to a folder is a problem."""
    with named(machine_folder.name, problems):
        for link in segments.links(machine_folder):
            where = f"{machine_folder.name}/{link.name}"
            problems.append(Problem(where, LINK))
        return segments.find(machine_folder)
    return []


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


def _name(bad: list[Problem], problems: list[Problem]) -> None:
    """Add the bad lines of one file as one problem."""
    if bad:
        more = f" (the first of {len(bad)} bad lines)" if len(bad) > 1 else ""
        problems.append(Problem(bad[0].where, bad[0].reason + more))


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines of a journal with their numbers; ends after a line that is too long."""
    number = 0
    while line := stream.readline(LONGEST_LINE):
        number += 1
        yield number, line
        if _too_long(line):
            return


def _too_long(line: bytes) -> bool:
    return len(line) >= LONGEST_LINE and not line.endswith(b"\n")


def _entries(
    lines: Iterable[tuple[int, bytes]],
    where: str,
    bad: list[Problem],
    form: Callable[[bytes], bytes],
) -> list[Entry]:
    """The measurements of numbered lines. ``form`` gives the canonical form of a line."""
    entries = []
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
    return entries


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
    if measurement.cell.target:
        return measurement.generated is not None
    launches = measurement.launches
    return any(not launch.disturbed for launch in launches) and all(
        launch.pairs_s and launch.warm_up_s for launch in launches
    )

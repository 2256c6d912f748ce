"""The raw record of every measurement: journals, to which a run adds, and segments, for ever.

While a run is in progress each measurement is added to a *journal*,
``results/<machine>/<commit>-<environment>.records.jsonl``, a line of JSON for a measurement. A kill
or a full disk loses at most the line that is being written. At the end of the run the journal is
sealed: it becomes a *segment* (`segments`), compressed and never changed again. Whoever reads gets
both. Older versions of the suite had journals only, and committed them.

Of several measurements of one machine, commit, environment and cell the newest counts: the one that
started last. Within one second, the one that is further down in its file, then the one with the
larger identity (`segments.record_id`). The same measurement in two files is one. So the order in
which files were added makes no difference. The older measurements are the history of the cell.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

import msgspec
from packaging.version import InvalidVersion, Version

from ..cell import Cell
from ..fields import SCHEMA
from ..generated import GENERATION
from ..host.files import append_line
from ..measurement import Launch, Measurement
from . import descriptions, regular, segments
from .segments import canonical, record_id

SUFFIX = ".records.jsonl"
# From this release on, code of generation 1 is not that of generation 2 (`GENERATION`).
BANDWIDTH_COUNTS_SINCE = Version("2.14.dev0")
# Of a commit's SHA, as in the names of ASV's files.
COMMIT_DIGITS = 8
# A measurement takes about ten kilobytes. The suite never writes a longer line than this.
LONGEST_LINE = 4 << 20
# The environment of measurements that `try --save` made: they are none of ASV's.
TRIAL = "try"
# Why a folder that is a link is not read: it may lead anywhere.
LINK = "a link, which is not followed"
_NO_TEXT = "its name is no text"
# No call is as short. A quotient with a shorter time may not be a number.
_SHORTEST_S = 1e-12


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


T = TypeVar("T")
Read = tuple[T, list[Problem]]
"""What could be read, and the problems with the rest."""


class Records(NamedTuple):
    """Every readable record under results/, and the problems with the others.

    ``records`` are those of cells whose pairs are timed. ``generated`` are those of cells with a
    target: counts without times, which `analysis.generated` reads; those that this version of the
    suite would count otherwise are left out (`counted_alike`). ``divided`` are those whose
    calls were divided, which `analysis.why` reads.
    """

    records: list[Record]
    problems: list[Problem]
    generated: list[Record]
    divided: list[Record]


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


def path(machine_folder: Path, commit: str, env_name: str) -> Path:
    """The journal of that commit and environment."""
    return machine_folder / f"{commit[:COMMIT_DIGITS]}-{env_name}{SUFFIX}"


def place(journal: Path) -> tuple[str, str]:
    """The commit (8 digits) and the environment of a journal."""
    commit, _, env_name = _text(journal.name).removesuffix(SUFFIX).partition("-")
    return commit, env_name


def files(machine_folder: Path) -> Read[dict[Path, list[Path]]]:
    """The files with measurements, by the journal of their commit and environment.

    A journal whose lines are all sealed does not exist. Segments are not read as a whole.
    """
    found = {journal: [journal] for journal in journals(machine_folder)}
    sealed, problems = segment_files(machine_folder)
    for file in sealed:
        with named(name(file), problems):
            header = segments.header(file)
            journal = path(machine_folder, header.commit, header.env_name)
            found.setdefault(journal, []).append(file)
    return dict(sorted(found.items())), problems


def append(journal: Path, measurement: Measurement) -> None:
    """Add a measurement to a journal, completely or not at all.

    Raises OSError, also for a link in place of the journal, and SuiteError if it is of another
    device than the machine of the journal.
    """
    if journal.is_symlink():
        raise OSError(errno.ELOOP, LINK, str(journal))
    descriptions.check_device(journal.parent, measurement)
    append_line(journal, msgspec.json.encode(measurement))


def newest(journal: Path, cell: Cell) -> Measurement | None:
    """The newest readable measurement of the cell at the place of the journal, or None."""
    return next(reversed(history(journal, cell)), None)


def history(journal: Path, cell: Cell) -> list[Measurement]:
    """Every readable measurement of the cell at the place of the journal, oldest first.

    Those that are sealed, and those in the journal.
    """
    # The journal first: another process may seal it meanwhile, and then has a segment of it.
    unsealed = list(read_files([journal]))
    sealed = [file for file in files(journal.parent)[0].get(journal, ()) if file != journal]
    # A run asks for each cell: only the lines of the workload are worth decoding.
    of_workload = partial(read_segment, containing=msgspec.json.encode(cell.workload))
    found = [
        entry
        for entries, _ in (*unsealed, *read_files(sealed, of_workload))
        for entry in entries
        if entry.measurement.cell == cell
    ]
    found.sort(key=lambda entry: entry.order)
    newest_copy = {entry.identity: entry for entry in found}
    return [entry.measurement for entry in found if entry is newest_copy[entry.identity]]


def launches(machine_folder: Path) -> Iterator[Launch]:
    """Every readable launch of a machine."""
    for of_place in files(machine_folder)[0].values():
        for entries, _ in read_files(of_place):
            for entry in entries:
                yield from entry.measurement.launches


def read(results: Path, reader: SegmentReader | None = None) -> Records:
    """The newest measurement of each machine, commit, environment and cell under ``results``.

    Unreadable files and lines are left out and named in ``problems``. They never stop the rest.
    ``reader``: another way to read a segment than `read_segment`.
    """
    folders, problems = machine_folders(results)
    found: list[Record] = []
    for folder in folders:
        of_machine, bad = _of_machine(folder, reader)
        found += of_machine
        problems += bad
    return _by_kind(found, problems)


def read_machine(folder: Path, reader: SegmentReader | None = None) -> Records:
    """The records of one machine, as those of `read`."""
    return _by_kind(*_of_machine(folder, reader))


def _of_machine(folder: Path, reader: SegmentReader | None) -> Read[list[Record]]:
    found: list[Record] = []
    of_places, problems = files(folder)
    for journal, of_place in of_places.items():
        entries, bad = newest_of(read_files(of_place, reader))
        found += _of_place(journal, entries)
        problems += bad
    # Of two environments of a release the later measurement counts, for all who read them.
    found.sort(key=lambda record: record.measurement.started_at)
    return found, problems


def _by_kind(found: Iterable[Record], problems: list[Problem]) -> Records:
    kinds = Records([], problems, [], [])
    for record in found:
        cell = record.measurement.cell
        if not counted_alike(record.measurement):
            continue
        kind = kinds.generated if cell.target else kinds.records if cell.timed else kinds.divided
        kind.append(record)
    return kinds


def identity(file: Path) -> str:
    """Cache key of the content of a file with measurements, for `cached`.

    The name of a segment tells its bytes, unless it is damaged; then its size differs, as a rule.
    A journal grows, so its bytes are read.
    """
    if not file.name.endswith(segments.SUFFIX):
        return regular.digest(file)
    try:
        return f"{name(file)} {file.lstat().st_size}"
    except OSError:
        return name(file)


def _of_place(journal: Path, entries: Iterable[Entry]) -> list[Record]:
    measured = [entry.measurement for entry in entries]
    known = next(filter(None, map(release, reversed(measured))), "")
    return [
        Record(journal.parent.name, *place(journal), one, release(one) or known) for one in measured
    ]


def newest_of(pieces: Iterable[Read[list[Entry]]]) -> Read[list[Entry]]:
    """The newest entry of each cell. The pieces are of one machine, commit and environment."""
    found: dict[Cell, Entry] = {}
    problems: list[Problem] = []
    for entries, bad in pieces:
        problems += bad
        for entry in entries:
            cell = entry.measurement.cell
            if cell not in found or found[cell].order < entry.order:
                found[cell] = entry
    return list(found.values()), problems


def release(measurement: Measurement) -> str:
    """The version of torch, without its build; empty if the measurement does not know it."""
    environment = measurement.environment
    return environment.torch.partition("+")[0] if environment else ""


def counted_alike(measurement: Measurement) -> bool:
    """Whether this version of the suite would generate the same code and count it in the same way.

    True of a measurement without generated code.
    """
    generated = measurement.generated
    if generated is None or generated.generation == GENERATION:
        return True
    try:
        older = Version(release(measurement)) < BANDWIDTH_COUNTS_SINCE
    except InvalidVersion:
        return False
    return older and generated.generation == 1


def machine_folders(results: Path) -> Read[list[Path]]:
    """The folders of machines, sorted. Links, and names that are no text, are problems."""
    try:
        return _folders(results, "")
    except (FileNotFoundError, NotADirectoryError):
        return [], []


def _folders(parent: Path, where: str) -> Read[list[Path]]:
    """The folders in a folder, sorted. ``where``: begins the place of a problem. Raises OSError."""
    folders: list[Path] = []
    problems: list[Problem] = []
    # `Path.is_dir` raises for some links.
    for one in sorted(filter(os.path.isdir, parent.iterdir())):
        text = _text(one.name)
        reason = LINK if one.is_symlink() else _NO_TEXT if text != one.name else ""
        if reason:
            problems.append(Problem(where + text, reason))
        else:
            folders.append(one)
    return folders, problems


def _text(name: str) -> str:
    """The name of a stranger's file or folder, which may be no text."""
    return name.encode("utf-8", "backslashreplace").decode()


def journals(machine_folder: Path) -> list[Path]:
    """The journals of a machine, sorted."""
    return sorted(machine_folder.glob(f"*{SUFFIX}"))


def read_files(
    found: Iterable[Path], reader: SegmentReader | None = None
) -> Iterator[Read[list[Entry]]]:
    """The measurements of each journal and segment. One that cannot be read is one problem."""
    for file in found:
        problems: list[Problem] = []
        sealed = file.name.endswith(segments.SUFFIX)
        with named(name(file), problems):
            yield (reader or read_segment)(file) if sealed else read_journal(file)
        if problems:
            yield [], problems


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
    return _text("/".join(file.parts[-3 if file.name.endswith(segments.SUFFIX) else -2 :]))


def segment_files(machine_folder: Path) -> Read[list[Path]]:
    """Everything that has the name of a segment, sorted. A link to a folder is a problem."""
    problems: list[Problem] = []
    found: list[Path] = []
    with named(machine_folder.name, problems):
        folders, links = _folders(machine_folder, f"{machine_folder.name}/")
        problems += links
        found = sorted(one for folder in folders for one in folder.glob(f"*{segments.SUFFIX}"))
    return found, problems


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

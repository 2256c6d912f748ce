"""The raw record of every measurement: journals, to which a run adds, and segments, for ever.

While a run is in progress each measurement is added to a *journal*,
``results/<machine>/<commit>-<environment>.records.jsonl``, a line of JSON for a measurement. A kill
or a full disk loses at most the line that is being written. At the end of the run the journal is
sealed: it becomes a *segment* (`segments`), compressed and never changed again. Whoever reads gets
both. Older versions of the suite had journals only, and committed them.

Of several measurements of one machine, commit, environment and cell the newest counts: the one that
started last, but not one that starts in the future. Within one second, the one that is further down
in its file, then the one with the larger identity (`segments.record_id`). The same measurement in
two files is one. So the order in which files were added makes no difference. The older measurements
are the history of the cell.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
from packaging.version import InvalidVersion, Version

from ..cell import Cell
from ..generated import GENERATION
from ..host.files import append_line
from ..measurement import Launch, Measurement
from . import descriptions, regular, segments
from .parsing import (
    SUFFIX,
    Entry,
    Problem,
    Read,
    SegmentReader,
    as_text,
    name,
    named,
    read_files,
    read_segment,
)

# From this release on, code of generation 1 is not that of generation 2 (`GENERATION`).
BANDWIDTH_COUNTS_SINCE = Version("2.14.dev0")
# Of a commit's SHA, as in the names of ASV's files.
COMMIT_DIGITS = 8
# The environment of measurements that `try --save` made: they are none of ASV's.
TRIAL = "try"
# Why a folder that is a link is not read: it may lead anywhere.
LINK = "a link, which is not followed"
_NO_TEXT = "its name is no text"


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


def path(machine_folder: Path, commit: str, env_name: str) -> Path:
    """The journal of that commit and environment."""
    return machine_folder / f"{commit[:COMMIT_DIGITS]}-{env_name}{SUFFIX}"


def place(journal: Path) -> tuple[str, str]:
    """The commit (8 digits) and the environment of a journal."""
    commit, _, env_name = as_text(journal.name).removesuffix(SUFFIX).partition("-")
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
    """The newest readable measurement of the cell at the place of the journal, or None.

    Of those that are sealed, and those in the journal.
    """
    # The journal first: another process may seal it meanwhile, and then has a segment of it.
    unsealed = list(read_files([journal]))
    sealed = [file for file in files(journal.parent)[0].get(journal, ()) if file != journal]
    # A run asks for each cell: only the lines of the workload are worth decoding.
    of_workload = partial(read_segment, containing=msgspec.json.encode(cell.workload))
    entries, _ = newest_of((*unsealed, *read_files(sealed, of_workload)))
    return next((one.measurement for one in entries if one.measurement.cell == cell), None)


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
        text = as_text(one.name)
        reason = LINK if one.is_symlink() else _NO_TEXT if text != one.name else ""
        if reason:
            problems.append(Problem(where + text, reason))
        else:
            folders.append(one)
    return folders, problems


def journals(machine_folder: Path) -> list[Path]:
    """The journals of a machine, sorted."""
    return sorted(machine_folder.glob(f"*{SUFFIX}"))


def segment_files(machine_folder: Path) -> Read[list[Path]]:
    """Everything that has the name of a segment, sorted. A link to a folder is a problem."""
    problems: list[Problem] = []
    found: list[Path] = []
    with named(machine_folder.name, problems):
        folders, links = _folders(machine_folder, f"{machine_folder.name}/")
        problems += links
        found = sorted(one for folder in folders for one in folder.glob(f"*{segments.SUFFIX}"))
    return found, problems

"""Merging: the measurements of another results folder are added to this one.

A segment is never changed and its name tells its bytes, so merging is the union of files. The order
of merges makes no difference, and merging again changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import SuiteError
from ..host import machine
from ..host.files import write_atomically
from . import descriptions, records, regular, sealing, segments
from .descriptions import Description
from .records import Problem


class Merged(NamedTuple):
    """What a merge did: the number of new segments, and what was left out."""

    added: int
    problems: list[Problem]


def merge(target: Path, source: Path) -> Merged:
    """Add what ``source`` has to ``target``. The source is only read.

    Journals of both become segments in the target. A damaged file is a problem and is left out, and
    so is a machine of the source whose hardware is not that of the target's machine of the same
    name. ASV's files are not merged: they are made from the measurements. Raises OSError where the
    target cannot be written.
    """
    problems: list[Problem] = []
    target.mkdir(parents=True, exist_ok=True)
    for folder in records.machine_folders(target, problems):
        problems += sealing.seal(folder).problems
    added = 0
    for folder in records.machine_folders(source, problems):
        into = target / folder.name
        if into.is_symlink():
            continue  # named above
        if _merge_machine(folder, into, problems):
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
        return True
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
    if not os.path.lexists(folder / machine.FILE):
        return None
    with records.named(f"{folder.name}/{machine.FILE}", problems):
        return descriptions.read(folder)
    return None


def _files(folder: Path, problems: list[Problem]) -> Iterator[tuple[Path, bytes]]:
    """The sound segments of a machine, and those of its journals: path in its folder, bytes."""
    for file in records.segment_files(folder, problems):
        with records.named(records.segment_name(file), problems):
            data = regular.read_own(file, segments.MOST_BYTES)
            segments.decode(file, data)
            yield file.relative_to(folder), data
    for journal in records.journals(folder):
        with records.named(records.journal_name(journal), problems):
            for segment in sealing.content(journal, problems).segments:
                yield segments.encode(segment)

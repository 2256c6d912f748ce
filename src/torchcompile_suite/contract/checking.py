"""Holds counts to the contract's file, and writes it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import SuiteError
from ..host.files import write_atomically
from . import file, judging
from .file import Entry


def fault(path: Path, entry: Entry, head: str, update: str) -> str:
    """What differs, in at most `judging.MOST_LINES` lines; empty if nothing does.

    ``head`` names what was counted, and ``update`` is the command that writes the contract. Raises
    SuiteError if the file is no contract.
    """
    (release,) = entry.torch
    found = file.read(path).find(entry.key, release)
    if found is None:
        return (
            f"{head}: {path.name} has no entry for {entry.model} ({entry.call}, {entry.device}); "
            f"add it: {update}"
        )
    changes = judging.changes(found.counts, entry.counts)
    if not changes:
        return ""
    known = ", ".join(found.torch)
    other = "" if release in found.torch else f" of torch {known} (it has none of {release})"
    return judging.told(
        f"{head} is not what {path.name} says{other}:", changes, f"If you want this: {update}"
    )


def write(path: Path, entries: Sequence[Entry]) -> str:
    """Put the entries into the file. Returns what was done, in one line. Raises SuiteError."""
    before = file.read(path)
    text = file.text(before.updated(entries))
    plural = "entry" if len(entries) == 1 else "entries"
    if path.exists() and path.read_text("utf-8") == text:
        return f"{path.name}: nothing has changed ({len(entries)} {plural})"
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise SuiteError(f"cannot write {path}: {error.strerror}") from None
    return f"{path.name}: {len(entries)} {plural} written"

"""Holds counts to the contract's file, and writes it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from packaging.version import Version

from ..host.files import write_or_say
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
    contract = file.read(path).updated(entries)
    text = file.text(contract)
    keys = {entry.key for entry in entries}
    # Releases may share one.
    count = sum(entry.key in keys for entry in contract.entries)
    number = f"{count} entry" if count == 1 else f"{count} entries"
    if path.exists() and path.read_text("utf-8") == text:
        return f"{path.name}: nothing has changed ({number})"
    write_or_say(path, text.encode())
    releases = sorted({name for entry in entries for name in entry.torch}, key=Version)
    return f"{path.name}: {number} written (torch {', '.join(releases)})"

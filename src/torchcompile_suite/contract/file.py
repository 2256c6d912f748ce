"""The contract: a TOML file that a project commits. Equal counts give equal bytes on any machine.

The name is that of what it is, with the ending that people's editors know. It stands beside
pyproject.toml, as lock files do, and not in it: a command rewrites it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from packaging.version import Version

from ..errors import SuiteError
from ..fields import Count, Text
from ..host.files import write_or_say
from ..releases import catalogue
from . import judging
from .counts import NUMBERS, Counts, Site

NAME = "compile-contract.toml"
VERSION = 1
_HEAD = """\
# What torch.compile makes of each model: counts without noise. A tool writes this file; commit it.
# To update it after a change that you want: torchcompile-suite contract update, or
# pytest --compile-contract=update
version = 1
"""
_SITES = ("graph_breaks", "left_to_eager", "recompiles", "cudagraph_skips")


class Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """One model, called in one way, on one kind of device; and its counts.

    ``model``: a target of `try`, or a test's id. ``call``: how it is compiled and called.
    ``guards``: by minor release, such as "2.15", the number of guards. These are the releases that
    give the other counts, too: guards differ between most releases, and the others rarely do.
    """

    model: Text
    call: Text
    device: Text
    guards: dict[str, Count]
    counts: Counts

    @classmethod
    def of(cls, model: str, call: str, device: str, torch: str, counts: Counts) -> Entry:
        """The entry of one version of torch."""
        return cls(model, call, device, {catalogue.minor(torch): counts.guards}, counts)

    @property
    def torch(self) -> tuple[str, ...]:
        """The minor releases, oldest first."""
        return tuple(sorted(self.guards, key=Version))

    @property
    def key(self) -> tuple[str, str, str]:
        """Which entries are of the same thing."""
        return self.model, self.call, self.device


class Contract:
    """All entries, in a stable order."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        """Take the entries."""
        self.entries = sorted(entries, key=lambda entry: (entry.key, Version(entry.torch[-1])))

    def find(self, key: tuple[str, str, str], release: str) -> Entry | None:
        """The entry for that minor release: its own, else the newest older one, else the oldest.

        The guards of its counts are those of that release.
        """
        known = [entry for entry in self.entries if entry.key == key]
        listed = {name: entry for entry in known for name in entry.torch}
        if not listed:
            return None
        older = [name for name in listed if Version(name) <= Version(release)]
        nearest = max(older, key=Version) if older else min(listed, key=Version)
        entry = listed[nearest]
        counts = msgspec.structs.replace(entry.counts, guards=entry.guards[nearest])
        return msgspec.structs.replace(entry, counts=counts)

    def updated(self, found: Iterable[Entry]) -> Contract:
        """The contract with these counts. Releases with the same counts share an entry."""
        entries = list(self.entries)
        for new in found:
            same = [entry for entry in entries if entry.key == new.key]
            others = [entry for entry in entries if entry.key != new.key]
            (release,) = new.torch
            kept, taken = [], False
            for entry in same:
                guards = {name: count for name, count in entry.guards.items() if name != release}
                # One that nobody else has is written anew: its texts may be out of date.
                if guards and not taken and entry.counts.same(new.counts):
                    guards, taken = {**guards, **new.guards}, True
                if guards:
                    # Equal counts may have newer texts.
                    counts = new.counts if release in guards else entry.counts
                    kept.append(msgspec.structs.replace(entry, guards=guards, counts=counts))
            entries = [*others, *kept, *([] if taken else [new])]
        return Contract(entries)


def read(path: Path) -> Contract:
    """The contract of the file; an empty one if there is no file. Raises SuiteError."""
    try:
        content = msgspec.toml.decode(path.read_text("utf-8"))
    except FileNotFoundError:
        return Contract()
    except (OSError, ValueError, msgspec.DecodeError) as error:
        raise SuiteError(f"{path.name} cannot be read: {error}; restore it from git") from None
    if content.get("version") != VERSION:
        raise SuiteError(
            f"{path.name} has version {content.get('version')!r}, and this is for version "
            f"{VERSION}: use the torchcompile-suite that wrote it, or delete it and update"
        )
    try:
        return Contract(_entry(each) for each in content.get("entry", []))
    except (AttributeError, ValueError, KeyError, TypeError, IndexError) as error:
        raise SuiteError(
            f"{path.name} is no contract: {error}; restore it from git, or delete it and update"
        ) from None


def _entry(content: dict[str, Any]) -> Entry:
    names = {"model", "call", "device", "guards"}
    own = {name: value for name, value in content.items() if name in names}
    counts = {name: value for name, value in content.items() if name not in names}
    entry = msgspec.convert({**own, "counts": counts}, Entry)
    if not entry.guards:
        raise KeyError(f"{entry.model} has no guards of any release")
    return entry


def fault(path: Path, entry: Entry, head: str, update: str) -> str:
    """What differs, in at most `judging.MOST_LINES` lines; empty if nothing does.

    ``head`` names what was counted, and ``update`` is the command that writes the contract. Raises
    SuiteError if the file is no contract.
    """
    (release,) = entry.torch
    found = read(path).find(entry.key, release)
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
    contract = read(path).updated(entries)
    content = text(contract)
    keys = {entry.key for entry in entries}
    # Releases may share one.
    count = sum(entry.key in keys for entry in contract.entries)
    number = f"{count} entry" if count == 1 else f"{count} entries"
    if path.exists() and path.read_text("utf-8") == content:
        return f"{path.name}: nothing has changed ({number})"
    write_or_say(path, content.encode())
    releases = sorted({name for entry in entries for name in entry.torch}, key=Version)
    return f"{path.name}: {number} written (torch {', '.join(releases)})"


def text(contract: Contract) -> str:
    """The file's content."""
    return _HEAD + "".join("\n" + "\n".join(_lines(entry)) + "\n" for entry in contract.entries)


def _lines(entry: Entry) -> Iterator[str]:
    counts = entry.counts
    yield "[[entry]]"
    for name in ("model", "call", "device"):
        yield f"{name} = {_quoted(getattr(entry, name))}"
    guards = (f"{_quoted(release)} = {entry.guards[release]}" for release in entry.torch)
    yield f"guards = {{ {', '.join(guards)} }}"
    for name in NUMBERS:
        if (value := getattr(counts, name)) is not None:
            yield f"{name} = {value}"
    for name in _SITES:
        sites = sorted(getattr(counts, name), key=lambda site: (site.where, site.id, site.reason))
        if sites:
            yield f"{name} = ["
            yield from (f"    {_inline(site)}," for site in sites)
            yield "]"
    if counts.operators is not None:
        yield "[entry.operators]"
        yield from (f"{_quoted(name)} = {value}" for name, value in counts.operators.items())


def _inline(site: Site) -> str:
    parts = {"id": site.id, "reason": site.reason, "where": site.where}
    shown = ", ".join(f"{key} = {_quoted(value)}" for key, value in parts.items() if value)
    return f"{{ {shown} }}"


def _quoted(value: str) -> str:
    """A basic string of TOML. JSON's escapes are valid in it, but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

"""What the site shows: everything readable under results/, looked up by machine and release."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ..analysis import history, statistics, summary
from ..analysis.change import Side
from ..analysis.summary import Row
from ..cell import METHOD, Cell, Measurement
from ..modes import MODES
from ..releases import catalogue, ledger
from ..releases.catalogue import Release
from ..results.records import Problem, Record, read

Key = tuple[str, Cell]


class Entry(NamedTuple):
    """A measurement and its figures."""

    record: Record
    row: Row

    @property
    def measurement(self) -> Measurement:
        """The measurement itself."""
        return self.record.measurement


class Machine:
    """One machine's measurements; ``facts`` is what its machine.json says of it."""

    def __init__(self, name: str, facts: dict[str, str], entries: Iterable[Entry]) -> None:
        """Take the entries in the order they are to be shown."""
        self.name = name
        self.facts = facts
        self.entries = list(entries)

    @cached_property
    def releases(self) -> list[str]:
        """The releases measured, oldest first."""
        found = {entry.row.release for entry in self.entries}
        return sorted(found - {""}, key=summary.version_key)

    @cached_property
    def _by_release(self) -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = defaultdict(list)
        for entry in self.entries:
            found[entry.row.release].append(entry)
        return found

    def of(self, release: str) -> list[Entry]:
        """The entries of one release."""
        return self._by_release.get(release, [])

    def rows(self, release: str) -> list[Row]:
        """Their figures."""
        return [entry.row for entry in self.of(release)]

    def measurements(self, release: str) -> list[Measurement]:
        """Their measurements."""
        return [entry.measurement for entry in self.of(release)]

    def side(self, release: str) -> Side:
        """The release as it is compared with others."""
        return self._sides[release]

    @cached_property
    def _sides(self) -> dict[str, Side]:
        return {name: Side(name, self.measurements(name)) for name in self.releases}

    @cached_property
    def drift(self) -> float:
        """How far its times may be off because of when they were measured (`history.drift`)."""
        return history.drift([self.side(name) for name in self.releases])

    @cached_property
    def method(self) -> int:
        """By which method its times were taken (`cell.METHOD`)."""
        return max(_method(entry.measurement) for entry in self.entries) or METHOD

    @cached_property
    def _quiet_s(self) -> float | None:
        return statistics.quietest(
            launch for entry in self.entries for launch in entry.measurement.launches
        )

    def slowdown(self, entry: Entry) -> float:
        """How many times as slow as at their best the processors were meanwhile."""
        return statistics.slowdown(entry.measurement.launches, self._quiet_s)

    @property
    def device(self) -> str:
        """The kind of device that was measured."""
        return self.entries[0].row.cell.device


class Content(NamedTuple):
    """All machines with results, those of the newest method first; the releases of the ledger; and
    what could not be read.
    """

    machines: list[Machine]
    releases: list[Release]
    problems: list[Problem]


def load(results: Path, left_out: Iterable[Problem] = ()) -> Content:
    """Read results/. What is unreadable is left out and named; it never stops the rest."""
    found = read(results)
    problems = [*left_out, *found.problems]
    machines = []
    commits = {sha[:8]: release.version for sha, release in ledger.compute()[0].items()}
    dated = [_dated(record, commits) for record in found.records]
    unknown = {(each.machine, each.commit) for each in dated if not each.release}
    problems += [
        Problem(f"{machine}/{commit}", "neither a torch nor a ledger commit says which release")
        for machine, commit in sorted(unknown)
    ]
    kept = sorted(
        (each for each in dated if each.release), key=lambda each: each.measurement.started_at
    )
    for name in sorted({record.machine for record in kept}):
        # Of two environments of one release, the later measurement counts.
        latest = {
            (record.release, record.measurement.cell): record
            for record in kept
            if record.machine == name
        }
        mine = _of_one_method(latest, problems)
        rows = summary.rows(mine.values(), MODES)
        facts = _facts(results / name / "machine.json", problems)
        machines.append(
            Machine(name, facts, (Entry(mine[row.release, row.cell], row) for row in rows))
        )
    # The site opens with the first, whose times are as good as we know how to take them.
    machines.sort(key=lambda machine: -machine.method)
    return Content(machines, list(catalogue.everything()), problems)


def _of_one_method(latest: dict[Key, Record], problems: list[Problem]) -> dict[Key, Record]:
    """Without what was timed by an older method than the machine's newest: that is no history."""
    newest = max(_method(record.measurement) for record in latest.values())
    mine = {
        key: record
        for key, record in latest.items()
        if _method(record.measurement, otherwise=newest) == newest
    }
    old = Counter((record.machine, key[0]) for key, record in latest.items() if key not in mine)
    problems += [
        Problem(
            f"{machine}, {label(release)}",
            f"timed by an older method than the machine's newest, {count} in number: measure again",
        )
        for (machine, release), count in old.items()
    ]
    return mine


def _method(measurement: Measurement, otherwise: int = 0) -> int:
    """By which method it was timed; ``otherwise`` where nothing was."""
    return max((each.method for each in measurement.launches if each.pairs_s), default=otherwise)


def _dated(record: Record, commits: dict[str, str]) -> Record:
    """With the release of its ledger commit, where no process lived to say which torch it had."""
    return record if record.release else record._replace(release=commits.get(record.commit, ""))


def _facts(file: Path, problems: list[Problem]) -> dict[str, str]:
    try:
        content = json.loads(file.read_bytes())
        if not isinstance(content, dict):
            raise ValueError("not an object")
    except (OSError, ValueError, RecursionError) as error:
        problems.append(Problem(f"{file.parent.name}/{file.name}", f"cannot be read: {error}"))
        return {}
    return {str(key): str(value) for key, value in content.items() if key != "version"}


def label(release: str) -> str:
    """A release as people call it: by its minor version where it is the newest patch of that."""
    minor = release.rpartition(".")[0]
    newest = catalogue.newest_patch(minor)
    return f"v{minor}" if newest is not None and newest.version == release else f"v{release}"

"""The results that the site shows: all that is readable under results/, by machine and release."""

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
from ..results import regular
from ..results.records import Problem, Record, read

Key = tuple[str, Cell]


class Entry(NamedTuple):
    """A record and its figures."""

    record: Record
    row: Row

    @property
    def measurement(self) -> Measurement:
        """The measurement itself."""
        return self.record.measurement


class Machine:
    """The measurements of one machine; ``facts`` is the content of its machine.json."""

    def __init__(self, name: str, facts: dict[str, str], entries: Iterable[Entry]) -> None:
        """Keep the entries, in the order in which the pages show them."""
        self.name = name
        self.facts = facts
        self.entries = list(entries)

    @cached_property
    def releases(self) -> list[str]:
        """The releases measured, oldest first."""
        measured = {entry.row.release for entry in self.entries}
        return sorted(measured - {""}, key=summary.version_key)

    @cached_property
    def _by_release(self) -> dict[str, list[Entry]]:
        entries: dict[str, list[Entry]] = defaultdict(list)
        for entry in self.entries:
            entries[entry.row.release].append(entry)
        return entries

    def of(self, release: str) -> list[Entry]:
        """The entries of one release."""
        return self._by_release.get(release, [])

    def rows(self, release: str) -> list[Row]:
        """The figures of one release."""
        return [entry.row for entry in self.of(release)]

    def measurements(self, release: str) -> list[Measurement]:
        """The measurements of one release."""
        return [entry.measurement for entry in self.of(release)]

    def side(self, release: str) -> Side:
        """One release, for comparisons."""
        return self._sides[release]

    @cached_property
    def _sides(self) -> dict[str, Side]:
        return {name: Side(name, self.measurements(name)) for name in self.releases}

    @cached_property
    def drift(self) -> float:
        """How much the times of the same work differ between runs (`history.drift`)."""
        return history.drift([self.side(name) for name in self.releases])

    @cached_property
    def method(self) -> int:
        """The method by which its times were measured (`cell.METHOD`)."""
        return max(_method(entry.measurement) for entry in self.entries) or METHOD

    @cached_property
    def _quiet_s(self) -> float | None:
        return statistics.quietest(
            launch for entry in self.entries for launch in entry.measurement.launches
        )

    def slowdown(self, entry: Entry) -> float:
        """How many times as slow as at their best the processors were during the measurement."""
        return statistics.slowdown(entry.measurement.launches, self._quiet_s)

    @property
    def device(self) -> str:
        """The kind of device that was measured."""
        return self.entries[0].row.cell.device


class Content(NamedTuple):
    """All machines with results, those of the newest method first; all releases; all problems.

    A problem is a file or line that could not be read, or a measurement that cannot be shown.
    """

    machines: list[Machine]
    releases: list[Release]
    problems: list[Problem]


def load(results: Path, left_out: Iterable[Problem] = ()) -> Content:
    """Read results/. What is not readable becomes a problem and does not stop the rest."""
    contents = read(results)
    # What ASV's files are made of was read before.
    problems = list(dict.fromkeys([*left_out, *contents.problems]))
    machines = []
    commits = {sha[:8]: release.version for sha, release in ledger.compute()[0].items()}
    records = [_with_release(record, commits) for record in contents.records]
    unknown = {(record.machine, record.commit) for record in records if not record.release}
    problems += [
        Problem(
            f"{machine}/{commit}", "neither torch nor a ledger commit says which release this is"
        )
        for machine, commit in sorted(unknown)
    ]
    kept = sorted(
        (record for record in records if record.release),
        key=lambda record: record.measurement.started_at,
    )
    for name in sorted({record.machine for record in kept}):
        # If a release was measured in two environments, the later measurement counts.
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
    # The site opens with the first machine: its times come from the best method.
    machines.sort(key=lambda machine: -machine.method)
    return Content(machines, list(catalogue.everything()), problems)


def _of_one_method(latest: dict[Key, Record], problems: list[Problem]) -> dict[Key, Record]:
    """The records that were timed by the machine's newest method: others cannot be compared."""
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
            f"{count} measurements were timed by an older method than the machine's newest: "
            "measure them again",
        )
        for (machine, release), count in old.items()
    ]
    return mine


def _method(measurement: Measurement, otherwise: int = 0) -> int:
    """The method by which it was timed; ``otherwise`` if nothing was timed."""
    return max(
        (launch.method for launch in measurement.launches if launch.timed), default=otherwise
    )


def _with_release(record: Record, commits: dict[str, str]) -> Record:
    """The record with the release of its ledger commit, if no launch could name its torch."""
    return record if record.release else record._replace(release=commits.get(record.commit, ""))


def _facts(file: Path, problems: list[Problem]) -> dict[str, str]:
    try:
        content = json.loads(regular.read_bytes(file))
        if not isinstance(content, dict):
            raise ValueError("not an object")
    except (OSError, ValueError, RecursionError) as error:
        problems.append(Problem(f"{file.parent.name}/{file.name}", f"cannot be read: {error}"))
        return {}
    return {str(key): str(value) for key, value in content.items() if key != "version"}


def label(release: str) -> str:
    """The release's tag: v2.4 for the newest patch release of 2.4, else v2.4.0."""
    minor = release.rpartition(".")[0]
    newest = catalogue.newest_patch(minor)
    return f"v{minor}" if newest is not None and newest.version == release else f"v{release}"

"""The driver's side of results/: what comes from the machines of a fleet is kept here.

It comes as segments, whose names prove their bytes. The measurements go to the journals of their
machine, as those of `asv run` do, and are sealed at the end of the run: a file for each release of
each series would be fifty thousand files of four kilobytes for the whole matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ..cell import Measurement
from ..errors import SuiteError
from ..host import machine
from ..results import records, sealing, segments
from ..results.records import Problem, Record
from .messages import Measured


class Store:
    """The results of a fleet in the folder ``results``."""

    def __init__(
        self,
        results: Path,
        known: Iterable[Record],
        commits: Mapping[str, str],
        environment: str,
    ) -> None:
        """``known``: the records that are there. ``commits``: the ledger's commit of each release.

        ``environment``: ASV's name of the environment.
        """
        self._results = results
        self._commits = commits
        self._environment = environment
        self._known = {
            (record.machine, record.commit, *_identity(record.measurement)) for record in known
        }

    def keep(
        self, machine_name: str, fields: Mapping[str, str | int], parts: Iterable[Measured]
    ) -> int:
        """Store the segments of a series. What is stored already is not stored again.

        Returns the number of new measurements. Raises SuiteError where a segment is damaged or is
        no part of this fleet's work, or where the results have another machine of that name, and
        OSError.
        """
        folder = self._results / machine_name
        self._describe(folder, fields)
        added = 0
        for journal, measurement in [self._decoded(folder, part) for part in parts]:
            key = (machine_name, records.place(journal)[0], *_identity(measurement))
            if key not in self._known:
                records.append(journal, measurement)
                self._known.add(key)
                added += 1
        return added

    def seal(self) -> list[Problem]:
        """Seal all journals; returns what could not be sealed. Raises OSError."""
        return sealing.seal_all(self._results).problems

    def _decoded(self, folder: Path, part: Measured) -> tuple[Path, Measurement]:
        """The journal and the measurement of a segment."""
        try:
            segment = segments.decode(folder / part.path, part.data)
            commit = self._commits.get(part.release)
            if (segment.header.commit, segment.header.env_name) != (commit, self._environment):
                raise ValueError("it belongs to another commit or environment")
            (line,) = segment.lines
            measurement = records.decode(line)
        except ValueError as error:
            raise SuiteError(
                f"{folder.name} sent no sound segment of {part.release}: {error}"
            ) from None
        return records.path(folder, segment.header.commit, self._environment), measurement

    def _describe(self, folder: Path, fields: Mapping[str, str | int]) -> None:
        if fields.get("machine") != folder.name:
            raise SuiteError(f"{folder.name} calls itself {fields.get('machine')!r}")
        machine.keep(folder, fields)


def _identity(measurement: Measurement) -> tuple[object, ...]:
    """What no two measurements of a commit on a machine share."""
    series = {launch.series for launch in measurement.launches}
    return measurement.cell, measurement.started_at, *sorted(series)

"""Which series are left: not complete on any machine of the class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ..cell import Cell, Measurement
from ..measuring import series
from ..measuring.series import Series
from ..results.records import Record
from .durations import Durations


class Task(msgspec.Struct, frozen=True):
    """A series of the plan. ``seconds``: how long it takes, as far as is known."""

    id: str
    series: Series
    seconds: float


# Machine and cell -> release -> its newest measurement.
Newest = Mapping[tuple[str, Cell], Mapping[str, Measurement]]


def newest(records: Iterable[Record], environment: str, commits: Mapping[str, str]) -> Newest:
    """The records of that environment by machine and cell.

    ``records``: as `results.records.read` or `analysis.summaries.read` returns them. ``commits``:
    the ledger's commit of each release, because not every measurement knows its torch.
    """
    releases = {commit: release for release, commit in commits.items()}
    found: dict[tuple[str, Cell], dict[str, Measurement]] = defaultdict(dict)
    for record in records:
        if record.env_name == environment and record.commit in releases:
            of_cell = found[record.machine, record.measurement.cell]
            of_cell[releases[record.commit]] = record.measurement
    return found


def is_complete(known: Newest, machines: Iterable[str], plan: Series) -> bool:
    """Whether the series is complete on one of the machines."""
    return any(
        series.complete([known.get((machine, plan.cell), {}).get(one) for one in plan.releases])
        for machine in machines
    )


def tasks(plans: Sequence[Series], environment: str, durations: Durations) -> list[Task]:
    """The series in the order in which they are handed out: the longest first."""
    made = [
        Task(
            series.identity(plan, environment),
            plan,
            durations.of(plan.cell, plan.releases).seconds,
        )
        for plan in plans
    ]
    return sorted(made, key=lambda task: (-task.seconds, task.id))

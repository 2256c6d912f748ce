"""A series: one cell over several releases, measured in turns; and which series are complete.

A cell that is measured alone is a series of one name. `rounds` measures it, and `journal` keeps it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence

import msgspec

from ..analysis import statistics
from ..cell import Cell
from ..conditions import settings_of
from ..host import control_group, machine, processors
from ..launch import caches
from ..measurement import METHOD, Measurement
from ..request import Plan
from .settings import (
    BUDGET_S,
    DIVIDED_LAUNCHES,
    LAUNCH_LIMIT_S,
    MOST_LAUNCHES,
    MOST_REPEATS,
    PRECISION,
    Settings,
)

# A launch times its pairs for at most this share of the budget, and for at least so many seconds: a
# small budget is spent on several short launches. 30 s, the smallest default, is no small one.
SHARE_OF_BUDGET, SHORTEST_S = 0.4, 0.5


class Series(msgspec.Struct, frozen=True):
    """What to measure, and for how long.

    - ``releases``: versions in the order of the history, whose neighbours are compared. A commit;
      or an empty name, which stands for the torch of the user.
    - ``rounds``: the number of rounds; launches elsewhere on the host are made up for. None:
      ``precision`` (relative half-width of the ratio's interval), `change.SMALLEST_TOLD` and
      ``budget_s`` (seconds for each release) decide.
    - ``most_launches``: of each release, if ``rounds`` is not larger.
    - ``launch_limit_s``, ``repeats``, ``plan``: as in `settings.Settings`.
    - ``conditions``: what else the launches of a series have in common (`conditions_here`).
    - ``having``: only launches with this figure count for ``rounds``: a name of
      `change.QUANTITIES`. Empty: each launch counts.
    """

    cell: Cell
    releases: tuple[str, ...]
    rounds: int | None = None
    precision: float = PRECISION
    budget_s: float = BUDGET_S
    most_launches: int = MOST_LAUNCHES
    launch_limit_s: float = LAUNCH_LIMIT_S
    repeats: int = MOST_REPEATS
    plan: Plan = Plan()
    method: int = METHOD
    having: str = ""
    conditions: str = ""

    @classmethod
    def of(cls, cell: Cell, releases: Sequence[str], settings: Settings) -> Series:
        """The series of a cell as the settings want it.

        Counts have no noise. Of a divided call, each of the parts has its own interval, and none
        decides when to stop.
        """
        wanted = settings._asdict()
        del wanted["launches"]
        longest_s = max(SHORTEST_S, SHARE_OF_BUDGET * settings.budget_s)
        wanted["plan"] = msgspec.structs.replace(
            settings.plan, max_timed_s=min(settings.plan.max_timed_s, longest_s)
        )
        usual = DIVIDED_LAUNCHES if cell.divided else None
        rounds = 1 if cell.target else settings.launches or usual
        return cls(cell, tuple(releases), rounds=rounds, **wanted)


def conditions_here(more: Mapping[str, str]) -> str:
    """This machine, its processors for this process, how many of them a container grants, and the
    variables that can change a number.

    ``more``: variables that the measuring processes get. An interrupted series that other launches
    would go on is begun anew: its figures would be of two conditions.
    """
    variables = settings_of({**os.environ, **more}, caches.VARIABLES)
    granted = processors.allowed(), control_group.processors()
    return json.dumps([machine.identity(), *granted, variables])


def identity(series: Series, environment_name: str) -> str:
    """The name of the series' folder: the same cell and releases in the same environment."""
    key = msgspec.json.encode([environment_name, series.cell, series.releases])
    return hashlib.sha256(key).hexdigest()[:16]


def complete(measurements: Sequence[Measurement | None]) -> bool:
    """Whether these newest measurements of the releases need no new series.

    All are settled and of the newest method, and those with numbers come from one series.
    """
    known = [one for one in measurements if one is not None and one.outcome.settled]
    if len(known) < len(measurements):
        return False
    launches = [launch for one in known if one.outcome.ok for launch in one.launches]
    names = {launch.series for launch in launches}
    current = all(launch.method == METHOD for launch in launches)
    return current and len(names) <= 1 and "" not in names


def again(series: Series, newest: Mapping[str, Measurement | None]) -> Series | None:
    """The series with one launch of each release that failed, if all others are complete.

    ``newest``: the newest measurement of each release. A failure may last for ever, so the others
    are not measured anew until it is gone. None where the whole series has to be measured.
    """
    failed = [
        release for release, one in newest.items() if one is not None and not one.outcome.settled
    ]
    others = [one for release, one in newest.items() if release not in failed]
    if not failed or not complete(others):
        return None
    return msgspec.structs.replace(series, releases=tuple(failed), rounds=1)


def summary(measurements: Mapping[str, Measurement]) -> str:
    """The releases of a series in a line: time ratio, or outcome."""
    return ", ".join(
        f"{release} {statistics.measured_ratio(one.launches, one.sequential).value:.3f} of eager's"
        if one.outcome.ok
        else f"{release} {one.outcome.status.value}"
        for release, one in measurements.items()
    )

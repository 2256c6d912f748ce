"""Whether one can trust a machine's results: noise, drift, coverage, failures, environments."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from ... import matrix
from ...analysis import change, statistics
from ...analysis.coverage import coverage
from ...presentation.wording import plural
from ..content import Machine
from .common import table

COVERAGE = [
    *("point", "core_cells", "ok", "ended_otherwise", "not_measured", "unexplained"),
]
ENVIRONMENT = ["point", "Python", "compiler", "allocator", "threads", "kernel", "driver", "cells"]


def document(machine: Machine) -> dict[str, Any]:
    """What a reader needs to know before he believes a figure of the machine."""
    return {
        "text": [*_several(machine), *_text(machine), *filter(None, [machine.older_method])],
        "facts": table(["property", "value"], machine.facts.items()),
        "coverage": table(COVERAGE, _coverage(machine)),
        "failures": table(["cell", "point", "outcome", "reason"], _failures(machine)),
        "environments": table(ENVIRONMENT, _environments(machine)),
    }


def _several(machine: Machine) -> list[str]:
    if not machine.several:
        return []
    return [
        f"These are {plural(len(machine.machines), 'machine')} of one class: "
        f"{', '.join(machine.machines)}. All of a cell comes from one of them, the one that has it "
        "most completely. Means are of ratios within a machine."
    ]


def _text(machine: Machine) -> list[str]:
    measurements = [entry.measurement for entry in machine.entries]
    launches = [launch for measurement in measurements for launch in measurement.launches]
    disturbed = sum(bool(launch.disturbed) for launch in launches)
    failed = sum(not measurement.outcome.ok for measurement in measurements)
    noise = change.noise_floor(measurements)
    floor = "The noise floor was not measured: there are no eager cells."
    if noise is not None:
        floor = (
            "Noise floor: the true ratio of eager to eager is 1. In one launch it is off by "
            f"{noise:.1%} (root mean square). Intervals are over launches, so they include this "
            "error."
        )
    slowed = sum(machine.slowdown(entry) > statistics.MOST_SLOWDOWN for entry in machine.entries)
    return [
        f"{plural(len(measurements), 'measurement')} of "
        f"{plural(len(machine.points), machine.axis.noun)} in {plural(len(launches), 'launch')}. "
        f"Disturbed by other work on the machine, and therefore repeated: {disturbed}. "
        f"{plural(failed, 'cell')} ended without numbers.",
        floor,
        "Between-run drift: the eager time of the same work, measured in another run, may differ "
        f"by {_percent(machine.drift)}. Drift changes times; in ratios it cancels.",
        f"A neighbour slowed the processors during the whole of "
        f"{plural(slowed, 'measurement')}. The pages of these cells say so. asv run with "
        "--skip-existing measures them again.",
    ]


def _percent(log: float) -> str:
    """The half-width of an interval of a log, in per cent."""
    return "an unknown amount" if math.isnan(log) else f"{math.expm1(log):.0%}"


def _coverage(machine: Machine) -> list[list[Any]]:
    wanted = matrix.core_cells()
    rows = []
    for point in machine.points:
        of = coverage(machine.measurements(point), wanted, machine.device)
        counts = [of.ok, len(of.ended), len(of.missing), len(of.unexplained)]
        rows.append([point, len(wanted), *counts])
    return rows


def _failures(machine: Machine) -> list[list[Any]]:
    return [
        [
            machine.ids[entry.row.cell],
            entry.row.release,
            entry.row.outcome.status.value,
            entry.row.outcome.reason,
        ]
        for entry in machine.entries
        if not entry.row.outcome.ok
    ]


def _environments(machine: Machine) -> list[list[Any]]:
    environments = Counter(
        (
            entry.row.release,
            environment.python,
            environment.compiler,
            environment.allocator,
            environment.threads,
            environment.kernel,
            environment.driver,
        )
        for entry in machine.entries
        if (environment := entry.measurement.environment) is not None
    )
    return [[*values, count] for values, count in environments.items()]

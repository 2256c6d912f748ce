"""Can one trust the results: noise, coverage, failures, environments, problems."""

from __future__ import annotations

from collections import Counter

from ... import matrix
from ...analysis import change, statistics
from ...analysis.coverage import Coverage, coverage
from ...presentation import sheets
from .. import paths
from ..content import Content, Entry, Machine, label
from ..page import Page, Section, Table, Value
from . import common


def pages(content: Content) -> list[Page]:
    """One page for each machine."""
    return [_page(content, machine) for machine in content.machines]


def _page(content: Content, machine: Machine) -> Page:
    failed = [entry for entry in machine.entries if not entry.row.outcome.ok]
    wanted = matrix.core_cells()
    covered = {
        release: coverage(machine.measurements(release), wanted, machine.device)
        for release in machine.releases
    }
    return Page(
        paths.trust(machine.name),
        "trust",
        f"Can I trust it? {machine.name}",
        [*_answer(machine, len(failed)), *common.older_method(machine)],
        common.machines(content, machine, lambda other: paths.trust(other.name)),
        [
            _facts(machine),
            _coverage(covered),
            _endings(machine, failed),
            _environments(machine),
            *_left_out(content),
        ],
        [
            {
                "release": release,
                "core_cells": len(wanted),
                "ok": of.ok,
                "ended_otherwise": len(of.ended),
                "not_measured": len(of.missing),
                "unexplained": len(of.unexplained),
            }
            for release, of in covered.items()
        ],
    )


def _answer(machine: Machine, failed: int) -> list[str]:
    measurements = [entry.measurement for entry in machine.entries]
    launches = [launch for measurement in measurements for launch in measurement.launches]
    disturbed = sum(bool(launch.disturbed) for launch in launches)
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
        f"{common.plural(len(measurements), 'measurement')} of "
        f"{common.plural(len(machine.releases), 'release')} in "
        f"{common.plural(len(launches), 'launch')}. Disturbed by other work on the machine, "
        f"and therefore repeated: {disturbed}. "
        f"{common.plural(failed, 'cell')} ended without numbers.",
        floor,
        "Between-run drift: the eager time of the same work, measured in another run, may differ "
        f"by {common.percent(machine.drift)}. Drift changes times; in ratios it cancels.",
        f"A neighbour slowed the processors during the whole of "
        f"{common.plural(slowed, 'measurement')}. The pages of these cells say so. asv run with "
        "--skip-existing measures them again.",
    ]


def _facts(machine: Machine) -> Section:
    lines: list[list[Value]] = [[key, value] for key, value in machine.facts.items()]
    caption = (
        "Recorded at the first run on this machine. They never change: another machine gets "
        "another name."
    )
    table = Table(caption, ["property", "value"], frozenset(), lines)
    return Section("The machine", "machine", tables=[table])


def _coverage(covered: dict[str, Coverage]) -> Section:
    sheet = sheets.coverage({label(release): of for release, of in covered.items()})
    caption = "The core cells: those that asv run measures without options."
    lines: list[list[Value]] = [list(line) for line in sheet.lines]
    return Section(
        "Coverage",
        "coverage",
        tables=[Table(caption, sheet.columns, sheet.numbers, lines)],
    )


def _endings(machine: Machine, failed: list[Entry]) -> Section:
    lines: list[list[Value]] = [
        [
            common.linked(machine, entry.row, str(entry.row.cell)),
            label(entry.row.release),
            entry.row.outcome.status.value,
            entry.row.outcome.reason,
        ]
        for entry in failed
    ]
    if not lines:
        return Section("Cells without numbers", "failures", ["None."])
    columns = ["cell", "release", "outcome", "reason"]
    table = Table(
        "The cells that ended without numbers, with the reasons.", columns, frozenset(), lines
    )
    return Section("Cells without numbers", "failures", tables=[table])


def _environments(machine: Machine) -> Section:
    environments = Counter(
        (
            entry.row.release,
            environment.python,
            environment.compiler,
            environment.allocator,
            str(environment.threads),
            environment.kernel,
            environment.driver,
        )
        for entry in machine.entries
        if (environment := entry.measurement.environment) is not None
    )
    lines: list[list[Value]] = [
        [label(release), *values, str(count)] for (release, *values), count in environments.items()
    ]
    columns = ["release", "Python", "compiler", "allocator", "threads", "kernel", "driver", "cells"]
    table = Table("The environments of the cells.", columns, frozenset(["threads", "cells"]), lines)
    return Section("Environments", "environments", tables=[table])


def _left_out(content: Content) -> list[Section]:
    if not content.problems:
        return []
    lines: list[list[Value]] = [[problem.where, problem.reason] for problem in content.problems]
    table = Table(
        "Result files, lines and measurements that are not shown.",
        ["where", "reason"],
        frozenset(),
        lines,
    )
    return [Section("Left out", "left-out", tables=[table])]

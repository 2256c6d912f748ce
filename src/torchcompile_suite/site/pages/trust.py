"""Why believe it: noise floor, coverage, failures, environments, what was left out."""

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
    """One for each machine."""
    return [_page(content, machine) for machine in content.machines]


def _page(content: Content, machine: Machine) -> Page:
    everything = [entry.measurement for entry in machine.entries]
    noise = change.noise_floor(everything)
    failed = [entry for entry in machine.entries if not entry.row.outcome.ok]
    aside = sum(bool(launch.disturbed) for each in everything for launch in each.launches)
    launches = sum(len(each.launches) for each in everything)
    floor = "Its noise floor was not measured: that takes eager cells."
    if noise is not None:
        floor = (
            f"Noise floor: in one process the ratio of eager to eager, whose truth is 1, is off by "
            f"{noise:.1%} (root mean square). Intervals are over processes, which average it."
        )
    slowed = sum(machine.slowdown(each) > statistics.MOST_SLOWDOWN for each in machine.entries)
    wanted = matrix.core_cells()
    covered = {
        release: coverage(machine.measurements(release), wanted, machine.device)
        for release in machine.releases
    }
    return Page(
        paths.trust(machine.name),
        "trust",
        f"Can one trust it? {machine.name}",
        [
            f"{common.plural(len(everything), 'measurement')} of "
            f"{common.plural(len(machine.releases), 'release')} in "
            f"{common.plural(launches, 'process')}, of which {aside} were disturbed by others, "
            f"kept, and repeated. {common.plural(len(failed), 'cell')} ended without numbers.",
            floor,
            "Mood: the same eager time, measured at another moment, may be off by "
            f"{common.percent(machine.drift)}; it moves times and cancels in ratios.",
            f"A neighbour slowed the processors throughout {common.plural(slowed, 'measurement')}; "
            "the pages of these cells say so, and --skip-existing makes them again.",
            *common.older_method(machine),
        ],
        common.machines(content, machine, lambda each: paths.trust(each.name)),
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
                "ok": each.ok,
                "ended_otherwise": len(each.ended),
                "not_measured": len(each.missing),
                "unexplained": len(each.unexplained),
            }
            for release, each in covered.items()
        ],
    )


def _facts(machine: Machine) -> Section:
    lines: list[list[Value]] = [[key, value] for key, value in machine.facts.items()]
    caption = (
        "Recorded at the machine's first run and never changed: another one gets another name."
    )
    table = Table(caption, ["what", "value"], frozenset(), lines)
    return Section("The machine", "machine", tables=[table])


def _coverage(covered: dict[str, Coverage]) -> Section:
    sheet = sheets.coverage({label(release): each for release, each in covered.items()})
    caption = "The core of the matrix, which a bare asv run measures."
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
    table = Table("Each with its reason.", columns, frozenset(), lines)
    return Section("Cells without numbers", "failures", tables=[table])


def _environments(machine: Machine) -> Section:
    found = Counter(
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
        [label(release), *values, str(count)] for (release, *values), count in found.items()
    ]
    columns = ["release", "Python", "compiler", "allocator", "threads", "kernel", "driver", "cells"]
    table = Table("What the cells ran in.", columns, frozenset(["threads", "cells"]), lines)
    return Section("Environments", "environments", tables=[table])


def _left_out(content: Content) -> list[Section]:
    if not content.problems:
        return []
    lines: list[list[Value]] = [[each.where, each.reason] for each in content.problems]
    table = Table(
        "Result files and lines that could not be read.", ["where", "why"], frozenset(), lines
    )
    return [Section("Left out", "left-out", tables=[table])]

"""``torchcompile-suite coverage``: cells that were measured, failed or are missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter

import click
import msgspec

from .. import matrix
from ..analysis import coverage
from ..analysis.coverage import Coverage, Measured
from ..measurement import Measurement, Outcome
from ..presentation import sheets
from ..presentation.terminal import Output
from ..presentation.wording import printable
from ..releases import catalogue
from ..results.records import Record
from .history import newest_patches
from .options import machine_option
from .recorded import read_generated, read_results, select, version_named

_machine = attrgetter("machine")


@click.command()
@click.argument(
    "releases", nargs=-1, help="Such as v2.4 v2.9: their core. Default: all that is published."
)
@machine_option
def coverage_command(releases: tuple[str, ...], machine_name: str | None) -> None:
    """Count cells: with numbers, without numbers, not measured. Exit with 1 at any gap.

    A gap is a cell that was not measured, or a number that is missing without a reason. Published
    are the series of the history, in all minor releases, and the core of three releases. Each
    series, and each cell of the core with its three releases, counts on the machine that has most
    of it.
    """
    asked = [version_named(name) for name in releases or []]
    gaps = _of_releases(machine_name, asked) if asked else _published(machine_name)
    click.echo(f"unexplained gaps: {gaps}")
    if gaps:
        raise SystemExit(1)


def _of_releases(machine_name: str | None, versions: Sequence[str]) -> int:
    """Print the coverage of the core of releases on one machine. Returns the number of gaps."""
    # The question is about completeness, so the method of the times comes second.
    selection = select(machine_name, versions, generated=True, completeness_first=True, every=False)
    device = selection.records[0].measurement.cell.device
    return _core({one: _core_of(selection.measurements(one), device) for one in versions})


def _published(machine_name: str | None) -> int:
    """Print the coverage of all that is to be published. Returns the number of gaps.

    Raises NoResultsError.
    """
    found = read_results().records
    machines = {
        name: _measured(list(of_machine))
        for name, of_machine in groupby(sorted(found, key=_machine), key=_machine)
        if machine_name in (None, name)
    }
    if not machines:
        # There is nothing to select either. The error says what to do.
        select(machine_name)
    gaps = _series(machines)
    versions = [version_named(name) for name in matrix.CORE_OF]
    core = coverage.series(machines, matrix.core_cells(), versions)
    # The generated code is the same on all machines. Where a cell failed on one of them and not on
    # another, the numbers count: the last record of a cell does.
    of_targets = map(_on_any_device, read_generated())
    generated = sorted(of_targets, key=lambda record: record.measurement.outcome.ok)
    if generated:
        everywhere = {"any machine": _measured(generated)}
        core += coverage.series(everywhere, matrix.core_generated(), versions)
    return gaps + _core(coverage.by_release(core, versions))


def _on_any_device(record: Record) -> Record:
    """The record of a cell with a target, without the device of the machine that generated it."""
    measurement = record.measurement
    cell = matrix.on_any_device(measurement.cell)
    return record._replace(measurement=msgspec.structs.replace(measurement, cell=cell))


def _series(machines: Mapping[str, Measured]) -> int:
    """Print the coverage of the series of the history. Returns the number of gaps."""
    versions = [release.version for release in newest_patches(catalogue.read())]
    covered = coverage.series(machines, matrix.SERIES, versions)
    Output().draw(sheets.series(covered))
    gaps = 0
    for one in covered:
        gaps += len(one.missing) + _list(
            {f"{version}: {one.cell}": each for version, each in one.ended.items()},
            [f"{version}: {gap}" for version, found in one.unexplained.items() for gap in found],
        )
    click.echo(
        f"series of {len(versions)} releases: {len(covered)} planned, "
        f"{sum(one.complete for one in covered)} complete, "
        f"{sum(bool(one.failed) for one in covered)} failed in a release, "
        f"{sum(bool(one.missing) for one in covered)} lack a release\n"
    )
    return gaps


def _measured(of_machine: Sequence[Record]) -> Measured:
    """What a machine has generated, timed by the newest method, or could not measure."""
    by_release: dict[str, list[Measurement]] = defaultdict(list)
    for record in of_machine:
        one = record.measurement
        if one.timed_anew or one.cell.target or not one.outcome.ok:
            by_release[record.release].append(one)
    return Measured(by_release, of_machine[0].measurement.cell.device)


def _core(covered: Mapping[str, Coverage]) -> int:
    """Print the coverage of the core of each release. Returns the number of gaps."""
    Output().draw(sheets.coverage(covered))
    gaps = 0
    for version, one in covered.items():
        ended = {f"{version}: {cell}": outcome for cell, outcome in one.ended.items()}
        found = [*(f"{cell}: not measured" for cell in one.missing), *one.unexplained]
        gaps += _list(ended, [f"{version}: {gap}" for gap in found])
    return gaps


def _core_of(measurements: list[Measurement], device: str) -> Coverage:
    """The coverage of the core. Generated code belongs to it where there is any: releases that were
    measured before the suite generated code have none.
    """
    cells = matrix.core_cells()
    if any(measurement.cell.target for measurement in measurements):
        cells += matrix.core_generated()
    return coverage.coverage(measurements, cells, device)


def _list(ended: Mapping[str, Outcome], gaps: Sequence[str]) -> int:
    """Print the cells that ended otherwise, and the gaps. Returns the number of gaps."""
    for line in (*(f"{where}: {outcome}" for where, outcome in ended.items()), *gaps):
        click.echo(printable(line))
    return len(gaps)
